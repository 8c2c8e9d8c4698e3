"""One compressor's part in the job: its tensors' state, its buckets' collectives, and how errors reach every rank."""

from __future__ import annotations

import os
import time
import weakref
from functools import partial
from typing import Any, NoReturn

import horovod.torch as hvd
import torch

from hvd_deepreduce import agreement
from hvd_deepreduce.batch import make_batch
from hvd_deepreduce.errors import (
    ChangedGradientError,
    DeepReduceError,
    RemoteRankError,
    SettingsMismatchError,
    UnsupportedOperationError,
)
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.probe import PROBE_BYTES, Probe
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.statistics import Statistics
from hvd_deepreduce.timeline import Timeline, span
from hvd_deepreduce.torch import arrays, streams
from hvd_deepreduce.torch.collectives import finish_gather
from hvd_deepreduce.torch.crowd import warn_of_crowd
from hvd_deepreduce.torch.farewell import FAREWELL_S, leave
from hvd_deepreduce.torch.handed import Handed
from hvd_deepreduce.torch.introduction import Introduction
from hvd_deepreduce.torch.outbox import Outbox
from hvd_deepreduce.torch.parameters import NamedParameters
from hvd_deepreduce.torch.tensors import TensorState, TensorTable

_PROBES_AT_ONCE = 64
# Handing gradients to the coding thread costs about as much as coding so many elements.
_WORTH_A_TURN = 2**16

# Who has gradients under way, by process set and name: two at a time could be mistaken for one another.
_active: weakref.WeakValueDictionary[tuple[int, str], Session] = weakref.WeakValueDictionary()


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
        threads: int,
        overlap: bool | None,
        timeline: Timeline | None,
    ):
        self.name = name
        self.tensors = TensorTable(parameters, settings, min_numel, bucket_bytes)
        self.statistics = Statistics(str(settings), self.tensors.specs, self.tensors.pass_through)
        self._settings = settings
        self._batch = make_batch(settings, threads)
        self._outbox = Outbox(name, process_set, timeout_s=timeout_s, timeline=timeline)
        self._overlap = overlap
        self._timeline = timeline
        self._process_set = process_set
        self._timeout_s = timeout_s
        self._shaping = {"min_numel": min_numel, "bucket_bytes": bucket_bytes}
        self._buckets: list[Bucket] = []
        self._factors: dict[int, float] = {}
        self._unsent: set[int] = set()
        """Buckets that hold gradients."""
        self._round: set[int] = set()
        """Buckets decoded since gradients were last put after a rest."""
        self._probe = Probe(0, 1)
        self._probes: list[torch.Tensor] = []
        statement = partial(agreement.statement, name, settings, self.tensors.specs, **self._shaping)
        self._introduction = Introduction(name, process_set, statement)
        self._begun = False

    # --- the first call -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """At the first call: compares settings with the other ranks, who must do the same within the time limit."""
        if self._begun:
            return
        _require_horovod()
        try:
            self._introduction.finish(self._timeout_s)
        except SettingsMismatchError as error:
            self.leave(error)
        self.prepare()
        warn_of_crowd(state.parameter for state in self.tensors.all)
        self._begun = True

    def prepare(self) -> None:
        """Allocates what lasts from step to step, once; needs `hvd.init()` and no other rank."""
        if self._buckets or not self.tensors.plan:
            return
        _require_horovod()
        self._probe = Probe(self._process_set.rank(), self._process_set.size())
        self.tensors.allocate(self.statistics.tensors)
        # Where ranks fill all cores, the thread would take more from the backward pass than it hides.
        spare = len(os.sched_getaffinity(0)) > hvd.local_size()
        if self._overlap if self._overlap is not None else spare or bool(self.tensors.devices):
            self._outbox.overlap()
        for number, members in enumerate(self.tensors.plan):
            specs = [self.tensors.specs[index] for index in members]
            self._buckets.append(Bucket(number, specs, self._settings, self._batch, self._probe.rank, self._probe.size))

    # --- out ----------------------------------------------------------------------------------------------------------

    def probe_tensor(self) -> torch.Tensor:
        """What Horovod is to reduce in a gradient's place."""
        self.statistics.probe_bytes += PROBE_BYTES
        if self._outbox.failure is not None:
            return torch.tensor(self._probe.values(failed=True))
        if not self._probes:
            # One allocation for many: on small tensors it would be felt.
            self._probes = list(torch.tensor([self._probe.values()] * _PROBES_AT_ONCE).unbind())
        return self._probes.pop()

    def put(self, state: TensorState, gradient: torch.Tensor, scale: float, given: torch.Tensor) -> None:
        """Takes a gradient that is `scale` times too large, and sends its bucket when it was the last one missing.

        `given` is what Horovod handed over: the gradient, or one whose elements share storage.
        """
        if not self._under_way:
            self._require_no_other()
            self._require_same_place()
            self._round.clear()
            self._settings.sparsifier.begin_step([(one.spec.numel, one.slots) for one in self.tensors.all])
        spec = state.spec
        if arrays.dtype_name(gradient) != spec.dtype or gradient.numel() != spec.numel:
            raise DeepReduceError(
                f"tensor {spec.name!r}: a gradient of {gradient.numel()} elements of {gradient.dtype}; when DeepReduce "
                f"was made the parameter had {spec.numel} of {spec.dtype}: make it when the model is as it is trained"
            )
        bucket = self._buckets[state.bucket]
        bucket.require_new(state.member)
        bucket.put(state.member, state.take(gradient, scale), state.slots)
        state.handed = Handed.over(given, state.parameter)
        self._unsent.add(bucket.number)
        if bucket.full:
            self._send(bucket)
        elif bucket.numel_waiting >= _WORTH_A_TURN:
            self._outbox.code(bucket)

    def fail(self, tensor: str | None, error: Exception) -> None:
        """Takes note that this rank can't go on: from now on its probes and bundles say so, and `fetch` raises."""
        self._outbox.fail(tensor, error)

    def _require_same_place(self) -> None:
        rank, size = self._process_set.rank(), self._process_set.size()
        if (rank, size) != (self._probe.rank, self._probe.size):
            raise DeepReduceError(
                f"this was rank {self._probe.rank} of {self._probe.size} and is rank {rank} of {size} now: make a new "
                "DeepReduce after Horovod was started anew"
            )

    @property
    def _under_way(self) -> bool:
        """Whether gradients were put and not all fetched."""
        return bool(self._outbox.numbers or self._unsent)

    def _send(self, bucket: Bucket) -> None:
        self._unsent.discard(bucket.number)
        self._outbox.send(bucket)

    def _send_all(self) -> None:
        """At the first `fetch` of a step every gradient was handed over; what is not full now never will be."""
        for number in sorted(self._unsent):
            self._send(self._buckets[number])
        if self._outbox.failure is not None:
            for bucket in self._buckets:
                if not bucket.sent:
                    self._send(bucket)

    def flush(self) -> None:
        """Sends what waits for the first `fetch`: for one who leaves the job before it comes to that."""
        if self._begun:
            self._send_all()

    def _finish_gather(self, bucket: Bucket, timeout_s: float) -> bytes:
        """Waits until the bundles of all ranks are here, and counts what this one sent."""
        sent = self._outbox.finish(bucket.number)
        self.statistics.bundle_bytes += sent.length
        self.statistics.collectives += 1
        for member, state in enumerate(self.tensors.members(bucket.number)):
            if member in bucket.encoded:
                state.statistics.add(bucket.encoded[member])
        what = f"DeepReduce {self.name!r}, bucket {bucket.number} of step {bucket.step}"
        return finish_gather(sent.handle, what, timeout_s)

    def _require_no_other(self) -> None:
        key = self._process_set.process_set_id, self.name
        other = _active.get(key)
        if other is not None and other is not self and other._under_way:
            raise DeepReduceError(
                f"two DeepReduce objects of the name {self.name!r} have gradients under way: "
                "give each a name of its own (name=...)"
            )
        _active[key] = self

    # --- in -----------------------------------------------------------------------------------------------------------

    def fetch(self, state: TensorState | None, reduced: list[float]) -> None:
        """Overwrites the gradient last put with what all ranks sent; `reduced` is what Horovod made of its probe."""
        self._send_all()
        if self._outbox.failure is not None:
            self.leave(self._outbox.failure)
        if not self._round:
            self._require_unchanged()
        if state is None or Probe.failed(reduced):
            self.leave(self._find_remote_error())
        try:
            factor = self._probe.factor(reduced)
        except UnsupportedOperationError as error:
            self.leave(UnsupportedOperationError(f"tensor {state.spec.name!r}: {error}"))
        bucket = self._buckets[state.bucket]
        if not bucket.decoded:
            self._receive(bucket, state, factor)
        if self._factors[bucket.number] != factor:
            self.leave(
                UnsupportedOperationError(
                    f"tensor {state.spec.name!r}: Horovod multiplied it by {factor:.6g} and another tensor of the same "
                    f"bucket by {self._factors[bucket.number]:.6g}; use one op for all gradients"
                )
            )

    def _require_unchanged(self) -> None:
        """Before the first gradient of a step is overwritten: later, writes of our own would count."""
        try:
            for state in self.tensors.all:
                if state.handed is not None:
                    state.handed.require_unchanged(state.spec.name)
        except ChangedGradientError as error:
            self.leave(error)

    def _receive(self, bucket: Bucket, asking: TensorState, factor: float) -> None:
        """Waits for a bucket's bundles, and overwrites the gradients of all its tensors."""
        start = time.perf_counter()
        with span(self._timeline, "wait", bucket=bucket.number):
            gathered = self._finish_gather(bucket, self._timeout_s)
        if self._outbox.failure is not None:  # found while the bucket was coded
            self.leave(self._outbox.failure)
        asking.statistics.wait_ms += 1e3 * (time.perf_counter() - start)
        states = self.tensors.members(bucket.number)
        self._join_devices()
        try:
            with span(self._timeline, "decode", bucket=bucket.number, tensors=len(states)):
                decoded = bucket.decode(gathered, [state.values for state in states], factor)
            for state, one in zip(states, decoded, strict=True):
                if state.values is not None:
                    state.give_back()
                    state.statistics.decode_ms += one.milliseconds
        except DeepReduceError as error:
            self.leave(error)
        except Exception as error:  # the wing's edge
            self.fail(None, error)
        if self._outbox.failure is not None:
            self.leave(self._outbox.failure)
        self._factors[bucket.number] = factor
        self._round.add(bucket.number)
        self.statistics.steps = max(self.statistics.steps, bucket.steps_done)

    def _join_devices(self) -> None:
        for device in self.tensors.devices:
            streams.join(device)

    def take_back(self) -> None:
        """Gives back to the residuals what this rank sent in the last step."""
        self.require_rest("rollback()")
        for number in sorted(self._round):
            states = self.tensors.members(number)
            for member, frame, draw in self._buckets[number].take_back():
                state = states[member]
                state.pipeline.restore(frame, state.spec, state.slots, draw)
        self._round.clear()

    def errors(self) -> dict[str, float | None]:
        """Of the tensors of the last step, by name; empty without error feedback."""
        self.require_rest("errors()")
        pipeline, found = Pipeline(self._settings), {}
        for bucket in self._buckets:
            states = self.tensors.members(bucket.number)
            for member, frame, draw in bucket.sent_frames():
                state = states[member]
                if "residual" in state.slots:
                    residual = arrays.copy_of(state.slots["residual"]).numpy()
                    found[state.spec.name] = pipeline.error_of(frame, state.spec, residual, draw)
        return found

    # --- between steps ------------------------------------------------------------------------------------------------

    def require_rest(self, caller: str) -> None:
        """Raises while gradients are under way."""
        if self._under_way:
            raise DeepReduceError(f"{caller}: gradients are under way; call it after optimizer.step() or synchronize()")
        self._join_devices()

    def identity(self) -> dict[str, Any]:
        """What a saved state must have in common with the session it is loaded into."""
        rank, size = self._probe.rank, self._probe.size
        return agreement.identity(self.name, self._settings, self.tensors.specs, rank=rank, size=size, **self._shaping)

    @property
    def buckets(self) -> list[Bucket]:
        return self._buckets

    # --- errors -------------------------------------------------------------------------------------------------------

    def _find_remote_error(self) -> DeepReduceError:
        """Another rank raised its flag: its words stand in one of the buckets under way."""
        for number in self._outbox.numbers:
            bucket = self._buckets[number]
            try:
                gathered = self._finish_gather(bucket, min(self._timeout_s, FAREWELL_S))
                bucket.decode(gathered, [None] * len(bucket.specs), 1.0)
            except DeepReduceError as error:
                return error
        return RemoteRankError("another rank failed and sent no message; look at its output")

    def leave(self, error: DeepReduceError) -> NoReturn:
        """Raises, once every rank is known to be about to do the same: the first to exit takes the job down with it."""
        self._outbox.abandon()
        leave(error, self.name, self._process_set, self._timeout_s)


def _require_horovod() -> None:
    if not hvd.is_initialized():
        raise DeepReduceError("hvd.init() must be called first")
