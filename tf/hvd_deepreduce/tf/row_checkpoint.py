"""What an exchange of rows holds from step to step, as a dict and as the bytes that `tf.train.Checkpoint` keeps."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.saved_state import steps_and_slots
from hvd_deepreduce.sparse import TensorSpec, Values

VERSION: Final = 1
State = Mapping[str, Any]
"""`version`; `identity`; `steps` by table; `slots`, arrays by table and slot."""


def require_own(identity: dict[str, Any], state: State) -> None:
    """Raises `StateMismatchError` for a state of another exchange."""
    steps, slots = steps_and_slots(identity, state, VERSION)
    if steps.keys() != slots.keys() or not all(type(step) is int and step >= 0 for step in steps.values()):
        raise StateMismatchError(f"load_state_dict(): steps {steps!r}; needed is one number for each table")


def of_table(state: State, spec: TensorSpec, slots: Mapping[str, Values]) -> tuple[int, dict[str, Values]]:
    """Steps done and what goes into the slots: nothing, for a table that had no gradient when the state was saved."""
    if spec.name not in state["steps"]:
        return 0, {name: np.zeros_like(slot) for name, slot in slots.items()}
    found = {}
    for name, slot in slots.items():
        where = f"load_state_dict(): tensor {spec.name!r}: {name}"
        saved = state["slots"][spec.name].get(name)
        if not isinstance(saved, np.ndarray):
            raise StateMismatchError(f"{where} is missing")
        if saved.shape != slot.shape or saved.dtype != slot.dtype:
            raise StateMismatchError(
                f"{where} has shape {saved.shape} and dtype {saved.dtype}; needed are {slot.shape} and {slot.dtype}"
            )
        if not np.isfinite(saved).all():
            raise StateMismatchError(f"{where} holds a NaN or an infinity")
        found[name] = saved
    return state["steps"][spec.name], found


def to_bytes(state: State) -> bytes:
    """As a NumPy archive: all but the arrays as JSON, then the arrays by their places."""
    places = [(table, name) for table, of in state["slots"].items() for name in of]
    head = json.dumps({**state, "slots": {table: list(of) for table, of in state["slots"].items()}})
    arrays = {str(place): state["slots"][table][name] for place, (table, name) in enumerate(places)}
    buffer = io.BytesIO()
    np.savez(buffer, head=np.frombuffer(head.encode(), np.uint8), **arrays)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """The inverse of `to_bytes`; raises `StateMismatchError` for other bytes."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            state: dict[str, Any] = json.loads(archive["head"].tobytes())
            places = iter(range(len(archive.files) - 1))
            state["slots"] = {
                table: {name: archive[str(next(places))] for name in names} for table, names in state["slots"].items()
            }
    except (AttributeError, EOFError, KeyError, StopIteration, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise StateMismatchError("load_state_dict(): this is no state of an exchange of rows") from error
    return state
