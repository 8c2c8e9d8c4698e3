"""What a compressor holds for each of its tensors, from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from hvd_deepreduce.buckets import plan_buckets
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import TensorStatistics
from hvd_deepreduce.tf import arrays
from hvd_deepreduce.tf.parameters import HorovodCall, NamedVariables


class Kept(tf.Module):  # type: ignore[misc]
    """What lasts from step to step, as variables that `tf.train.Checkpoint` saves, and restores as they are made."""

    def __init__(self) -> None:
        super().__init__()
        self.identity: tf.Variable | None = None
        """Whose it is, as text: see `checkpoint`."""
        self.steps: dict[str, tf.Variable] = {}
        """Steps done, by bucket."""
        self.slots: dict[str, tf.Variable] = {}
        """By tensor and slot."""


@dataclass(eq=False)
class TensorState:
    """One compressed tensor."""

    spec: TensorSpec
    bucket: int
    member: int
    statistics: TensorStatistics
    slots: dict[str, tf.Variable]


class Sent(NamedTuple):
    """What this rank sent of a tensor in a step."""

    state: TensorState
    frame: bytes
    draw: Draw


class TensorTable:
    """Which variables are compressed, and which bucket each belongs to."""

    def __init__(self, call: HorovodCall, settings: Settings, min_numel: int, bucket_bytes: int):
        self.variables = NamedVariables(call.variables)
        self.specs: list[TensorSpec] = []
        self.pass_through: list[tuple[int, int]] = []
        """Elements and bytes of the tensors that Horovod reduces itself."""
        self._of_place: dict[int, int] = {}
        for place, (gradient, variable) in enumerate(zip(call.gradients, call.variables, strict=True)):
            if compressible(gradient, variable, min_numel):
                self._of_place[place] = len(self.specs)
                dtype = arrays.dtype_name(variable if gradient is None else gradient)
                assert dtype is not None
                self.specs.append(TensorSpec(self.variables.names[place], tuple(variable.shape), dtype))
            else:
                numel = variable.shape.num_elements() or 0
                self.pass_through.append((numel, numel * tf.as_dtype(variable.dtype).size))
        self.plan = plan_buckets(self.specs, bucket_bytes)
        self._settings = settings
        self._states: list[TensorState] = []

    def allocate(self, kept: Kept, statistics: Sequence[TensorStatistics]) -> None:
        """Makes the states, with zeroed slots, or with what a checkpoint holds for them."""
        bucket_of = {index: (number, member) for number, of in enumerate(self.plan) for member, index in enumerate(of)}
        for index, spec in enumerate(self.specs):
            slots = {}
            for slot, size in self._settings.slot_sizes(spec.numel).items():
                variable = tf.Variable(tf.zeros(size, arrays.value_dtype(spec)), trainable=False)
                kept.slots[f"{spec.name}/{slot}"] = slots[slot] = variable
            self._states.append(TensorState(spec, *bucket_of[index], statistics[index], slots))

    @property
    def all(self) -> list[TensorState]:
        """The states of all tensors, in the order of the variables."""
        return self._states

    def state_of(self, gradient: tf.Tensor, variable: Any, place: int) -> TensorState:
        """The state of the gradient at a place of a call; raises for one that was not compressible before."""
        place = self.variables.place_of(variable, place)
        name = self.variables.names[place]
        if place not in self._of_place:
            raise DeepReduceError(
                f"tensor {name!r}: it was smaller than min_numel, sparse or of another dtype when DeepReduce was first "
                "used: make another DeepReduce(name=...) for another model"
            )
        state = self._states[self._of_place[place]]
        if arrays.dtype_name(gradient) != state.spec.dtype or not gradient.shape.is_compatible_with(state.spec.shape):
            raise DeepReduceError(
                f"tensor {name!r}: a gradient of shape {gradient.shape} and dtype {gradient.dtype.name}; when "
                f"DeepReduce was first used the variable was {state.spec.shape} and {state.spec.dtype}"
            )
        return state

    def members(self, bucket: int) -> list[TensorState]:
        """The states of a bucket's tensors, in the order of its frames."""
        return [self._states[index] for index in self.plan[bucket]]


def compressible(gradient: Any, variable: Any, min_numel: int) -> bool:
    """Whether a gradient, or that of a variable that has none, is ours to reduce.

    `tf.IndexedSlices` never reach a compressor. The shape is the variable's: that of a gradient which was one of them
    may be unknown.
    """
    if isinstance(gradient, tf.IndexedSlices):
        return False
    numel = variable.shape.num_elements()
    dtype = arrays.dtype_name(variable if gradient is None else gradient)
    return dtype is not None and numel is not None and numel >= min_numel
