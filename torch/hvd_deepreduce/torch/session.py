"""One compressor's part in the job: its tensors' state, its buckets' collectives, and how errors reach every rank."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass
from typing import Any, NoReturn

import horovod.torch as hvd
import torch

from hvd_deepreduce import agreement
from hvd_deepreduce.buckets import plan_buckets
from hvd_deepreduce.errors import DeepReduceError, RemoteRankError, UnsupportedOperationError
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.probe import PROBE_BYTES, Probe
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec, Values
from hvd_deepreduce.statistics import Statistics, TensorStatistics
from hvd_deepreduce.torch import arrays
from hvd_deepreduce.torch.collectives import finish_gather, start_gather
from hvd_deepreduce.torch.parameters import NamedParameters

_FAREWELL_S = 10.0

# Sessions in the order they were made: when one begins, it announces all, so that ranks which begin with different ones
# still meet.
_sessions: list[weakref.ref[Session]] = []
# Who has gradients under way, by process set and name: two at a time could be mistaken for one another.
_active: dict[tuple[int, str], weakref.ref[Session]] = {}


@dataclass
class TensorState:
    """What lasts from step to step for one tensor."""

    spec: TensorSpec
    slots: dict[str, Values]
    statistics: TensorStatistics
    bucket: int
    member: int


class Session:
    """See the module; one per `DeepReduce`."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        parameters: NamedParameters,
        *,
        min_numel: int,
        bucket_bytes: int,
        process_set: Any,
        timeout_s: float,
    ):
        self.name = name
        self._pipeline = Pipeline(settings)
        self._process_set = process_set
        self._timeout_s = timeout_s
        self._shaping = {"min_numel": min_numel, "bucket_bytes": bucket_bytes}
        self._specs: list[TensorSpec] = []
        pass_through: list[tuple[int, int]] = []
        self._index_of_place: dict[int, int] = {}
        for place, parameter in enumerate(parameters.parameters):
            dtype = arrays.dtype_name(parameter)
            if dtype is None or parameter.numel() < min_numel:
                pass_through.append((parameter.numel(), parameter.numel() * parameter.element_size()))
            else:
                self._index_of_place[place] = len(self._specs)
                self._specs.append(TensorSpec(parameters.names[place], tuple(parameter.shape), dtype))
        self._plan = plan_buckets(self._specs, bucket_bytes)
        self.statistics = Statistics(str(settings), self._specs, pass_through)
        self._states: list[TensorState] = []
        self._buckets: list[Bucket] = []
        self._handles: dict[int, int] = {}
        self._probe = Probe(0, 1)
        self._probe_template = torch.zeros(0)
        self._announcement: int | None = None
        self._begun = False
        self._failure: DeepReduceError | None = None
        _sessions.append(weakref.ref(self))

    # --- the first call -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """At the first call: compares settings with the other ranks, who must do the same within the time limit."""
        if self._begun:
            return
        if not hvd.is_initialized():
            raise DeepReduceError("hvd.init() must be called before the first backward pass")
        for session in _living_sessions():
            if session._process_set is self._process_set and session._announcement is None and not session._begun:
                session._announce()
        assert self._announcement is not None
        what = f"DeepReduce {self.name!r}, comparing settings"
        gathered = finish_gather(self._announcement, what, self._timeout_s)
        size = self._process_set.size()
        try:
            agreement.compare(gathered, size)
        except DeepReduceError as error:
            self.leave(error)
        self._probe = Probe(self._process_set.rank(), size)
        self._probe_template = torch.tensor(self._probe.values())
        self._make_buckets()
        self._begun = True

    def _announce(self) -> None:
        statement = agreement.statement(
            self.name, self._pipeline.settings, self._specs, self._process_set.size(), **self._shaping
        )
        self._announcement = start_gather(statement, f"{self.name}.settings", self._process_set)

    def _make_buckets(self) -> None:
        states: list[TensorState | None] = [None] * len(self._specs)
        for number, members in enumerate(self._plan):
            specs = [self._specs[index] for index in members]
            self._buckets.append(Bucket(number, specs, self._pipeline, self._probe.rank, self._probe.size))
            for member, index in enumerate(members):
                spec = self._specs[index]
                slots: dict[str, Values] = {
                    slot: torch.zeros(spec.numel, dtype=arrays.value_dtype(spec)).numpy()
                    for slot in self._pipeline.settings.memory.slots
                }
                states[index] = TensorState(spec, slots, self.statistics.tensors[index], number, member)
        self._states = [state for state in states if state is not None]

    # --- out ----------------------------------------------------------------------------------------------------------

    def state_at(self, place: int) -> TensorState:
        """The state of the tensor at a place of the parameter list."""
        return self._states[self._index_of_place[place]]

    def probe_tensor(self) -> torch.Tensor:
        """What Horovod is to reduce in a gradient's place."""
        self.statistics.probe_bytes += PROBE_BYTES
        if self._failure is not None:
            return torch.tensor(self._probe.values(failed=True))
        return self._probe_template.clone()

    def encode(self, state: TensorState, gradient: torch.Tensor) -> None:
        """Encodes a gradient, and sends its bucket when it was the last one missing."""
        start = time.perf_counter()
        self._require_no_other()
        bucket = self._buckets[state.bucket]
        bucket.open(state.member)
        encoded = self._pipeline.encode(
            arrays.to_values(gradient, state.spec), state.spec, state.slots, bucket.draw(state.member)
        )
        bucket.put(state.member, encoded.frame)
        if bucket.full:
            self._send(bucket)
        statistics = state.statistics
        statistics.steps += 1
        statistics.kept += encoded.kept
        statistics.not_finite += not encoded.finite
        statistics.index_bytes += encoded.index_bytes
        statistics.value_bytes += encoded.value_bytes
        statistics.sent_bytes += len(encoded.frame)
        statistics.encode_ms += 1e3 * (time.perf_counter() - start)

    def fail(self, tensor: str | None, error: Exception) -> None:
        """Takes note that this rank can't go on: from now on its probes and bundles say so, and `decode` raises."""
        if self._failure is None:
            cause = str(error) if isinstance(error, DeepReduceError) else f"{type(error).__name__}: {error}"
            where = f"tensor {tensor!r}: " if tensor is not None and repr(tensor) not in cause else ""
            kind = type(error) if isinstance(error, DeepReduceError) else DeepReduceError
            self._failure = kind(f"rank {self._probe.rank}: {where}{cause}")
            self._failure.__cause__ = error

    def _send(self, bucket: Bucket) -> None:
        bundle = bucket.bundle() if self._failure is None else bucket.error_bundle(_without_rank(self._failure))
        self._handles[bucket.number] = start_gather(bundle, f"{self.name}.bucket.{bucket.number}", self._process_set)
        self.statistics.bundle_bytes += len(bundle)
        self.statistics.collectives += 1

    def _send_all(self) -> None:
        """At the first `decode` of a step every gradient was handed over; what is not full now never will be."""
        for bucket in self._buckets:
            if bucket.waiting_to_be_sent or (self._failure is not None and not bucket.sent):
                self._send(bucket)

    def _require_no_other(self) -> None:
        key = (self._process_set.process_set_id, self.name)
        reference = _active.get(key)
        other = reference() if reference is not None else None
        if other is self:
            return
        if other is not None and (other._handles or any(bucket.waiting_to_be_sent for bucket in other._buckets)):
            raise DeepReduceError(
                f"two DeepReduce objects of the name {self.name!r} have gradients under way: "
                "give each a name of its own (name=...)"
            )
        _active[key] = weakref.ref(self)

    # --- in -----------------------------------------------------------------------------------------------------------

    def decode(self, state: TensorState | None, gradient: torch.Tensor, reduced: list[float]) -> None:
        """Overwrites a gradient with what all ranks sent; `reduced` is what Horovod made of the probe."""
        self._send_all()
        if self._failure is not None:
            self.leave(self._failure)
        if state is None or Probe.failed(reduced):
            self.leave(self._find_remote_error())
        try:
            factor = self._probe.factor(reduced)
        except UnsupportedOperationError as error:
            self.leave(UnsupportedOperationError(f"tensor {state.spec.name!r}: {error}"))
        bucket = self._buckets[state.bucket]
        statistics = state.statistics
        if not bucket.received:
            statistics.wait_ms += self._receive(bucket)
        start = time.perf_counter()
        flat = arrays.writable(gradient, state.spec)
        flat.zero_()
        try:
            finite = bucket.add_into(flat.numpy(), state.member, factor)
        except DeepReduceError as error:
            self.leave(error)
        if not finite:
            flat.fill_(float("nan"))
        arrays.write_back(flat, gradient)
        statistics.decode_ms += 1e3 * (time.perf_counter() - start)

    def _receive(self, bucket: Bucket) -> float:
        """Waits for a bucket's bundles; returns milliseconds."""
        start = time.perf_counter()
        what = f"DeepReduce {self.name!r}, bucket {bucket.number} of step {bucket.step}"
        gathered = finish_gather(self._handles.pop(bucket.number), what, self._timeout_s)
        waited = 1e3 * (time.perf_counter() - start)
        try:
            bucket.receive(gathered)
        except DeepReduceError as error:
            self.leave(error)
        self.statistics.steps = max(self.statistics.steps, bucket.step + 1)
        return waited

    # --- errors -------------------------------------------------------------------------------------------------------

    def _find_remote_error(self) -> DeepReduceError:
        """Another rank raised its flag: its words stand in one of the buckets under way."""
        for number in sorted(self._handles):
            bucket = self._buckets[number]
            what = f"DeepReduce {self.name!r}, bucket {number} of step {bucket.step}"
            try:
                bucket.receive(finish_gather(self._handles.pop(number), what, min(self._timeout_s, _FAREWELL_S)))
            except DeepReduceError as error:
                return error
        return RemoteRankError("another rank failed and sent no message; look at its output")

    def leave(self, error: DeepReduceError) -> NoReturn:
        """Raises, once every rank is known to be about to do the same: the first to exit takes the job down with it."""
        error.add_note(f"(raised by rank {hvd.rank()} of {hvd.size()})")
        try:
            handle = start_gather(b"\n", f"{self.name}.farewell", self._process_set)
            finish_gather(handle, "farewell", min(self._timeout_s, _FAREWELL_S))
        except Exception as unheard:  # the error at hand matters more than who else heard of it
            error.add_note(f"(not every rank answered: {unheard})")
        raise error


def _living_sessions() -> list[Session]:
    living = [session for reference in _sessions if (session := reference()) is not None]
    _sessions[:] = [weakref.ref(session) for session in living]
    return living


def _without_rank(failure: DeepReduceError) -> str:
    """The receivers know the rank from the bundle."""
    return str(failure).partition(": ")[2]
