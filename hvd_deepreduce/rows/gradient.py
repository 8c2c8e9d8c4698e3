"""A gradient of rows under way: what a `Bucket` is given, and what it overwrites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.rows.merge import Rows, add_rows, table_of
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.sparse import TensorSpec, Values


class RowGradient:
    """`rows` are first this rank's own, in any order, and after decoding the merged ones of all ranks."""

    def __init__(self, rows: Rows, spec: TensorSpec, slots: Mapping[str, Values], pipeline: RowPipeline):
        self.rows = rows
        self._spec = spec
        self._slots = slots
        self._pipeline = pipeline

    def encode(self, draw: Draw) -> EncodedGradient:
        """The frame of the rows; the slots are brought up to date."""
        return self._pipeline.encode(self.rows, self._spec, self._slots, draw)

    def overwrite(self, of_ranks: Sequence[Rows], factor: float) -> None:
        """Takes factor x the sum of all ranks' rows."""
        columns = table_of(self._spec).columns
        self.rows = add_rows([(rows, factor) for rows in of_ranks], columns, self._spec.value_dtype)
