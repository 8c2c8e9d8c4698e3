"""What one training job found: kept as JSON, shown as a table."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from hvd_deepreduce.demo.progress import result_console


@dataclass(frozen=True)
class Volume:
    """Bytes that one rank hands to Horovod per step: gradients to allreduce, frames with all headers to allgather."""

    sent_bytes: float
    dense_bytes: float
    compressed_sent_bytes: float
    """Of the tensors that are compressed; small ones pass as they are."""
    compressed_dense_bytes: float

    @classmethod
    def per_step(cls, compression: str, dense_bytes: int, stats: Mapping[str, Any] | None) -> "Volume":
        """From `DeepReduce.stats()`, or without it for one of Horovod's own compressions."""
        if stats is None:
            sent = dense_bytes / 2 if compression == "fp16" else dense_bytes
            return cls(
                sent_bytes=sent, dense_bytes=dense_bytes, compressed_sent_bytes=sent, compressed_dense_bytes=dense_bytes
            )
        sent = stats["total"]["sent_bytes"] / stats["steps"]
        return cls(
            sent_bytes=sent + stats["pass_through"]["dense_bytes"],
            dense_bytes=dense_bytes,
            compressed_sent_bytes=sent,
            compressed_dense_bytes=stats["total"]["dense_bytes"] / stats["steps"],
        )

    @property
    def relative(self) -> float:
        """Sent / dense bytes, of all tensors."""
        return self.sent_bytes / self.dense_bytes

    @property
    def relative_of_compressed(self) -> float:
        """Sent / dense bytes, of the compressed tensors alone."""
        return self.compressed_sent_bytes / self.compressed_dense_bytes


@dataclass(frozen=True)
class Times:
    """Mean milliseconds per step on rank 0; what they mean stands with the clock that took them."""

    step_ms: float
    compute_ms: float
    coding_ms: float
    communication_ms: float


@dataclass(frozen=True)
class JobResult:
    """See the module."""

    compression: str
    data: str
    ranks: int
    steps: int
    batch_size: int
    seed: int
    parameters: int
    accuracy: float
    replicas_identical: bool
    volume: Volume
    times: Times

    def to_json(self) -> str:
        """The fields, and what follows from them."""
        content: dict[str, Any] = dataclasses.asdict(self)
        content["volume"] |= {
            "relative": self.volume.relative,
            "relative_of_compressed": self.volume.relative_of_compressed,
        }
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "JobResult":
        """The inverse of `to_json`."""
        content = json.loads(text)
        return cls(**content | {"volume": _only(Volume, content["volume"]), "times": _only(Times, content["times"])})


def tell(result: JobResult, report: str | None) -> None:
    """Prints the result and, if there is one, DeepReduce's own report."""
    console = result_console(width=120)
    console.print(result_table([result]))
    console.print(f"parameters identical on all ranks: {'yes' if result.replicas_identical else 'NO'}")
    if report is not None:
        print(report)


def _only(kind: type, content: dict[str, Any]) -> Any:
    return kind(**{field.name: content[field.name] for field in dataclasses.fields(kind)})


def result_table(results: Sequence[JobResult]) -> Table:
    """One row per job."""
    first = results[0]
    table = Table(
        title=Text(f"{first.data}: {first.parameters:,} parameters, {first.ranks} ranks, {first.steps:,} steps"),
        caption=(
            "Bytes handed to Horovod per rank and step, all headers included; volume: of them to the dense bytes, "
            "for the compressed tensors and for all; times: milliseconds per step on rank 0, in all and split."
        ),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("compression", overflow="fold", min_width=9)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(*result_cells(result))
    return table


_HEADINGS = (
    "test\naccuracy",
    "bytes\nsent",
    "volume,\ncom-\npressed",
    "volume,\nall",
    "ms /\nstep",
    "com-\npute",
    "coding",
    "commu-\nnica-\ntion",
)


def result_cells(result: JobResult) -> list[str]:
    """One job as text, in the order of the table's columns."""
    volume, times = result.volume, result.times
    return [
        result.compression,
        f"{100 * result.accuracy:.2f} %",
        f"{volume.sent_bytes:,.0f}",
        f"{volume.relative_of_compressed:.5f}",
        f"{volume.relative:.5f}",
        *(f"{ms:.1f}" for ms in (times.step_ms, times.compute_ms, times.coding_ms, times.communication_ms)),
    ]
