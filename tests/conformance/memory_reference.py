"""What every registered memory adds up, element by element in NumPy: the plain reading of its definition."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Slots = Mapping[str, np.ndarray]


def _none(memory: Any, slots: Slots, gradient: np.ndarray) -> dict[str, np.ndarray]:
    return {}


def _residual(memory: Any, slots: Slots, gradient: np.ndarray) -> dict[str, np.ndarray]:
    return {"residual": slots["residual"] + gradient}


def _dgc(memory: Any, slots: Slots, gradient: np.ndarray) -> dict[str, np.ndarray]:
    real = gradient.dtype.type
    norm = np.sqrt(np.sum(gradient.astype(np.float64) ** 2))
    scale = memory.clip / norm if memory.clip and norm > memory.clip else 1.0
    momentum = real(memory.momentum) * slots["momentum"] + real(scale) * gradient
    return {"momentum": momentum, "residual": slots["residual"] + momentum}


def _variance(memory: Any, slots: Slots, gradient: np.ndarray) -> dict[str, np.ndarray]:
    return {"residual": slots["residual"] + gradient, "squares": slots["squares"] + gradient * gradient}


_ADDED: Mapping[str, Callable[[Any, Slots, np.ndarray], dict[str, np.ndarray]]] = {
    "none": _none,
    "residual": _residual,
    "dgc": _dgc,
    "variance": _variance,
}


def compensated(memory: Any, slots: Slots, gradient: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What the sparsifier sees, and the slots behind it before anything is sent."""
    added = _ADDED[memory.name](memory, slots, gradient)
    return added.get("residual", gradient).copy(), added


def updated(memory: Any, added: Slots, positions: np.ndarray, decoded: np.ndarray) -> dict[str, np.ndarray]:
    """The slots once `decoded` was sent from `positions`."""
    slots = {name: slot.copy() for name, slot in added.items()}
    if "residual" in slots:
        slots["residual"][positions] -= decoded
    if "momentum" in slots and memory.masking:
        slots["momentum"][positions] = 0
    if "squares" in slots:
        slots["squares"] *= slots["squares"].dtype.type(memory.decay)
        slots["squares"][positions] = 0
    return slots
