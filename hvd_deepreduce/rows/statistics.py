"""What rows cost: beside the numbers of all tensors, how many rows there were before and after the merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hvd_deepreduce.rows.merge import table_of
from hvd_deepreduce.statistics import Statistics, TensorStatistics

NUMBER_BYTES: Final = 8
"""Of a row's number where rows are sent as they are."""
_OF_ROWS = ("rows_given", "rows_sent", "given_bytes", "merged_bytes")


@dataclass
class TableStatistics(TensorStatistics):
    """Sums over the steps of one table on this rank; `kept` counts elements, as for other tensors."""

    rows_given: int = 0
    rows_sent: int = 0

    def row(self) -> dict[str, Any]:
        """Adds `given_bytes`, what the rows take as Horovod sends them, and `merged_bytes`, had it merged them."""
        row_bytes = table_of(self.spec).columns * self.spec.itemsize + NUMBER_BYTES
        return {
            **super().row(),
            "rows_given": self.rows_given,
            "rows_sent": self.rows_sent,
            "given_bytes": self.rows_given * row_bytes,
            "merged_bytes": self.rows_sent * row_bytes,
        }


class RowStatistics(Statistics):
    """All tables of one optimizer on this rank; they are added as they get their first gradient."""

    def __init__(self, settings: str):
        super().__init__(settings, [], [])

    def as_dict(self) -> dict[str, Any]:
        """As for other tensors, with the sums of `TableStatistics.row` in the total."""
        found = super().as_dict()
        found["total"] |= {key: sum(row[key] for row in found["tensors"]) for key in _OF_ROWS}
        return found
