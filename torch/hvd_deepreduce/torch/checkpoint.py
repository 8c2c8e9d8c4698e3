"""Saving and loading what a session holds from step to step: residuals and step counters, rank by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.saved_state import part_of, require_same
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.torch import arrays
from hvd_deepreduce.torch.session import Session

VERSION: Final = 1


def save(session: Session) -> dict[str, Any]:
    """Tensors, numbers and text only, so that `torch.load(weights_only=True)` takes it; copies, not views."""
    session.prepare()
    session.require_rest("state_dict()")
    states = [state for bucket in session.buckets for state in session.tensors.members(bucket.number)]
    return {
        "version": VERSION,
        "identity": session.identity(),
        "steps": [bucket.steps_done for bucket in session.buckets],
        "slots": {
            state.spec.name: {name: arrays.copy_of(slot) for name, slot in state.slots.items()} for state in states
        },
    }


def load(session: Session, state: Mapping[str, Any]) -> None:
    """The inverse of `save`; raises `StateMismatchError`, with nothing changed, for a state of another session."""
    session.prepare()
    session.require_rest("load_state_dict()")
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        raise StateMismatchError("load_state_dict(): this is no state of DeepReduce, or one of another version")
    require_same(session.identity(), part_of(state, "identity", dict))
    steps = part_of(state, "steps", list)
    if len(steps) != len(session.buckets) or not all(type(step) is int and step >= 0 for step in steps):
        raise StateMismatchError(f"load_state_dict(): steps {steps!r}; needed is one number for each bucket")
    slots = part_of(state, "slots", dict)
    tensors = [tensor for bucket in session.buckets for tensor in session.tensors.members(bucket.number)]
    loaded = [
        (values, saved_slot(slots, tensor.spec, values, name))
        for tensor in tensors
        for name, values in tensor.slots.items()
    ]
    # Nothing was changed so far, and nothing can go wrong from here on.
    for values, saved in loaded:
        arrays.fill(values, saved)
    for bucket, done in zip(session.buckets, steps, strict=True):
        bucket.resume(done)


def saved_slot(slots: Mapping[str, Any], spec: TensorSpec, slot: Any, name: str) -> torch.Tensor:
    """What was saved for a slot; raises for anything that doesn't fit into it."""
    of_tensor = slots.get(spec.name)
    saved = of_tensor.get(name) if isinstance(of_tensor, Mapping) else None
    where = f"load_state_dict(): tensor {spec.name!r}: {name}"
    if not isinstance(saved, torch.Tensor) or saved.is_meta:
        raise StateMismatchError(f"{where} is missing")
    shape, dtype = tuple(slot.shape), arrays.value_dtype(spec)
    if saved.shape != shape or saved.dtype != dtype:
        raise StateMismatchError(
            f"{where} has shape {tuple(saved.shape)} and dtype {saved.dtype}; needed are {shape} and {dtype}"
        )
    if not torch.isfinite(saved).all():
        raise StateMismatchError(f"{where} holds a NaN or an infinity")
    return saved.detach()
