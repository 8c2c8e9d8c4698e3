"""Coding by ops of our own within the graph: without Python, beside whatever else the graph does.

For the settings that the native kernels know of (`NativeBatch.can`), but for those whose sparsifier keeps arrays of its
own. Anything that goes wrong is left to `HostCoder`, which finds out what it was and says so.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hvd_deepreduce.batch import NativeBatch
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.probe import PROBE_BYTES
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.tf import arrays, checkpoint, watch
from hvd_deepreduce.tf.host_coder import Flats, HostCoder
from hvd_deepreduce.tf.native_library import Library
from hvd_deepreduce.tf.tensors import Sent
from hvd_deepreduce.wire.bundle import describe_header
from hvd_deepreduce.wire.reader import ByteReader

_SELECTIONS = ("none", "topk", "threshold", "dropping")
# Columns of a bucket's facts, one row for each member, and of one more row, for the bucket; as in native/op_common.hpp.
_STEPS, _KEPT, _NOT_FINITE, _INDEX_BYTES, _VALUE_BYTES, _SENT_BYTES, _ENCODE_NS, _DECODE_NS, _FACTS = range(9)
_COLLECTIVES, _BUNDLE_BYTES, _SENT_AT, _WAIT_NS, _ROUND, _PROBES = range(6)

_numbers = itertools.count()


class NativeCoder:
    """Does what `HostCoder` does, with the same bytes."""

    def __init__(self, host: HostCoder, library: Library):
        self._host = host
        self._library = library
        self._number = next(_numbers)
        settings = host.settings
        self._stages = _stages(settings)
        self._round = tf.Variable(0, dtype=tf.int64, trainable=False)
        counts = [len(members) for members in host.tensors.plan]
        self._facts = [tf.Variable(tf.zeros([count + 1, _FACTS], tf.int64), trainable=False) for count in counts]
        self._last = [tf.Variable(tf.zeros([0], tf.uint8), trainable=False, shape=[None]) for _ in counts]
        """This rank's last bundle, by bucket."""
        self._current: list[tf.Tensor] = []
        self._watcher: threading.Thread | None = None

    @staticmethod
    def can(settings: Settings) -> bool:
        """Whether the ops know of these stages."""
        return NativeBatch.can(settings) and not settings.sparsifier.slot_sizes(1)

    # --- within the graph ---------------------------------------------------------------------------------------------

    def begin(self) -> list[Any]:
        """Counts the calls, so that `last_sent` knows which buckets belong to the last one."""
        self._current = [self._round.assign_add(1, read_value=True)]
        if self._watcher is None:
            self._watcher = threading.Thread(
                target=_watch, args=[weakref.ref(self)], name="deepreduce watch", daemon=True
            )
            self._watcher.start()
        return list(self._current)

    def encode(self, number: int, gradients: Flats, trouble: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See `HostCoder.encode`."""
        host = self._host
        members = sorted(gradients)
        states = host.tensors.members(number)
        chosen = [states[member] for member in members]
        residuals = [state.slots["residual"].handle for state in chosen if "residual" in state.slots]
        bundle, step = self._library.ops.deep_reduce_encode(
            trouble=self._trouble(trouble),
            round=tf.identity(self._current[0]),
            steps=host.kept.steps[str(number)].handle,
            facts=self._facts[number].handle,
            last=self._last[number].handle,
            gradients=[gradients[member] for member in members],
            residuals=residuals,
            rank=host.rank,
            count=len(states),
            choices=[part for state in chosen for part in _choice(host.settings, state.spec.numel)],
            names=[state.spec.name for state in chosen],
            stochastic=not host.settings.value.deterministic,
            seed=_signed(host.settings.seed),
            **self._attributes(number, members),
        )
        return bundle, step

    def decode(
        self, number: int, members: Sequence[int], gathered: tf.Tensor, step: tf.Tensor, factor: float
    ) -> dict[int, tf.Tensor]:
        """See `HostCoder.decode`."""
        specs = [state.spec for state in self._host.tensors.members(number)]
        flats, sound = self._library.ops.deep_reduce_decode(
            gathered=gathered,
            step=step,
            facts=self._facts[number].handle,
            T=[arrays.value_dtype(specs[member]) for member in members],
            numels=[spec.numel for spec in specs],
            factor=_bits(factor),
            **self._attributes(number, members),
        )

        def explain() -> tf.Tensor:
            return tf.numpy_function(
                lambda given, at: self._explain(number, members, factor, given, int(at)),
                [gathered, step],
                tf.bool,
                stateful=False,
            )

        guard = tf.cond(sound, lambda: sound, explain)
        with tf.control_dependencies([guard]):
            return {member: tf.identity(flat) for member, flat in zip(members, flats, strict=True)}

    def _trouble(self, known: tf.Tensor) -> tf.Tensor:
        """Why this rank can't go on: that a checkpoint of another was restored, or else what is known."""
        identity = self._host.kept.identity
        assert identity is not None
        own = self._host.identity
        found = identity.read_value()
        return tf.cond(
            tf.equal(found, own),
            lambda: known,
            lambda: tf.ensure_shape(
                tf.numpy_function(lambda text: _difference(text, own), [found], tf.string, stateful=False), []
            ),
        )

    def _attributes(self, number: int, members: Sequence[int]) -> dict[str, Any]:
        return {
            "session": self._number,
            "bucket": number,
            "size": self._host.size,
            "threads": self._host.threads,
            "fingerprint": self._host.settings.fingerprint,
            "members": list(members),
            "stages": self._stages,
        }

    # --- outside of it ------------------------------------------------------------------------------------------------

    @property
    def under_way(self) -> bool:
        """Whether gradients were encoded and not decoded."""
        return self._late(0) is not None

    def sync(self) -> None:
        """Brings the statistics up to date."""
        statistics = self._host.statistics
        statistics.bundle_bytes = statistics.probe_bytes = statistics.collectives = statistics.steps = 0
        for number, variable in enumerate(self._facts):
            facts = variable.numpy()
            states = self._host.tensors.members(number)
            for row, state in zip(facts, states, strict=False):
                one = state.statistics
                one.steps, one.kept, one.not_finite = (int(row[at]) for at in (_STEPS, _KEPT, _NOT_FINITE))
                one.index_bytes, one.value_bytes = int(row[_INDEX_BYTES]), int(row[_VALUE_BYTES])
                one.sent_bytes = int(row[_SENT_BYTES])
                one.encode_ms, one.decode_ms = row[_ENCODE_NS] / 1e6, row[_DECODE_NS] / 1e6
            states[0].statistics.wait_ms = facts[-1, _WAIT_NS] / 1e6
            statistics.bundle_bytes += int(facts[-1, _BUNDLE_BYTES])
            statistics.collectives += int(facts[-1, _COLLECTIVES])
            statistics.probe_bytes += PROBE_BYTES * int(facts[-1, _PROBES])
            statistics.steps = max(statistics.steps, int(self._host.kept.steps[str(number)].numpy()))

    def last_sent(self) -> Iterator[Sent]:
        """See `HostCoder.last_sent`."""
        last_round = int(self._round.numpy())
        for number, (variable, last) in enumerate(zip(self._facts, self._last, strict=True)):
            bundle, facts = last.numpy().tobytes(), variable.numpy()
            if bundle and facts[-1, _ROUND] == last_round:
                yield from self._sent_in(bundle, number, facts)

    def _sent_in(self, bundle: bytes, number: int, facts: Any) -> Iterator[Sent]:
        host, pipeline = self._host, Pipeline(self._host.settings)
        reader = ByteReader(bundle, "own bundle")
        fields = {name: meaning for _, _, name, meaning in describe_header(bundle, reader)}
        step = int(fields["step"])
        if step + 1 != int(host.kept.steps[str(number)].numpy()):
            return
        for row, state in zip(facts, host.tensors.members(number), strict=False):
            start = reader.offset
            pipeline.read(reader, state.spec)
            if row[_STEPS]:  # else it never had a gradient, and an empty frame held its place
                draw = Draw(host.settings.seed, state.spec.name, step, host.rank)
                yield Sent(state, bundle[start : reader.offset], draw)

    def forget(self) -> None:
        """See `HostCoder.forget`."""
        self._round.assign_add(1)

    def _explain(self, number: int, members: Sequence[int], factor: float, gathered: Any, step: int) -> Any:
        """Says what is wrong with bundles that the op refused."""
        try:
            self._host.explain(number, members, factor, gathered, step)
        except DeepReduceError as error:
            self._library.functions.deepreduce_fail(self._number, str(error).encode())
            self._host.leave(error)
        return np.bool_(False)

    def _late(self, limit_s: float) -> tuple[int, int] | None:
        bucket, step = ctypes.c_int64(), ctypes.c_int64()
        limit_ns = int(limit_s * 1e9)
        late = self._library.functions.deepreduce_late(self._number, limit_ns, ctypes.byref(bucket), ctypes.byref(step))
        return (bucket.value, step.value) if late else None

    def _give_up_if_late(self) -> bool:
        late = self._late(self._host.timeout_s)
        if late is not None:
            what = f"DeepReduce {self._host.name!r}, bucket {late[0]} of step {late[1]}"
            watch.give_up(what, self._host.timeout_s, lambda: self._late(self._host.timeout_s) is None)
        return late is not None

    @property
    def every_s(self) -> float:
        """How often to look for what is late."""
        return min(1.0, self._host.timeout_s / 4)


def _watch(coder: weakref.ref[NativeCoder]) -> None:
    """The ops tell nobody when they began to wait: a look at them now and then has to do."""
    while True:
        living = coder()
        if living is None or living._give_up_if_late():
            return
        every_s = living.every_s
        del living
        time.sleep(every_s)


def _stages(settings: Settings) -> list[int]:
    """`Stages` of native/frames.hpp, as numbers."""
    name, threshold, index, value, bits, bucket, residual = NativeBatch(Pipeline(settings), 1).stages
    return [_SELECTIONS.index(name), _bits(threshold), index, value, bits, bucket, int(residual)]


def _choice(settings: Settings, numel: int) -> tuple[int, int, int]:
    """Elements to keep; to sample; of these above the threshold."""
    match settings.sparsifier:
        case TopK() as topk:
            return topk.kept(numel), 0, 0
        case Dropping() as dropping:
            return 0, *dropping.sampled(numel)
    return 0, 0, 0


def _difference(found: bytes, own: str) -> bytes:
    try:
        checkpoint.require_own(found, own)
    except DeepReduceError as error:
        return str(error).encode()
    return b""


def _bits(number: float) -> int:
    """A binary64 as the integer of its bits: attributes of TensorFlow's ops have 32-bit floats only."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
