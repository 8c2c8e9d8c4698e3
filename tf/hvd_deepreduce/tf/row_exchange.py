"""Sparse gradients, `tf.IndexedSlices`: their rows are merged, coded, gathered and added up, in the graph they are of.

All of a step's are sent before the first is decoded, and whatever Horovod reduces itself waits for the last, so that an
error surfaces where no collective is half done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from hvd_deepreduce import agreement
from hvd_deepreduce.errors import DeepReduceError, SettingsMismatchError, StateMismatchError
from hvd_deepreduce.failures import failure_of, without_rank
from hvd_deepreduce.rows.gradient import RowGradient
from hvd_deepreduce.rows.merge import Rows
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.rows.statistics import RowStatistics
from hvd_deepreduce.rows.table import Table as NeutralTable
from hvd_deepreduce.sparse import DTYPES, TensorSpec, Values
from hvd_deepreduce.tf import row_arrays, row_checkpoint, watch
from hvd_deepreduce.tf.collectives import gather, gather_now
from hvd_deepreduce.tf.failure import Failure
from hvd_deepreduce.tf.introduction import introduce
from hvd_deepreduce.tf.last_step import LastStep
from hvd_deepreduce.tf.parameters import NamedVariables, name_of
from hvd_deepreduce.tf.roll_call import RollCall

_FAREWELL_S = 10.0
Array = np.ndarray[Any, np.dtype[Any]]


class Table(NeutralTable):
    """A variable that had a sparse gradient."""

    def __init__(self, place: int, spec: TensorSpec, pipeline: RowPipeline, *, rank: int, size: int):
        super().__init__(place, spec, pipeline, rank=rank, size=size)
        self.gradient: RowGradient | None = None
        self.watched = 0
        self.sent_at = 0.0

    def fill(self, steps: int, slots: Mapping[str, Values]) -> None:
        """Goes on after so many steps."""
        for name, values in slots.items():
            self.slots[name][:] = values
        self.bucket.resume(steps)


class RowExchange(tf.train.experimental.PythonState):  # type: ignore[misc]
    """The sparse gradients of one optimizer or tape; residuals and step counters are NumPy's, not the graph's.

    `tf.train.Checkpoint` saves them all the same, when it is given one: `tf.train.Checkpoint(rows=optimizer.rows)`.
    """

    def __init__(
        self, name: str, settings: RowSettings, *, average: bool, process_set: Any, timeout_s: float, owns_name: bool
    ):
        """`owns_name` where another of the name must not be used meanwhile; tapes are made anew in every step."""
        self.name = name
        self._owns_name = owns_name
        self.settings = settings
        self._average = average
        self._process_set = process_set
        self._timeout_s = timeout_s
        self._pipeline = RowPipeline(settings)
        self._statistics = RowStatistics(str(settings))
        self._specs: list[TensorSpec] = []
        self._variables: NamedVariables | None = None
        self._tables: dict[int, Table] = {}
        self._loaded: Mapping[str, Any] | None = None
        self._failure = Failure(self._farewell)
        self._begun = False
        self._roll_call: RollCall | None = None
        self._last_step = LastStep()
        # TensorFlow runs what is in a graph on threads of its own.
        self._lock = threading.RLock()

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The sum or average of all ranks' `tf.IndexedSlices`, merged; others as they are, once the roll is called."""
        places = [place for place, one in enumerate(gradients) if isinstance(one, tf.IndexedSlices)]
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        with tf.init_scope():
            self._begin(variables)
            tables = {place: self._table(place, variables[place]) for place in places}
            roll_call = self._roll_call
            assert roll_call is not None
            if tables and self._owns_name:
                roll_call.claim(graph)
        gathered = {}
        last = row_arrays.last_in(graph)
        # A step may reduce several times, and names of collectives can be used once at a time.
        with tf.device("CPU"), tf.control_dependencies(last.get(self.name, [])):
            present = roll_call.call(gradients, variables, watched=False)
            for place, table in tables.items():
                merged = row_arrays.merged(gradients[place], table.spec)
                bundle = tf.numpy_function(partial(self._encode, table), merged, tf.uint8)
                with tf.control_dependencies([present]):
                    bundle = tf.identity(bundle)
                gathered[place] = gather(bundle, f"{self.name}.rows.bucket.{place}", self._process_set)
            sums: dict[int, tf.IndexedSlices] = {}
            with tf.control_dependencies(list(gathered.values())):
                for place, table in tables.items():
                    kinds = [tf.int64, tf.as_dtype(table.spec.value_dtype)]
                    numbers, values = tf.numpy_function(partial(self._decode, table), [gathered[place]], kinds)
                    sums[place] = row_arrays.slices_like(gradients[place], numbers, values, table.spec)
        last[self.name] = [present, *(one.values for one in sums.values())]
        with tf.control_dependencies(last[self.name]):
            return [
                sums[place] if place in sums else None if one is None else tf.identity(one)
                for place, one in enumerate(gradients)
            ]

    def _begin(self, variables: Sequence[Any]) -> None:
        """At the first call: compares settings with the other ranks, who must do the same within the time limit."""
        if self._begun:
            return
        specs = [
            TensorSpec(name_of(place, variable), tuple(variable.shape), tf.as_dtype(variable.dtype).name)
            for place, variable in enumerate(variables)
            if tf.as_dtype(variable.dtype).name in DTYPES and variable.shape.rank
        ]
        average = int(self._average)
        try:
            introduce(f"{self.name}.rows", self.settings, specs, self._process_set, self._timeout_s, average=average)
        except SettingsMismatchError:
            self._farewell()
            raise
        self._specs = specs
        self._variables = NamedVariables(variables)
        self._roll_call = RollCall(f"{self.name}.rows", self._process_set, self._timeout_s, self._farewell)
        self._begun = True

    def _table(self, place: int, variable: Any) -> Table:
        name = name_of(place, variable)
        if self._variables is not None:
            self._variables.place_of(variable, place)  # raises for another model's
        known = self._tables.get(place)
        if known is None:
            found = [spec for spec in self._specs if spec.name == name]
            if not found:
                raise DeepReduceError(
                    f"tensor {name!r} was not there at the first step: give another model a name= of its own"
                )
            rank, size = self._process_set.rank(), self._process_set.size()
            known = self._tables[place] = Table(place, found[0], self._pipeline, rank=rank, size=size)
            self._statistics.tensors.append(known.statistics)
            if self._loaded is not None:
                self._go_on(known, self._loaded)
        if known.spec.shape != tuple(variable.shape):
            raise DeepReduceError(f"tensor {name!r}: shape {tuple(variable.shape)}, before it was {known.spec.shape}")
        return known

    def _go_on(self, table: Table, state: Mapping[str, Any]) -> None:
        try:
            table.fill(*row_checkpoint.of_table(state, table.spec, table.slots))
        except StateMismatchError as error:  # must reach all, in place of this rank's rows
            self._failure.note(error, table.bucket.rank, table.spec.name)

    # --- in the graph -------------------------------------------------------------------------------------------------

    def _encode(self, table: Table, numbers: Array, values: Array, given: Array) -> Array:
        bundle = b""
        with self._lock:
            self._last_step.encoding(table.bucket.number)
        try:
            if self._failure.error is None:
                bundle = self._bundle(table, Rows(numbers, values), int(given))
        except Exception as error:  # the wing's edge: an error on one rank must reach all
            self._failure.note(error, table.bucket.rank, table.spec.name)
        if self._failure.error is not None:
            bundle = table.bucket.error_bundle(without_rank(self._failure.error))
        what = f"DeepReduce {self.name!r}, rows of {table.spec.name!r} in step {table.bucket.step}"
        table.watched, table.sent_at = watch.begin(what, self._timeout_s), time.perf_counter()
        with self._lock:
            self._statistics.bundle_bytes += len(bundle)
            self._statistics.collectives += 1
        return np.frombuffer(bundle, np.uint8)

    def _bundle(self, table: Table, rows: Rows, given: int) -> bytes:
        table.statistics.rows_given += given
        table.statistics.rows_sent += len(rows.numbers)
        table.gradient = RowGradient(rows, table.spec, table.slots, self._pipeline)
        table.bucket.put(0, table.gradient, table.slots)
        table.bucket.encode(table.bucket.close())
        table.statistics.add(table.bucket.encoded[0])
        return table.bucket.bundle()

    def _decode(self, table: Table, gathered: Array) -> list[Array]:
        watch.end(table.watched)
        with self._lock:
            self._last_step.decoding()
        table.statistics.wait_ms += 1e3 * (time.perf_counter() - table.sent_at)
        bucket, gradient = table.bucket, table.gradient
        if self._failure.error is not None or gradient is None:
            self._leave(self._failure.error)
        try:
            [decoded] = bucket.decode(gathered.tobytes(), [gradient], 1.0 / bucket.size if self._average else 1.0)
        except DeepReduceError as error:
            self._leave(error)
        except Exception as error:  # as above
            self._leave(failure_of(error, bucket.rank, table.spec.name))
        table.statistics.decode_ms += decoded.milliseconds
        with self._lock:
            self._statistics.steps = max(self._statistics.steps, bucket.steps_done)
        return [gradient.rows.numbers, gradient.rows.values]

    def _leave(self, error: DeepReduceError | None) -> NoReturn:
        assert error is not None
        self._failure.leave(error, self._process_set.rank(), self._process_set.size())

    def _farewell(self) -> None:
        gather_now(b"\n", f"{self.name}.farewell", "farewell", self._process_set, min(self._timeout_s, _FAREWELL_S))

    # --- between steps ------------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """What this rank sent so far; as `DeepReduce.stats`, with four sums more for each table and in all.

        `rows_given` are the rows of the gradients as TensorFlow made them, `rows_sent` those left after the merge.
        `given_bytes` are what Horovod would have sent of the ones, at 8 bytes for a row's number, and `merged_bytes` of
        the others.
        """
        with self._lock:
            return self._statistics.as_dict()

    def report(self) -> str:
        """The statistics as a table, per step."""
        with self._lock:
            return self._statistics.as_table()

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals and step counters, NumPy arrays and numbers; save one for each rank, between steps."""
        with self._lock:
            self._require_rest("state_dict()")
            tables = {table.spec.name: table for table in self._tables.values()}
            steps: dict[str, int] = {name: table.bucket.steps_done for name, table in tables.items()}
            slots = {name: {key: slot.copy() for key, slot in of.slots.items()} for name, of in tables.items()}
            # Of tables that were loaded, and had no gradient since.
            waiting = self._loaded or {"steps": {}, "slots": {}}
            return {
                "version": row_checkpoint.VERSION,
                "identity": self._identity(),
                "steps": {**waiting["steps"], **steps},
                "slots": {**waiting["slots"], **slots},
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict` of the same rank; every rank must load its own, saved after the same step.

        Raises `StateMismatchError`, and changes nothing, for a state of another rank or setting. Tables that had no
        gradient yet take theirs when they have one.
        """
        with self._lock:
            self._require_rest("load_state_dict()")
            row_checkpoint.require_own(self._identity(), state)
            tables = list(self._tables.values())
            found = [row_checkpoint.of_table(state, table.spec, table.slots) for table in tables]
            for table, (steps, slots) in zip(tables, found, strict=True):
                table.fill(steps, slots)
            self._loaded = state

    def serialize(self) -> bytes:
        """For `tf.train.Checkpoint`."""
        return row_checkpoint.to_bytes(self.state_dict())

    def deserialize(self, string_value: bytes) -> None:
        """For `tf.train.Checkpoint`; see `load_state_dict`."""
        self.load_state_dict(row_checkpoint.from_bytes(string_value))

    def rollback(self) -> None:
        """Takes the last step's sending back: for a step that the optimizer skipped, on every rank."""
        with self._lock:
            self._require_rest("rollback()")
            for number in self._last_step.numbers:
                self._tables[number].take_back()
            self._last_step.forget()

    def _identity(self) -> dict[str, Any]:
        rank, size = self._process_set.rank(), self._process_set.size()
        return agreement.identity(self.name, self.settings, None, rank=rank, size=size)

    def _require_rest(self, caller: str) -> None:
        if any(table.bucket.sent for table in self._tables.values()):
            raise DeepReduceError(f"{caller}: gradients are under way; call it between steps")
