"""Writes seeds of the fuzz targets, most of them golden vectors: `python -m fuzz.seeds FOLDER`, from tests/."""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from golden import vectors

from hvd_deepreduce.batch import NativeBatch
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import VALUE_CODECS
from hvd_deepreduce.settings import Settings, stage_of
from hvd_deepreduce.sparse import MatrixView, Support
from hvd_deepreduce.value_codecs.quant import Quant
from hvd_deepreduce.wire.bundle import BundleHeader

SPARSIFIERS = ("none", "topk", "threshold", "dropping")
INDEX_IDS = (1, 3, 4)
VALUE_IDS = (1, 2, 3, 4)
INDEX_TARGETS = {"huffman(of='bytes')": "huffman_bytes", "huffman(of='gaps')": "huffman_gaps"}
VALUE_TARGETS = {name: name for name in ("fp16", "bf16", "qsgd", "terngrad", "natural", "quant", "sketch")} | {
    "onebit": "centroids",
    "twobit": "centroids",
    "fit_poly": "fit",
    "fit_dexp": "fit",
}


def kept_of(fields: vectors.Fields) -> int:
    given = fields.get("positions", fields.get("input", "")).split()
    return int(fields.get("kept", len(given)))


def is_double(fields: vectors.Fields) -> int:
    return int(fields.get("dtype") == "float64")


def index_input(fields: vectors.Fields) -> bytes:
    numel = vectors.Place.of(fields).view.numel
    return numel.to_bytes(5, "little") + kept_of(fields).to_bytes(5, "little") + bytes.fromhex(fields["payload"])


def bloom_input(fields: vectors.Fields) -> bytes:
    numel, sliced = vectors.Place.of(fields).view.numel, "pybloom" in fields["settings"]
    return (
        struct.pack("<H", numel)
        + kept_of(fields).to_bytes(5, "little")
        + bytes([sliced])
        + bytes.fromhex(fields["payload"])
    )


def quant_input(kept: int, flags: int, rows: int, payload: bytes) -> bytes:
    """A matrix of which every other element is kept."""
    return struct.pack("<HBBB", kept, flags, rows - 1, 1) + payload


def value_input(fields: vectors.Fields) -> bytes:
    codec = stage_of("value", VALUE_CODECS, fields["settings"])
    if codec.name == "quant":
        return quant_input(kept_of(fields), is_double(fields) + 2 * codec.unbiased, 1, bytes.fromhex(fields["payload"]))
    if codec.name == "sketch":
        flags = is_double(fields) + 2 * min(codec.quantiles - 2, 127)
        return struct.pack("<HB", kept_of(fields) % 4096, flags) + bytes.fromhex(fields["payload"])
    if codec.name in ("fit_poly", "fit_dexp"):
        flags = is_double(fields) + 2 + 4 * (codec.name == "fit_dexp") + 8 * min(getattr(codec, "segments", 0), 31)
        head = struct.pack("<HBB", kept_of(fields) % 1024, flags, getattr(codec, "degree", 1) - 1)
        return head + bytes.fromhex(fields["payload"])
    head = kept_of(fields).to_bytes(5, "little") + bytes([is_double(fields)])
    if codec.name == "qsgd":
        head += bytes([codec.bits - 2]) + (codec.bucket - 1).to_bytes(3, "little")
    if codec.name in ("onebit", "twobit"):
        head += bytes([int(codec.name == "twobit") + 2 * int(codec.centroid != "min"), 0])
    return head + bytes.fromhex(fields["payload"])


WITHOUT_KERNELS = ("auto", "pco")
"""Codecs that call other codecs' kernels, or a library."""


def stages_input(fields: vectors.Fields) -> bytes:
    """What take_stages.hpp and the byte of the value type read."""
    settings = Settings.from_string(fields["settings"])
    value = settings.value
    places = (
        SPARSIFIERS.index(settings.sparsifier.name),
        INDEX_IDS.index(settings.index.wire_id),
        VALUE_IDS.index(value.wire_id),
        int(settings.memory.name == "residual"),
        getattr(value, "bits", 7) - 2,
    )
    bucket = (getattr(value, "bucket", 512) - 1).to_bytes(3, "little")
    threshold = struct.pack("<d", getattr(settings.sparsifier, "value", 0.0))
    return bytes(places) + bucket + threshold + bytes([is_double(fields)])


def body_input(fields: vectors.Fields) -> bytes:
    numel = vectors.Place.of(fields).view.numel
    return stages_input(fields) + struct.pack("<BBH", 0, 0, numel - 1) + bytes.fromhex(fields["frame"])


def encode_input(fields: vectors.Fields) -> bytes:
    numel = vectors.Place.of(fields).view.numel
    kept = max(1, round(numel * getattr(Settings.from_string(fields["settings"]).sparsifier, "density", 1)))
    return (
        stages_input(fields) + struct.pack("<HHHHHQQ", numel - 1, kept, 0, 0, 0, 0, 0) + bytes.fromhex(fields["input"])
    )


def inputs(fields: vectors.Fields) -> Iterator[tuple[str, bytes]]:
    """The targets a case is for, with its input."""
    codec = fields.get("settings", "").split("(")[0]
    if fields["kind"] == "index" and codec == "bloom":
        yield codec, bloom_input(fields)
    elif fields["kind"] == "index" and codec not in WITHOUT_KERNELS:
        yield INDEX_TARGETS.get(fields["settings"], codec), index_input(fields)
    elif fields["kind"] == "value" and codec in VALUE_TARGETS:
        yield VALUE_TARGETS[codec], value_input(fields)
    elif fields["kind"] == "frame" and NativeBatch.can(Settings.from_string(fields["settings"])):
        yield "body", body_input(fields)
        if "input" in fields:
            yield "encode", encode_input(fields)


def overflows() -> Iterator[tuple[str, bytes]]:
    """Gradients about half a step of the largest float, which is the residual: the sums overflow, or just don't."""
    frame = {"settings": "none+bitmap+raw+residual", "shape": "1"}
    for dtype, code, exponent, largest in (
        ("float32", "<2f", 103, (2 - 2**-23) * 2.0**127),
        ("float64", "<2d", 970, sys.float_info.max),
    ):
        for offset in range(-3, 3):
            values = struct.pack(code, 2.0 ** (exponent + offset), largest)
            yield f"overflow_{dtype}_{offset + 3}", encode_input(frame | {"dtype": dtype, "input": values.hex()})


def matrices() -> Iterator[tuple[str, bytes]]:
    """Signs by row and column, plain and with a dither."""
    kept, rows = 300, 12
    view = MatrixView(rows, 2 * kept // rows + 1)
    support = Support(np.arange(0, 2 * kept, 2, dtype=view.position_dtype), view)
    values = np.random.default_rng(0).laplace(size=kept).astype(np.float32)
    for unbiased in (False, True):
        payload = Quant(0.1, unbiased).encode(values, support, Draw())
        yield f"matrix_{unbiased}", quant_input(kept, 2 * unbiased, rows, payload)


def bundles() -> Iterator[tuple[str, bytes]]:
    """What two ranks gathered, and bodies to write bundles of."""
    headers = [BundleHeader(0x01020304, rank, bucket=2, step=300) for rank in range(2)]
    gathered = b"".join(header.frames(b"frames", previous_length=0) for header in headers)
    fields = struct.pack("<HII", 2, 300, 0x01020304)
    yield "gathered", bytes([0, 1]) + fields + gathered
    yield "one_short", bytes([0, 2]) + fields + gathered
    yield "error", bytes([0, 0]) + fields + headers[0].error("why")
    yield "written", bytes([1, 1]) + fields + struct.pack("<H", 9) + b"frames"


def write(folder: Path, name: str, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main(folder: Path) -> None:
    for name, data in overflows():
        write(folder / "encode", name, data)
    for name, data in matrices():
        write(folder / "quant", name, data)
    for name, data in bundles():
        write(folder / "bundle", name, data)
    for path in sorted(vectors.FOLDER.glob("*/*.txt")):
        for target, data in inputs(vectors.read(path)):
            write(folder / target, f"{path.parent.name}_{path.stem}", data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
