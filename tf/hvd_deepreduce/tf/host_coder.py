"""Coding in Python within the graph, by `tf.numpy_function`: for any settings, at the price of the GIL and of copies.

The functions are stateless for TensorFlow, which else would run all of them, and Horovod's conditionals around them,
one after the other: what they depend on are their inputs, the variables among them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from hvd_deepreduce.batch import make_batch
from hvd_deepreduce.errors import DeepReduceError, InvalidSettingError
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.failures import failure_of, without_rank
from hvd_deepreduce.probe import PROBE_BYTES
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.statistics import Statistics
from hvd_deepreduce.tf import arrays, checkpoint, watch
from hvd_deepreduce.tf.failure import Failure
from hvd_deepreduce.tf.last_step import LastStep
from hvd_deepreduce.tf.tensors import Kept, Sent, TensorTable

Array = NDArray[Any]
Flats = Mapping[int, tf.Tensor]
"""Flat gradients by member of a bucket."""


class HostCoder:
    """Encodes and decodes buckets; holds why this rank can't go on, if so."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        tensors: TensorTable,
        kept: Kept,
        statistics: Statistics,
        *,
        rank: int,
        size: int,
        identity: str,
        threads: int,
        timeout_s: float,
        farewell: Callable[[], None],
    ):
        self.name, self.settings, self.tensors, self.kept = name, settings, tensors, kept
        self.statistics, self.rank, self.size, self.identity = statistics, rank, size, identity
        self.threads, self.timeout_s = threads, timeout_s
        self._failure = Failure(farewell)
        batch = make_batch(settings, threads)
        self._buckets = [
            Bucket(number, [tensors.specs[index] for index in members], settings, batch, rank, size)
            for number, members in enumerate(tensors.plan)
        ]
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[int, float]] = {}
        """By bucket under way: the watch's handle, and when it was sent."""
        self._last_step = LastStep()

    # --- within the graph ---------------------------------------------------------------------------------------------

    def begin(self) -> list[tf.Operation]:
        """What the sparsifier does at the beginning of a step, if it does anything."""
        variables = [
            variable
            for state in self.tensors.all
            for slot, variable in state.slots.items()
            if slot not in self.settings.memory.slots
        ]
        if not variables:
            return []
        begun = tf.numpy_function(
            self._begin_step, [one.read_value() for one in variables], [one.dtype for one in variables], stateful=False
        )
        begun = begun if isinstance(begun, list) else [begun]
        return [
            variable.assign(_like(value, variable), read_value=False)
            for variable, value in zip(variables, begun, strict=True)
        ]

    def encode(self, number: int, gradients: Flats, trouble: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """This rank's bundle, uint8, and the number of its step; brings the bucket's variables up to date.

        `trouble` is text, why it can't give its gradients, if so: goes in their place.
        """
        members = sorted(gradients)
        states = self.tensors.members(number)
        variables = [variable for member in members for variable in states[member].slots.values()]
        steps = self.kept.steps[str(number)]
        identity = self.kept.identity
        assert identity is not None
        step = steps.read_value()
        bundle, *updated = _as_list(
            tf.numpy_function(
                partial(self._encode, number, members),
                [
                    identity.read_value(),
                    trouble,
                    step,
                    *(gradients[member] for member in members),
                    *(variable.read_value() for variable in variables),
                ],
                [tf.uint8, *(variable.dtype for variable in variables)],
                stateful=False,
            )
        )
        done = [
            variable.assign(_like(value, variable), read_value=False)
            for variable, value in zip(variables, updated, strict=True)
        ]
        with tf.control_dependencies([bundle]):
            done.append(steps.assign_add(1, read_value=False))
        with tf.control_dependencies(done):
            bundle = tf.identity(bundle)
        bundle.set_shape([None])
        return bundle, step

    def decode(
        self, number: int, members: Sequence[int], gathered: tf.Tensor, step: tf.Tensor, factor: float
    ) -> dict[int, tf.Tensor]:
        """factor x the sum over all ranks, flat, by member; the error of any rank is raised here on every rank."""
        specs = self._buckets[number].specs
        flats = _as_list(
            tf.numpy_function(
                partial(self._decode, number, members, factor),
                [gathered],
                [arrays.value_dtype(specs[member]) for member in members],
                stateful=False,
            )
        )
        for member, flat in zip(members, flats, strict=True):
            flat.set_shape([specs[member].numel])
        return dict(zip(members, flats, strict=True))

    # --- outside of it ------------------------------------------------------------------------------------------------

    def last_sent(self) -> Iterator[Sent]:
        """What this rank sent in the last step, unless it was forgotten, or a checkpoint of another restored since."""
        for number in self._last_step.numbers:
            bucket, states = self._buckets[number], self.tensors.members(number)
            if bucket.steps_done == int(self.kept.steps[str(number)].numpy()):
                yield from (Sent(states[member], frame, draw) for member, frame, draw in bucket.sent_frames())

    def forget(self) -> None:
        """What was sent belongs to the last step no more."""
        self._last_step.forget()

    @property
    def under_way(self) -> bool:
        """Whether gradients were encoded and not decoded."""
        return bool(self._watched)

    def sync(self) -> None:
        """Brings the statistics up to date, which they are."""

    def explain(self, number: int, members: Sequence[int], factor: float, gathered: Array, step: int) -> NoReturn:
        """Raises what is wrong with bundles that another decoder refused."""
        bucket = self._buckets[number]
        bucket.resume(step)
        outputs: list[Array | None] = [None] * len(bucket.specs)
        for member in members:
            outputs[member] = np.empty(bucket.specs[member].numel, bucket.specs[member].value_dtype)
        bucket.decode(gathered.tobytes(), outputs, factor)
        raise DeepReduceError(f"bucket {number}, step {step}: refused by one decoder and taken by another")

    def _begin_step(self, *values: Array) -> list[Array]:
        copies = iter([value.copy() for value in values])
        slots = [
            (
                state.spec.numel,
                {slot: next(copies) for slot in state.slots if slot not in self.settings.memory.slots},
            )
            for state in self.tensors.all
        ]
        try:
            self.settings.sparsifier.begin_step(slots)
        except Exception as error:  # the wing's edge: an error on one rank must reach all
            self._failure.note(error, self.rank)
        return [value for _, of_tensor in slots for value in of_tensor.values()]

    def _encode(
        self, number: int, members: Sequence[int], identity: bytes, trouble: bytes, step: Any, *given: Array
    ) -> list[Array]:
        bucket, states = self._buckets[number], self.tensors.members(number)
        gradients = given[: len(members)]
        slots = [value.copy() for value in given[len(members) :]]
        bundle = b""
        with self._lock:
            self._last_step.encoding(number)
        try:
            checkpoint.require_own(identity, self.identity)
            if trouble:
                raise InvalidSettingError(trouble.decode())
            if self._failure.error is None:
                if bucket.steps_done != int(step):
                    bucket.resume(int(step))
                rest = iter(slots)
                for member, gradient in zip(members, gradients, strict=True):
                    bucket.put(member, gradient, {slot: next(rest) for slot in states[member].slots})
                bucket.encode(bucket.close())
                bundle = bucket.bundle()
        except Exception as error:  # as above
            self._failure.note(error, self.rank, bucket.encoding)
        if self._failure.error is not None:
            bundle = bucket.error_bundle(without_rank(self._failure.error))
            slots = list(given[len(members) :])
        with self._lock:
            self._count(number, members, len(bundle))
            what = f"DeepReduce {self.name!r}, bucket {number} of step {bucket.step}"
            self._watched[number] = watch.begin(what, self.timeout_s), time.perf_counter()
        return [np.frombuffer(bundle, np.uint8), *slots]

    def _count(self, number: int, members: Sequence[int], length: int) -> None:
        self.statistics.bundle_bytes += length
        self.statistics.probe_bytes += PROBE_BYTES * len(members)
        self.statistics.collectives += 1
        for member, state in enumerate(self.tensors.members(number)):
            if member in self._buckets[number].encoded:
                state.statistics.add(self._buckets[number].encoded[member])

    def _decode(self, number: int, members: Sequence[int], factor: float, gathered: Array) -> list[Array]:
        bucket, states = self._buckets[number], self.tensors.members(number)
        with self._lock:
            handle, sent_at = self._watched.pop(number)
            watch.end(handle)
            self._last_step.decoding()
        if self._failure.error is not None:
            self.leave(self._failure.error)
        states[members[0]].statistics.wait_ms += 1e3 * (time.perf_counter() - sent_at)
        outputs: list[Array | None] = [None] * len(states)
        for member in members:
            outputs[member] = np.empty(states[member].spec.numel, states[member].spec.value_dtype)
        try:
            decoded = bucket.decode(gathered.tobytes(), outputs, factor)
        except DeepReduceError as error:
            self.leave(error)
        except Exception as error:  # as above
            self.leave(failure_of(error, self.rank))
        for member in members:
            states[member].statistics.decode_ms += decoded[member].milliseconds
        with self._lock:
            self.statistics.steps = max(self.statistics.steps, bucket.steps_done)
        return [output for output in outputs if output is not None]

    def leave(self, error: DeepReduceError) -> NoReturn:
        """Raises, once every rank is known to be about to do the same."""
        self._failure.leave(error, self.rank, self.size)


def _like(value: tf.Tensor, variable: tf.Variable) -> tf.Tensor:
    value.set_shape(variable.shape)
    return value


def _as_list(outputs: Any) -> list[tf.Tensor]:
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]
