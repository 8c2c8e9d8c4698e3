"""What wings ask of a saved state before they take it: that it is whole, and one of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from hvd_deepreduce.errors import StateMismatchError

_T = TypeVar("_T")


def part_of(state: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    """A part of a saved state; raises where it is missing."""
    part = state.get(key)
    if not isinstance(part, kind):
        raise StateMismatchError(f"load_state_dict(): the state has no {key!r}")
    return part


def require_same(own: dict[str, Any], saved: Mapping[str, Any]) -> None:
    """Raises where a saved state's identity is another than the own one."""
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


def steps_and_slots(identity: dict[str, Any], state: Mapping[str, Any], version: int) -> tuple[Any, Any]:
    """Two dicts by table, of an exchange of rows; raises for the state of another one, or of no such exchange."""
    if not isinstance(state, Mapping) or state.get("version") != version:
        raise StateMismatchError("load_state_dict(): this is no state of an exchange of rows, or of another version")
    require_same(identity, part_of(state, "identity", dict))
    return part_of(state, "steps", dict), part_of(state, "slots", dict)
