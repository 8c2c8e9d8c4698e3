"""What one way of exchanging sparse gradients cost and gave, and a table of several."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich import box
from rich.table import Table

from hvd_deepreduce.demo.progress import result_console

STOCK: Final = "stock"
DENSE: Final = "sparse_as_dense"
WAYS: Final = (STOCK, DENSE, "rice+raw", "rice+qsgd(bits=7, bucket={dimension})")
"""Horovod's own two, and how rows are coded without loss and with 7-bit values, a norm for each row."""


@dataclass(frozen=True)
class Sent:
    """Bytes per step that one rank handed to Horovod."""

    given: float
    """Of the rows as the framework makes them: 8 bytes for a row's number, and its values."""
    merged: float
    """Of the same when those that are there twice are merged."""
    tables: float
    """What was sent of them, headers and all."""
    rest: float
    """Of all other gradients."""

    @classmethod
    def per_step(cls, way: str, given: float, dense: float, rest: float, stats: Mapping[str, Any] | None) -> Sent:
        """`dense` are the bytes of the tables themselves; `stats` those of the rows, None for Horovod's own ways."""
        if stats is None:
            return cls(given=given, merged=given, tables=given if way == STOCK else dense, rest=rest)
        total, steps = stats["total"], stats["steps"]
        assert total["given_bytes"] == given * steps
        return cls(given=given, merged=total["merged_bytes"] / steps, tables=total["sent_bytes"] / steps, rest=rest)

    @property
    def total(self) -> float:
        """All of it."""
        return self.tables + self.rest


@dataclass(frozen=True)
class Way:
    """See the module."""

    name: str
    sent: Sent
    hit_rate: float
    step_ms: float
    exchange_ms: float | None
    """Of a step, waiting for Horovod; None where the framework does not tell."""
    replicas_identical: bool

    @property
    def merges(self) -> bool:
        """Whether it is ours."""
        return self.name not in (STOCK, DENSE)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Way:
        """The inverse of `as_dict`."""
        return cls(**{**fields, "sent": Sent(**fields["sent"])})

    def as_dict(self) -> dict[str, Any]:
        """The fields, fit for JSON."""
        return dataclasses.asdict(self)


def ways_table(ways: Sequence[Way], title: str) -> Table:
    """Bytes beside those of the first way, which is Horovod's own."""
    table = Table(title=title, box=box.MARKDOWN)
    table.add_column("sparse gradients")
    for column in ("bytes sent per rank and step", "of stock", "hit rate", "ms per step", "of it waiting"):
        table.add_column(column, justify="right")
    for way in ways:
        table.add_row(
            way.name,
            f"{way.sent.total:,.0f}",
            f"1/{ways[0].sent.total / way.sent.total:.2f}",
            f"{100 * way.hit_rate:.2f} %",
            f"{way.step_ms:.0f}",
            "-" if way.exchange_ms is None else f"{way.exchange_ms:.0f}",
        )
    return table


def apart_table(ways: Sequence[Way]) -> Table:
    """The merge and the coding one after the other, of the tables' gradients alone."""
    table = Table(title="the merge and the coding apart, bytes of the tables per rank and step", box=box.MARKDOWN)
    table.add_column("rows coded by")
    for column in ("as given", "merged", "of given", "coded", "of merged"):
        table.add_column(column, justify="right")
    for way in ways:
        if not way.merges:
            continue
        sent = way.sent
        table.add_row(
            way.name,
            f"{sent.given:,.0f}",
            f"{sent.merged:,.0f}",
            f"1/{sent.given / sent.merged:.2f}",
            f"{sent.tables:,.0f}",
            f"1/{sent.merged / sent.tables:.2f}",
        )
    return table


def tell(ways: Sequence[Way], title: str, what: str) -> None:
    """Prints both tables, and whether all ranks ended alike; `what` is the framework's word for parameters."""
    console = result_console(width=130)
    console.print(ways_table(ways, title))
    console.print(apart_table(ways))
    console.print(f"{what} identical on all ranks: {'yes' if all(way.replicas_identical for way in ways) else 'NO'}")
