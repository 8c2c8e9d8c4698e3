"""Which variable a gradient belongs to: Horovod hands gradients over without a name, but its own frames know.

`compress` is called while Horovod's function `allreduce_grads` is traced (or, with functions run eagerly, executed);
there `grads[i] is tensor` tells that the gradient is the one of `vars[i]`. Names of variables count per process, as in
`dense_8/kernel`, so what names a tensor on all ranks is its place in the first list seen.
"""

from __future__ import annotations

import gc
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import tensorflow as tf

from hvd_deepreduce.errors import DeepReduceError, UnknownGradientError

# The second is what AutoGraph makes of the first.
_HOROVOD_CALLERS = ("allreduce_grads", "tf__allreduce_grads")
_GUARDED = "_hvd_deepreduce_guarded"


class HorovodCall(NamedTuple):
    """One call of Horovod's `allreduce_grads`: all gradients of one step, of which some may be None."""

    gradients: list[Any]
    variables: list[Any]
    op: int | None
    """Horovod's number of the reduction, where it can be seen."""
    process_set: Any
    function: Any = None
    """Horovod's traced function, where it is one that serves any variables of the same shapes."""


def call_of(gradient: tf.Tensor) -> HorovodCall:
    """The call that hands a gradient over."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _HOROVOD_CALLERS:
            known = frame.f_locals
            gradients, variables = list(known.get("grads") or []), list(known.get("vars") or [])
            if len(gradients) == len(variables) and any(one is gradient for one in gradients):
                function, given = _traced_function(frame)
                variables = given or variables
                _require_variables(variables)
                return HorovodCall(gradients, variables, known.get("op"), known.get("process_set"), function)
        frame = frame.f_back
    raise UnknownGradientError(
        f"gradient {describe(gradient)} was not handed over by a DistributedOptimizer or DistributedGradientTape of "
        "horovod.tensorflow: which variable it belongs to is unknown. DeepReduce serves neither hvd.allreduce nor "
        "op=Adasum's optimizer"
    )


def _require_variables(sources: Sequence[Any]) -> None:
    """Raises unless each is a variable, and there once: residuals are kept by variable."""
    places: dict[int, int] = {}
    for place, source in enumerate(sources):
        if not isinstance(source, tf.Variable):
            raise UnknownGradientError(
                f"source {place} of shape {source.shape} is no tf.Variable, and DeepReduce reduces gradients of "
                "variables only: ask a plain tf.GradientTape for those of other tensors"
            )
        first = places.setdefault(id(source), place)
        if first != place:
            raise UnknownGradientError(
                f"variable {source.name!r} is given twice, as sources {first} and {place}: ask for each gradient once"
            )


def _traced_function(frame: FrameType) -> tuple[Any, list[Any]]:
    """What is being traced, and the variables that it was called with: in a trace others stand in their places."""
    above: FrameType | None = frame
    while above is not None:
        function = above.f_locals.get("self")
        if above.f_code.co_name == "__call__" and isinstance(function, tf.types.experimental.PolymorphicFunction):
            args: Sequence[Any] = above.f_locals.get("args") or ()
            ours = getattr(function.python_function, "__name__", "") in _HOROVOD_CALLERS and len(args) > 1
            return (function, list(args[1])) if ours else (None, [])
        above = above.f_back
    return None, []


def guard(function: Any, variables: NamedVariables, ours: Callable[[Any], bool]) -> None:
    """From now on a traced function refuses variables of another model, of which no trace could tell.

    `ours` tells of a variable whether its gradient is compressed.
    """
    stock = getattr(function, "_call", None)
    if stock is None or hasattr(function, _GUARDED):
        return

    def call(gradients: Any, of: Sequence[Any], *more: Any, **options: Any) -> Any:
        for place, variable in enumerate(of):
            if ours(variable):
                variables.place_of(variable, place)
        return stock(gradients, of, *more, **options)

    function._call = call
    setattr(function, _GUARDED, True)


def describe(gradient: tf.Tensor) -> str:
    """What can be said of a gradient that belongs to no known variable."""
    name = "" if tf.executing_eagerly() and not hasattr(gradient, "op") else f"{getattr(gradient, 'name', '')!r} "
    return f"{name}of shape {tuple(gradient.shape)}"


class NamedVariables:
    """The variables of the first call, in its order."""

    def __init__(self, variables: Sequence[Any]):
        self.names = [name_of(place, variable) for place, variable in enumerate(variables)]
        self._signatures = [_signature(variable) for variable in variables]
        self._variables = [weakref.ref(variable) for variable in variables]
        self._place_of = {id(variable): place for place, variable in enumerate(variables)}

    def place_of(self, variable: Any, place: int) -> int:
        """The place of a variable that stands at `place` in another call's list.

        One that is new takes over from the one that was at its place when that is gone, as after a model was built
        anew; raises for any other.
        """
        found = self._place_of.get(id(variable))
        if found is not None and self._variables[found]() is variable:
            return found
        if place < len(self.names) and self._gone(place):
            if _signature(variable) != self._signatures[place]:
                raise DeepReduceError(
                    f"tensor {self.names[place]!r}: variable {variable.name!r} is {_signature(variable)} here, and was "
                    f"{self._signatures[place]} when DeepReduce was first used: make another DeepReduce(name=...) for "
                    "another model"
                )
            self._variables[place] = weakref.ref(variable)
            self._place_of[id(variable)] = place
            return place
        raise UnknownGradientError(
            f"variable {variable.name!r} of shape {tuple(variable.shape)} is none of the {len(self.names)} that this "
            "DeepReduce was first used with: give every optimizer or model one of its own (name=...)"
        )

    def _gone(self, place: int) -> bool:
        if self._variables[place]() is not None:
            gc.collect()  # models refer to themselves in circles
        return self._variables[place]() is None


def name_of(place: int, variable: Any) -> str:
    """A name that is the same on all ranks, however many layers each has made before.

    >>> name_of(3, tf.Variable(0.0, name="dense_8/kernel"))
    '3.dense/kernel'
    """
    # Tensors have none in eager code.
    parts = [re.sub(r"_\d+$", "", part) for part in getattr(variable, "name", "tensor").partition(":")[0].split("/")]
    return f"{place}.{'/'.join(parts)}"


def _signature(variable: Any) -> tuple[tuple[int | None, ...] | None, str]:
    shape = None if variable.shape.rank is None else tuple(variable.shape)
    return shape, tf.as_dtype(variable.dtype).name
