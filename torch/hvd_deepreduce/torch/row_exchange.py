"""Sparse gradients, those of `nn.Embedding(sparse=True)`: their rows are merged, coded, gathered and added up.

Horovod's optimizer asks for them one by one, and each has a gather of its own, named by the place of its parameter.
They need no probe, as dense gradients do: the op is known when the optimizer is made.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import horovod.torch as hvd
import torch

from hvd_deepreduce import agreement
from hvd_deepreduce.errors import ChangedGradientError, DeepReduceError, SettingsMismatchError
from hvd_deepreduce.rows.gradient import RowGradient
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.rows.statistics import RowStatistics
from hvd_deepreduce.rows.table import Table
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.torch import arrays, row_checkpoint
from hvd_deepreduce.torch.collectives import finish_gather
from hvd_deepreduce.torch.farewell import leave
from hvd_deepreduce.torch.handed import Handed
from hvd_deepreduce.torch.introduction import Introduction
from hvd_deepreduce.torch.outbox import Outbox


class RowExchange:
    """The sparse gradients of one optimizer.

    Which parameters have them shows only when they come; `sparse` names those that are known before.
    """

    def __init__(
        self,
        name: str,
        settings: RowSettings,
        named_parameters: Sequence[tuple[str, torch.Tensor]],
        *,
        average: bool,
        process_set: Any,
        timeout_s: float,
        sparse: Sequence[str] = (),
        scale: Callable[[], float],
        flush: Callable[[], None],
    ):
        """`scale` is that of the loss; `flush` sends whatever else this rank holds back, before it leaves the job."""
        self.name = name
        self.settings = settings
        self.specs = [
            TensorSpec(name, tuple(parameter.shape), dtype)
            for name, parameter in named_parameters
            if (dtype := arrays.dtype_name(parameter)) is not None and parameter.dim()
        ]
        self._place_of = {spec.name: place for place, spec in enumerate(self.specs)}
        self._known = set(sparse)
        self._average = average
        self._process_set = process_set
        self._timeout_s = timeout_s
        self._scale = scale
        self._flush = flush
        self._pipeline = RowPipeline(settings)
        self._statistics = RowStatistics(str(settings))
        self._outbox = Outbox(f"{name}.rows", process_set, timeout_s=timeout_s, timeline=None)
        statement = partial(agreement.statement, f"{name}.rows", settings, self.specs, average=int(average))
        self._introduction = Introduction(f"{name}.rows", process_set, statement)
        self._begun = False
        self._tables: dict[int, Table] = {}
        self._round: set[int] = set()
        """Tables decoded since gradients were last put after a rest."""
        # Autograd may run hooks on threads of its own.
        self._lock = threading.RLock()

    # --- out ----------------------------------------------------------------------------------------------------------

    def knows(self, name: str) -> bool:
        """Whether a parameter's gradients are sparse, as far as one can tell."""
        return name in self._known

    def start(self, name: str, gradient: torch.Tensor, parameter: torch.Tensor) -> Callable[[], torch.Tensor]:
        """Sends a sparse gradient on its way; what is returned waits for the sum of all ranks, merged.

        Waits for no other rank, but at the very first call, which compares settings.
        """
        with self._lock:
            self._begin()
            if name not in self._place_of:
                self._leave(
                    DeepReduceError(f"tensor {name!r}: a sparse gradient of {gradient.dtype} can't be compressed")
                )
            table = self.table(name)
            self._known.add(name)
            scale = 1.0
            try:
                self._require_same_place(table)
                if not self._outbox.numbers:
                    self._round.clear()
                table.bucket.require_new(0)
                scale = self._scale()
                own = self._merged(table, gradient, scale)
                table.bucket.put(0, own, table.slots)
            except Exception as error:  # the wing's edge: an error on one rank must reach all
                self._outbox.fail(name, error)
                own = None
            if not table.bucket.sent:
                self._outbox.send(table.bucket)
            return partial(self._finish, table, own, Handed.over(gradient, parameter), scale)

    def _begin(self) -> None:
        if self._begun:
            return
        try:
            self._introduction.finish(self._timeout_s)
        except SettingsMismatchError as error:
            self._leave(error)
        # Where ranks fill all cores, the thread would take more from the backward pass than it hides.
        if len(os.sched_getaffinity(0)) > hvd.local_size():
            self._outbox.overlap()
        self._begun = True

    def table(self, name: str) -> Table:
        """What lasts from step to step for a parameter, made at the first call; needs `hvd.init()` only."""
        place = self._place_of[name]
        if place not in self._tables:
            rank, size = self._process_set.rank(), self._process_set.size()
            table = self._tables[place] = Table(place, self.specs[place], self._pipeline, rank=rank, size=size)
            self._statistics.tensors.append(table.statistics)
        return self._tables[place]

    def _merged(self, table: Table, gradient: torch.Tensor, scale: float) -> RowGradient:
        """This rank's rows, each once, on the host and without the loss scale."""
        start = time.perf_counter()
        rows = arrays.merged_rows(gradient, table.spec, scale)
        table.statistics.encode_ms += 1e3 * (time.perf_counter() - start)
        table.statistics.rows_given += gradient._nnz()
        table.statistics.rows_sent += len(rows.numbers)
        return RowGradient(rows, table.spec, table.slots, self._pipeline)

    def _require_same_place(self, table: Table) -> None:
        here = self._process_set.rank(), self._process_set.size()
        if here != (table.bucket.rank, table.bucket.size):
            raise DeepReduceError(
                f"this was rank {table.bucket.rank} of {table.bucket.size} and is rank {here[0]} of {here[1]} now: "
                "make a new optimizer after Horovod was started anew"
            )

    # --- in -----------------------------------------------------------------------------------------------------------

    def _finish(self, table: Table, own: RowGradient | None, handed: Handed, scale: float) -> torch.Tensor:
        with self._lock:
            if own is None or self._outbox.failure is not None:
                self._leave(self._outbox.failure)
            try:
                handed.require_unchanged(table.spec.name)
            except ChangedGradientError as error:
                self._leave(error)
            bucket = table.bucket
            start = time.perf_counter()
            sent = self._outbox.finish(bucket.number)
            self._statistics.bundle_bytes += sent.length
            self._statistics.collectives += 1
            what = f"DeepReduce {self.name!r}, rows of {table.spec.name!r} in step {bucket.step}"
            gathered = finish_gather(sent.handle, what, self._timeout_s)
            if self._outbox.failure is not None:  # found while the rows were coded
                self._leave(self._outbox.failure)
            table.statistics.wait_ms += 1e3 * (time.perf_counter() - start)
            table.statistics.add(bucket.encoded[0])
            try:
                [decoded] = bucket.decode(gathered, [own], 1.0 / bucket.size if self._average else 1.0)
                merged = arrays.sparse_like(own.rows, handed.gradient, scale)
            except DeepReduceError as error:
                self._leave(error)
            except Exception as error:  # the wing's edge
                self._outbox.fail(table.spec.name, error)
                self._leave(self._outbox.failure)
            table.statistics.decode_ms += decoded.milliseconds
            self._round.add(bucket.number)
            self._statistics.steps = max(self._statistics.steps, bucket.steps_done)
            return merged

    def _leave(self, error: DeepReduceError | None) -> NoReturn:
        assert error is not None
        self._flush()
        self._outbox.abandon()
        leave(error, self.name, self._process_set, self._timeout_s)

    # --- between steps ------------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """What this rank sent so far; as `DeepReduce.stats`, with four sums more for each table and in all.

        `rows_given` are the rows of the gradients as PyTorch made them, `rows_sent` those left after the merge.
        `given_bytes` are what Horovod would have sent of the ones, 8 bytes for a row's number, and `merged_bytes` of
        the others. Tables are in the order in which they had their first gradient.
        """
        with self._lock:
            included = hvd.is_initialized() and self._process_set.included()
            place = (self._process_set.rank(), self._process_set.size()) if included else (None, None)
            return {"rank": place[0], "size": place[1], **self._statistics.as_dict()}

    def report(self) -> str:
        """The statistics as a table, per step."""
        with self._lock:
            return self._statistics.as_table()

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals and step counters; call it between steps, and save one for each rank."""
        with self._lock:
            self._require_rest("state_dict()")
            return row_checkpoint.save(self.identity(), list(self._tables.values()))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict` of the same rank; every rank must load its own, saved after the same step.

        Raises `StateMismatchError`, and changes nothing, for a state of another rank, model or setting.
        """
        with self._lock:
            self._require_rest("load_state_dict()")
            row_checkpoint.load(self.identity(), self.table, state)
            self._known.update(table.spec.name for table in self._tables.values())

    def rollback(self) -> None:
        """Takes the last step's sending back: for a step that the optimizer skipped, on every rank."""
        with self._lock:
            self._require_rest("rollback()")
            for number in sorted(self._round):
                self._tables[number].take_back()
            self._round.clear()

    def identity(self) -> dict[str, Any]:
        """What a saved state must have in common with the exchange it is loaded into."""
        rank, size = self._process_set.rank(), self._process_set.size()
        return agreement.identity(self.name, self.settings, self.specs, rank=rank, size=size)

    def _require_rest(self, caller: str) -> None:
        if self._outbox.numbers:
            raise DeepReduceError(f"{caller}: gradients are under way; call it after optimizer.step() or synchronize()")
