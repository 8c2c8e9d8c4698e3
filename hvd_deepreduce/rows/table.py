"""What an exchange of rows keeps of one table from step to step, in either wing."""

from __future__ import annotations

from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.rows.batch import RowBatch
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.rows.statistics import TableStatistics
from hvd_deepreduce.sparse import TensorSpec, Values


class Table:
    """A parameter that had a sparse gradient; its bucket has the number of its place, and no other member."""

    def __init__(self, place: int, spec: TensorSpec, pipeline: RowPipeline, *, rank: int, size: int):
        self.spec = spec
        self.bucket = Bucket(place, [spec], pipeline.settings, RowBatch(pipeline), rank, size)
        self.slots: dict[str, Values] = pipeline.new_slots(spec)
        self.statistics = TableStatistics(spec)
        self._pipeline = pipeline

    def take_back(self) -> None:
        """Gives back to the slots what this rank sent in the last step; once."""
        for _, frame, draw in self.bucket.take_back():
            self._pipeline.restore(frame, self.spec, self.slots, draw)
