"""What a compressor holds for each of its tensors, from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from hvd_deepreduce.batch import Gradient
from hvd_deepreduce.buckets import plan_buckets
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import TensorStatistics
from hvd_deepreduce.torch import arrays
from hvd_deepreduce.torch.device import DeviceGradient, DevicePipeline, handles
from hvd_deepreduce.torch.handed import Handed
from hvd_deepreduce.torch.parameters import NamedParameters
from hvd_deepreduce.torch.streams import Marker


@dataclass(eq=False)
class TensorState:
    """One compressed tensor."""

    spec: TensorSpec
    parameter: torch.Tensor = field(repr=False)
    bucket: int
    member: int
    statistics: TensorStatistics
    slots: dict[str, Any]
    """NumPy arrays; those of the memory are tensors where gradients are worked on on a device."""
    value_dtype: torch.dtype
    pipeline: Pipeline | DevicePipeline
    gradient: torch.Tensor | None = field(default=None, repr=False)
    """The gradient under way: what `compress` was given, to be overwritten in place."""
    handed: Handed | None = field(default=None, repr=False)
    """The same, as it was then."""
    values: Gradient | None = field(default=None, repr=False)
    """Its elements without the loss scale; they share its memory where they can."""
    scale: float = 1.0

    def take(self, gradient: torch.Tensor, scale: float) -> Gradient:
        """Makes this the gradient under way."""
        if isinstance(self.pipeline, DevicePipeline):
            flat = arrays.to_flat(gradient, self.value_dtype, scale)
            self.values = DeviceGradient(flat, self.spec, self.slots, self.pipeline, Marker(flat))
        else:
            self.values = arrays.to_flat(gradient.cpu(), self.value_dtype, scale).numpy()
        self.gradient, self.scale = gradient, scale
        return self.values

    def give_back(self) -> None:
        """Writes the sum of all ranks into the gradient's own storage, unless it lies there already."""
        if self.gradient is not None and self.values is not None:
            flat = self.values.values if isinstance(self.values, DeviceGradient) else torch.from_numpy(self.values)
            arrays.write_back(flat, self.gradient, self.scale)
        self.gradient = self.values = self.handed = None


class TensorTable:
    """Which parameters are compressed, and which bucket each belongs to."""

    def __init__(self, parameters: NamedParameters, settings: Settings, min_numel: int, bucket_bytes: int):
        self.specs: list[TensorSpec] = []
        self.pass_through: list[tuple[int, int]] = []
        """Elements and bytes of the tensors that Horovod reduces itself."""
        self._of_place: dict[int, int] = {}
        self._parameters: list[torch.Tensor] = []
        self.devices: set[torch.device] = set()
        """Where gradients are worked on, but for the host."""
        for place, (name, parameter) in enumerate(zip(parameters.names, parameters.parameters, strict=True)):
            if not parameter.requires_grad:
                continue  # Horovod leaves frozen parameters alone too
            dtype = arrays.dtype_name(parameter)
            if dtype is None or parameter.numel() < min_numel:
                self.pass_through.append((parameter.numel(), parameter.numel() * parameter.element_size()))
            else:
                self._of_place[place] = len(self.specs)
                self._parameters.append(parameter)
                self.specs.append(TensorSpec(name, tuple(parameter.shape), dtype))
        self.plan = plan_buckets(self.specs, bucket_bytes)
        self._names = parameters.names
        self._settings = settings
        self._states: list[TensorState] = []

    def allocate(self, statistics: Sequence[TensorStatistics]) -> None:
        """Makes the states, with zeroed slots, which lie where gradients are worked on."""
        host, device = Pipeline(self._settings), DevicePipeline(self._settings)
        bucket_of = {index: (number, member) for number, of in enumerate(self.plan) for member, index in enumerate(of)}
        for index, spec in enumerate(self.specs):
            dtype, parameter = arrays.value_dtype(spec), self._parameters[index]
            sizes = self._settings.slot_sizes(spec.numel)
            slots: dict[str, Any] = {slot: torch.zeros(size, dtype=dtype).numpy() for slot, size in sizes.items()}
            pipeline: Pipeline | DevicePipeline = host
            if handles(parameter) and DevicePipeline.can(self._settings):
                pipeline = device
                self.devices.add(parameter.device)
                for slot in self._settings.memory.slots:
                    slots[slot] = torch.zeros(spec.numel, dtype=dtype, device=parameter.device)
            self._states.append(
                TensorState(spec, parameter, *bucket_of[index], statistics[index], slots, dtype, pipeline)
            )

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
