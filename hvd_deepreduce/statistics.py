"""What was sent and what it cost: the numbers, and a table of them."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from hvd_deepreduce.console import PlainConsole
from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.records import ratios
from hvd_deepreduce.sparse import TensorSpec


@dataclass
class TensorStatistics:
    """Sums over the steps of one tensor on this rank. Bytes are of frames; times are in milliseconds of wall clock."""

    spec: TensorSpec
    steps: int = 0
    kept: int = 0
    not_finite: int = 0
    index_bytes: int = 0
    value_bytes: int = 0
    sent_bytes: int = 0
    encode_ms: float = 0.0
    decode_ms: float = 0.0
    wait_ms: float = 0.0

    def add(self, encoded: EncodedGradient) -> None:
        """Counts what was sent in one step."""
        self.steps += 1
        self.kept += encoded.kept
        self.not_finite += not encoded.finite
        self.index_bytes += encoded.index_bytes
        self.value_bytes += encoded.value_bytes
        self.sent_bytes += len(encoded.frame)
        self.encode_ms += encoded.milliseconds

    def row(self) -> dict[str, Any]:
        """The sums with what follows from them."""
        dense_bytes = self.steps * self.spec.numel * self.spec.itemsize
        return {
            "name": self.spec.name,
            "numel": self.spec.numel,
            "steps": self.steps,
            "kept": self.kept,
            "not_finite": self.not_finite,
            "dense_bytes": dense_bytes,
            "index_bytes": self.index_bytes,
            "value_bytes": self.value_bytes,
            "sent_bytes": self.sent_bytes,
            **ratios(self.sent_bytes, dense_bytes, self.kept),
            "encode_ms": self.encode_ms,
            "decode_ms": self.decode_ms,
            "wait_ms": self.wait_ms,
        }


_SUMMED = (
    "numel",
    "kept",
    "not_finite",
    "dense_bytes",
    "index_bytes",
    "value_bytes",
    "encode_ms",
    "decode_ms",
    "wait_ms",
)


class Statistics:
    """All tensors of one compressor on this rank."""

    def __init__(self, settings: str, specs: Sequence[TensorSpec], pass_through: Sequence[tuple[int, int]]):
        """`pass_through` has elements and bytes of every tensor that Horovod reduces itself."""
        self.settings = settings
        self.tensors = [TensorStatistics(spec) for spec in specs]
        self.pass_through = pass_through
        self.since = time.time()
        self.steps = 0
        self.collectives = 0
        self.bundle_bytes = 0
        self.probe_bytes = 0

    def as_dict(self) -> dict[str, Any]:
        """See `hvd_deepreduce.torch.DeepReduce.stats`."""
        rows = [tensor.row() for tensor in self.tensors]
        total: dict[str, Any] = {key: sum(row[key] for row in rows) for key in _SUMMED}
        sent_bytes = self.bundle_bytes + self.probe_bytes
        total |= {"sent_bytes": sent_bytes, "bundle_bytes": self.bundle_bytes, "probe_bytes": self.probe_bytes}
        total |= ratios(sent_bytes, total["dense_bytes"], total["kept"])
        return {
            "settings": self.settings,
            "since": self.since,
            "steps": self.steps,
            "collectives": self.collectives,
            "tensors": rows,
            "total": total,
            "pass_through": {
                "tensors": len(self.pass_through),
                "numel": sum(numel for numel, _ in self.pass_through),
                "dense_bytes": sum(size for _, size in self.pass_through),
            },
        }

    def as_table(self) -> str:
        """Means per step, as text."""
        data = self.as_dict()
        table = Table(title=f"{data['settings']}: {data['steps']} steps, per step and rank")
        table.add_column("tensor")
        for column in _COLUMNS:
            table.add_column(column, justify="right")
        for row in data["tensors"]:
            table.add_row(row["name"], *_cells(row, row["steps"]))
        table.add_section()
        total = data["total"]
        # Steps before a checkpoint are counted, and what was sent in them is not.
        counted = max((row["steps"] for row in data["tensors"]), default=0)
        table.add_row("total, with headers and probes", *_cells(total, counted))
        rest = data["pass_through"]
        table.caption = (
            f"{rest['tensors']} tensors of {rest['numel']:,} elements ({rest['dense_bytes']:,} bytes) pass uncompressed"
        )
        if not data["steps"]:
            table.caption += ". No step was compressed so far: with one process Horovod never calls a compressor"
        text = io.StringIO()
        PlainConsole(file=text, width=160).print(table)
        return text.getvalue()


_COLUMNS = (
    "elements",
    "kept",
    "dense bytes",
    "sent bytes",
    "relative volume",
    "bits per kept",
    "encode ms",
    "decode ms",
    "wait ms",
)


def _cells(row: dict[str, Any], steps: int) -> list[str]:
    steps = max(1, steps)
    volume, bits = row["relative_volume"], row["bits_per_kept"]
    return [
        f"{row['numel']:,}",
        f"{row['kept'] / steps:,.1f}",
        f"{row['dense_bytes'] / steps:,.0f}",
        f"{row['sent_bytes'] / steps:,.1f}",
        "-" if volume is None else f"{volume:.5f}",
        "-" if bits is None else f"{bits:.2f}",
        *(f"{row[key] / steps:.3f}" for key in ("encode_ms", "decode_ms", "wait_ms")),
    ]
