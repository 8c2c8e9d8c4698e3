"""Saving and loading what a session holds from step to step: residuals and step counters, rank by rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.torch.session import Session

_VERSION: Final = 1


def save(session: Session) -> dict[str, Any]:
    """Tensors, numbers and text only, so that `torch.load(weights_only=True)` takes it; copies, not views."""
    session.prepare()
    session.require_rest("state_dict()")
    states = [state for bucket in session.buckets for state in session.tensors.members(bucket.number)]
    return {
        "version": _VERSION,
        "identity": session.identity(),
        "steps": [bucket.steps_done for bucket in session.buckets],
        "slots": {
            state.spec.name: {name: torch.from_numpy(values.copy()) for name, values in state.slots.items()}
            for state in states
        },
    }


def load(session: Session, state: Mapping[str, Any]) -> None:
    """The inverse of `save`; raises `StateMismatchError`, with nothing changed, for a state of another session."""
    session.prepare()
    session.require_rest("load_state_dict()")
    if not isinstance(state, Mapping) or state.get("version") != _VERSION:
        raise StateMismatchError("load_state_dict(): this is no state of DeepReduce, or one of another version")
    _require_same(session.identity(), state["identity"])
    for bucket, steps in zip(session.buckets, state["steps"], strict=True):
        bucket.resume(steps)
        for tensor in session.tensors.members(bucket.number):
            for name, values in tensor.slots.items():
                values[:] = state["slots"][tensor.spec.name][name].numpy()


def _require_same(own: dict[str, Any], saved: Mapping[str, Any]) -> None:
    for key, right in own.items():
        found = saved.get(key)
        if found == right:
            continue
        if key == "tensors" and isinstance(found, list):
            differing = [pair for pair in zip(right, found, strict=False) if pair[0] != pair[1]]
            mine, theirs = differing[0] if differing else (f"{len(right)} tensors", f"{len(found)} tensors")
            raise StateMismatchError(f"load_state_dict(): the state has {theirs}, this model has {mine}")
        hint = "; each rank saves and loads its own state" if key in ("rank", "size") else ""
        raise StateMismatchError(f"load_state_dict(): the state is of {key} {found!r}, here it is {right!r}{hint}")
