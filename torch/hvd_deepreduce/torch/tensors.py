"""What a compressor holds for each of its tensors, from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from hvd_deepreduce.buckets import plan_buckets
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec, Values
from hvd_deepreduce.statistics import TensorStatistics
from hvd_deepreduce.torch import arrays
from hvd_deepreduce.torch.parameters import NamedParameters


@dataclass(eq=False)
class TensorState:
    """One compressed tensor."""

    spec: TensorSpec
    bucket: int
    member: int
    statistics: TensorStatistics
    slots: dict[str, Values]
    value_dtype: torch.dtype
    gradient: torch.Tensor | None = field(default=None, repr=False)
    """The gradient under way: what `compress` was given, to be overwritten in place."""
    values: Values | None = field(default=None, repr=False)
    """Its elements without the loss scale; they share its memory where they can."""
    scale: float = 1.0


class TensorTable:
    """Which parameters are compressed, and which bucket each belongs to."""

    def __init__(self, parameters: NamedParameters, settings: Settings, min_numel: int, bucket_bytes: int):
        self.specs: list[TensorSpec] = []
        self.pass_through: list[tuple[int, int]] = []
        """Elements and bytes of the tensors that Horovod reduces itself."""
        self._of_place: dict[int, int] = {}
        for place, (name, parameter) in enumerate(zip(parameters.names, parameters.parameters, strict=True)):
            if not parameter.requires_grad:
                continue  # Horovod leaves frozen parameters alone too
            dtype = arrays.dtype_name(parameter)
            if dtype is None or parameter.numel() < min_numel:
                self.pass_through.append((parameter.numel(), parameter.numel() * parameter.element_size()))
            else:
                self._of_place[place] = len(self.specs)
                self.specs.append(TensorSpec(name, tuple(parameter.shape), dtype))
        self.plan = plan_buckets(self.specs, bucket_bytes)
        self._names = parameters.names
        self._slot_sizes = settings.slot_sizes
        self._states: list[TensorState] = []

    def allocate(self, statistics: Sequence[TensorStatistics]) -> None:
        """Makes the states, with zeroed slots."""
        bucket_of = {index: (number, member) for number, of in enumerate(self.plan) for member, index in enumerate(of)}
        for index, spec in enumerate(self.specs):
            dtype = arrays.value_dtype(spec)
            sizes = self._slot_sizes(spec.numel)
            slots: dict[str, Values] = {slot: torch.zeros(size, dtype=dtype).numpy() for slot, size in sizes.items()}
            self._states.append(TensorState(spec, *bucket_of[index], statistics[index], slots, dtype))

    @property
    def all(self) -> list[TensorState]:
        """The states of all tensors, in the order of the parameters."""
        return self._states

    def at(self, place: int) -> TensorState:
        """The state of the tensor at a place of the parameter list; raises for one that was not compressible before."""
        if place not in self._of_place:
            raise DeepReduceError(
                f"tensor {self._names[place]!r} was frozen, smaller than min_numel or of another dtype when DeepReduce "
                "was made: make it when the model is as it is trained"
            )
        return self._states[self._of_place[place]]

    def members(self, bucket: int) -> list[TensorState]:
        """The states of a bucket's tensors, in the order of its frames."""
        return [self._states[index] for index in self.plan[bucket]]
