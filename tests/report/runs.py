"""Runs to report on, as a compressor's statistics and a writer make them."""

from __future__ import annotations

from pathlib import Path

from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import Statistics
from hvd_deepreduce.writers import JsonLinesWriter

SETTINGS = "topk(density=0.01)+rice+qsgd(bits=7)"


def write_run(path: Path, names: list[str], records: int, *, steps_each: int = 10, append: bool = False) -> Path:
    """Logs a run in which tensor number n sends 100 (n + 1) bytes per step, and 1 byte more each further step."""
    counted = Statistics(SETTINGS, [TensorSpec(name, (1000 * (n + 1),)) for n, name in enumerate(names)], [(10, 40)])
    with JsonLinesWriter(path, append=append) as writer:
        for step in range(records * steps_each):
            for n, tensor in enumerate(counted.tensors):
                size = 100 * (n + 1) + step
                tensor.add(EncodedGradient(bytes(size), 10 * (n + 1), size // 2, size // 3, milliseconds=0.25))
                tensor.decode_ms += 0.125
                tensor.wait_ms += 0.5
            counted.steps += 1
            counted.collectives += 1
            counted.bundle_bytes += sum(100 * (n + 1) + step for n in range(len(names))) + 30
            counted.probe_bytes += 12
            if counted.steps % steps_each == 0:
                writer.write({**counted.as_dict(), "rank": 0, "size": 2}, loss=1 / counted.steps)
    return path
