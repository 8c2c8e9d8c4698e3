"""Bytes that were damaged, forged or replayed on the way: every rank must refuse them, and no parameter may change.

Each rank prints what it caught and goes on to the next fault.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from unittest import mock

import horovod.torch as hvd
import torch
from common import batch_loss, digest, make_model, run_faults

from hvd_deepreduce import agreement
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.torch import DeepReduce, outbox

FAULTY_RANK = 1
STEP = 2
# Of the bundle, FORMAT.md, 2: a fixed header, then varints of one byte each for so small numbers, then a frame.
_VERSION, _CHECKSUM, _FRAME = 2, 12, 19
_INDEX_ID, _VALUE_LENGTH = _FRAME, _FRAME + 4


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def signed(data: bytes) -> bytes:
    """With the checksum that fits."""
    checksum = zlib.crc32(data[_CHECKSUM + 4 :], zlib.crc32(data[:_CHECKSUM]))
    return data[:_CHECKSUM] + checksum.to_bytes(4, "little") + data[_CHECKSUM + 4 :]


# Each makes of a bundle, and of the one that its bucket sent the step before, what is sent.
FAULTS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "damaged": lambda now, _: flipped(now, -20),
    "damaged_frame": lambda now, _: signed(flipped(now, _VALUE_LENGTH)),
    "unknown_codec": lambda now, _: signed(flipped(now, _INDEX_ID)),
    "truncated": lambda now, _: now[:-7],
    "step_before": lambda _, before: before,
    "wire_version": lambda now, _: signed(flipped(now, _VERSION)),
    "package_version": lambda now, _: now,
}


def train(fault: str) -> None:
    faulty = hvd.rank() == FAULTY_RANK
    model = make_model()
    named = [(f"{fault}.{name}", parameter) for name, parameter in model.named_parameters()]
    # Several buckets: that of the first layer's weight is fetched last, when others were decoded.
    compression = DeepReduce(named, name=fault, min_numel=30, bucket_bytes=1000, timeout=30, overlap=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named, compression=compression)
    [number] = [number for number, members in enumerate(compression._session.tensors.plan) if 0 in members]
    target = f"{fault}.bucket.{number}"
    before = b""
    step = 0

    def start_gather(data: bytes, name: str, process_set: object) -> int:
        nonlocal before
        if name == target:
            sent, before = (FAULTS[fault](data, before) if step == STEP else data), data
            data = sent
        return genuine(data, name, process_set)

    genuine = outbox.start_gather
    version = "0.0.9" if faulty and fault == "package_version" else agreement.package_version()
    with (
        mock.patch.object(outbox, "start_gather", start_gather if faulty else genuine),
        mock.patch.object(agreement, "package_version", return_value=version),
    ):
        for step in range(STEP + 2):
            parameters = digest(list(model.parameters()))
            try:
                optimizer.zero_grad()
                if faulty and step == (0 if fault == "package_version" else STEP):
                    print(f"FAULT {fault}", flush=True)
                batch_loss(model, hvd.rank(), step).backward()
                optimizer.step()
            except DeepReduceError:
                assert digest(list(model.parameters())) == parameters, f"{fault}: parameters changed"
                raise


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="+")
    torch.set_num_threads(1)
    hvd.init()
    run_faults(train, parser.parse_args().faults)


if __name__ == "__main__":
    main()
