"""Which parameter a gradient belongs to: Horovod hands gradients over without a name, each rank in its own order."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from types import FrameType

import torch

from hvd_deepreduce.errors import InvalidSettingError

_HOROVOD_CALLER = "_allreduce_grad_async"
_FRAMES_UP = 8


class NamedParameters:
    """The parameters a compressor was made for, in the order given."""

    def __init__(self, named_parameters: Iterable[tuple[str, torch.Tensor]]):
        given = list(named_parameters)
        for item in given:
            if not _is_named_parameter(item):
                raise InvalidSettingError(
                    f"named_parameters: got {type(item).__name__}; needed are (name, parameter) pairs, as "
                    "model.named_parameters() gives"
                )
        if not given:
            raise InvalidSettingError(
                "named_parameters: empty; a generator can be read only once, so call model.named_parameters() anew"
            )
        repeated = sorted(name for name, count in Counter(name for name, _ in given).items() if count > 1)
        if repeated:
            raise InvalidSettingError(f"named_parameters: {', '.join(repeated)} more than once; names must be unique")
        self.names: list[str] = []
        self.parameters: list[torch.Tensor] = []
        self._place_of: dict[int, int] = {}
        for name, parameter in given:
            # A tied parameter has several names and one gradient: its first name stands for it, on every rank.
            if id(parameter) not in self._place_of:
                self._place_of[id(parameter)] = len(self.names)
                self.names.append(name)
                self.parameters.append(parameter)
        # Ranks differ in their order, but a rank mostly repeats its own: after place i came _next[i] last time.
        self._next = [(place - 1) % len(self.names) for place in range(len(self.names))]
        self._last = 0

    def name_of(self, parameter: torch.Tensor) -> str:
        """The name of a parameter, or what can be said of one that has none here."""
        place = self._place_of.get(id(parameter))
        return f"of shape {tuple(parameter.shape)}" if place is None else self.names[place]

    def place_of_gradient(self, gradient: torch.Tensor) -> int | None:
        """The place of the parameter whose gradient this is, or None."""
        place = self._next[self._last]
        if self.parameters[place].grad is not gradient:
            found = self._search(gradient)
            if found is None:
                return None
            place = self._next[self._last] = found
        self._last = place
        return place

    def _search(self, gradient: torch.Tensor) -> int | None:
        for place, parameter in enumerate(self.parameters):
            if parameter.grad is gradient:
                return place
        return self._place_in_caller()

    def _place_in_caller(self) -> int | None:
        """With sparse_as_dense=True the gradient is a dense copy that no parameter knows; Horovod's own frame does."""
        return self._place_of.get(id(_locals_of_caller().get("p")))

    def describe(self, gradient: torch.Tensor) -> str:
        """What can be said of a gradient that belongs to none of these parameters."""
        name = _locals_of_caller().get("name")
        shape = f"of shape {tuple(gradient.shape)}"
        return shape if name is None else f"{name!r} {shape}"


def _locals_of_caller() -> Mapping[str, object]:
    """The variables of the Horovod function that handed over a gradient; empty where another one did."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FRAMES_UP):
        if frame is None:
            break
        if frame.f_code.co_name == _HOROVOD_CALLER:
            return frame.f_locals
        frame = frame.f_back
    return {}


def _is_named_parameter(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], torch.Tensor)
