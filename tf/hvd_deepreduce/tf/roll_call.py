"""The roll call at the beginning of a step: are all ranks there, and have they gradients of the same variables?

A rank waits for whatever another has no gradient of: without end, or until that rank has one some steps later, which is
then taken for one of this step. Which gradients there are is known when a step is traced; ranks add up a digest of it,
its square, a one and a flag, beside the backward pass. Only where digests differ they tell one another what they have.
The flag says that the name belongs to another by now: collectives of two could be mistaken for one another.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvd_deepreduce.errors import DeepReduceError, UnsupportedOperationError
from hvd_deepreduce.failures import leave
from hvd_deepreduce.tf import watch
from hvd_deepreduce.tf.collectives import gather_now, node_name
from hvd_deepreduce.tf.parameters import name_of

_PIECES = 3  # of 16 bits, so that sums of squares are exact
_LENGTH = 2 + 2 * _PIECES
_SHOWN_RANKS = 8
_HINT = (
    "in a step all ranks must have gradients of the same variables: where the loss does not use one, add "
    "0 * tf.reduce_sum(variable) to it, or 0 * tf.reduce_sum(tf.gather(table, [0])) for one with sparse gradients"
)
_TWO = (
    "another of this name has begun since, and their gradients could be mistaken for one another: give each model and "
    "optimizer a name of its own (name=..., rows_name=... where it has sparse gradients)"
)

# Whose a name is, by process set: the last that began with it.
_owners: weakref.WeakValueDictionary[tuple[int, str], RollCall] = weakref.WeakValueDictionary()


class RollCall:
    """Of one exchange; `farewell` waits for the other ranks before an error is raised."""

    def __init__(self, name: str, process_set: Any, timeout_s: float, farewell: Callable[[], None]):
        self._name = name
        self._process_set = process_set
        self._timeout_s = timeout_s
        self._farewell = farewell
        self._lost = False
        """Whether the name is another's."""
        self._present: tf.Variable | None = None
        """A one, and that as a number; without, Python is asked, as where variables can't be made in a function."""
        self._began = False
        self._roots: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """Outermost graphs of the steps that were traced."""

    def allocate(self) -> None:
        """Makes what steps need that do not ask Python."""
        self._present = tf.Variable([1, 0], dtype=tf.int64, trainable=False)

    def claim(self, graph: Any) -> None:
        """Before a step is traced in a graph (or not): the name is that of the last who began with it.

        Raises for one who lost it, and for two within one function; steps of the loser that were traced before are
        errors when they run.
        """
        key = self._process_set.process_set_id, self._name
        other = _owners.get(key)
        root = _outermost(graph)
        if other is not None and other is not self:
            if self._began or (root is not None and other._roots.get(id(root)) is root):
                raise DeepReduceError(f"DeepReduce {self._name!r}: {_TWO}")
            other._lose()
        _owners[key] = self
        self._began = True
        if root is not None:
            self._roots[id(root)] = root

    def _lose(self) -> None:
        self._lost = True
        if self._present is not None:
            self._present.assign([1, 1])

    def call(self, gradients: Sequence[Any], variables: Sequence[Any], *, watched: bool) -> tf.Tensor:
        """What any other collective of the step must wait for; raises on every rank where ranks differ.

        `watched` where the time limit of another collective holds for this one, too.
        """
        kinds = kinds_of(gradients, variables)
        pieces = np.frombuffer(_digest(kinds), "<u2").astype(np.int64)
        handle = None
        # Neither is a constant: TensorFlow would reduce that once, and take the result for one ever after.
        if watched and self._present is not None:
            present = self._present.read_value()
        else:
            present, handle = tf.numpy_function(self._begin, [], [tf.int64, tf.int64])
            present.set_shape([2])
        mine = tf.concat([present, present[0] * tf.constant([*pieces, *pieces**2], tf.int64)], axis=0)
        # For ranks that have joined Horovod itself adds nothing to a sum, but hangs in a gather of known size.
        found = hvd.allreduce(
            mine,
            op=hvd.Sum,
            name=node_name(f"{self._name}.roll_call"),
            ignore_name_scope=True,
            process_set=self._process_set,
        )
        if handle is not None:
            # Stateful as the beginning: else a step that has no gradient here would leave out what others wait for.
            complete = tf.numpy_function(partial(self._end, kinds), [found, handle], tf.bool)
            complete.set_shape([])
            return complete
        size = self._process_set.size()
        # The mean of the squares is the square of the mean for equal ones only.
        same = tf.reduce_all(size * found[2 + _PIECES :] == found[2 : 2 + _PIECES] ** 2)
        complete = tf.reduce_all([found[0] == size, found[1] == 0, same])

        def refuse() -> tf.Tensor:
            return tf.numpy_function(partial(self._refuse, kinds), [found], tf.bool, stateful=False)

        return tf.cond(complete, lambda: complete, refuse)

    def _begin(self) -> tuple[Any, Any]:
        handle = watch.begin(f"DeepReduce {self._name!r}, the roll call of a step", self._timeout_s)
        return np.array([1, self._lost], np.int64), np.int64(handle)

    def _end(self, kinds: Mapping[str, str], found: Any, handle: Any) -> Any:
        watch.end(int(handle))
        size = self._process_set.size()
        same = all(size * found[2 + _PIECES :] == found[2 : 2 + _PIECES] ** 2)
        if found[0] != size or found[1] or not same:
            self._refuse(kinds, found)
        return np.bool_(True)

    def _refuse(self, kinds: Mapping[str, str], found: Any) -> NoReturn:
        rank, size = self._process_set.rank(), self._process_set.size()
        if found[0] < size:
            raise UnsupportedOperationError(
                f"DeepReduce {self._name!r}: {found[0]} of {size} ranks take part in a step, the others have called "
                "hvd.join(): Horovod's allgather does not know of it. Give all ranks the same number of steps"
            )
        if found[1]:
            leave(DeepReduceError(f"DeepReduce {self._name!r}: {_TWO}"), rank, size, self._farewell)
        said = json.dumps(kinds).encode() + b"\n"
        what = f"DeepReduce {self._name!r}, comparing gradients"
        gathered = gather_now(said, f"{self._name}.gradients", what, self._process_set, self._timeout_s)
        said_by_all = [json.loads(line) for line in gathered.splitlines()]
        text = f"DeepReduce {self._name!r}: {differences(said_by_all)}: {_HINT}"
        leave(DeepReduceError(text), rank, size, self._farewell)


def kinds_of(gradients: Sequence[Any], variables: Sequence[Any]) -> dict[str, str]:
    """What each variable's gradient is: none, dense or sparse."""
    return {
        name_of(place, variable): "none"
        if gradient is None
        else "sparse"
        if isinstance(gradient, tf.IndexedSlices)
        else "dense"
        for place, (gradient, variable) in enumerate(zip(gradients, variables, strict=True))
    }


def differences(found: Sequence[Mapping[str, str]]) -> str:
    """Where ranks differ, in words.

    >>> differences([{"0.w": "dense", "1.v": "dense"}, {"0.w": "dense", "1.v": "none"}])
    "the gradient of '1.v' is dense on rank 0, none on rank 1"
    """
    texts = []
    for name in dict.fromkeys(name for kinds in found for name in kinds):
        ranks: dict[str, list[int]] = {}
        for rank, kinds in enumerate(found):
            ranks.setdefault(kinds.get(name, "that of no variable"), []).append(rank)
        if len(ranks) > 1:
            said = ", ".join(f"{kind} on {_listed(of)}" for kind, of in ranks.items())
            texts.append(f"the gradient of {name!r} is {said}")
    return "; ".join(texts)


def _outermost(graph: Any) -> Any:
    while getattr(graph, "outer_graph", None) is not None and graph.outer_graph.building_function:
        graph = graph.outer_graph
    return graph


def _listed(ranks: Sequence[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:_SHOWN_RANKS])
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}{', …' if len(ranks) > _SHOWN_RANKS else ''}"


def _digest(kinds: Mapping[str, str]) -> bytes:
    return hashlib.blake2b(json.dumps(kinds).encode(), digest_size=2 * _PIECES).digest()
