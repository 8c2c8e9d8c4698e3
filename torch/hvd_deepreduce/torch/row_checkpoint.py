"""Saving and loading what an exchange of rows holds from step to step, rank by rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.rows.table import Table
from hvd_deepreduce.saved_state import steps_and_slots
from hvd_deepreduce.torch import arrays
from hvd_deepreduce.torch.checkpoint import VERSION, saved_slot


def save(identity: dict[str, Any], tables: Sequence[Table]) -> dict[str, Any]:
    """Tensors, numbers and text only, so that `torch.load(weights_only=True)` takes it; copies, not views."""
    return {
        "version": VERSION,
        "identity": identity,
        "steps": {table.spec.name: table.bucket.steps_done for table in tables},
        "slots": {
            table.spec.name: {name: arrays.copy_of(slot) for name, slot in table.slots.items()} for table in tables
        },
    }


def load(identity: dict[str, Any], table_of: Callable[[str], Table], state: Mapping[str, Any]) -> None:
    """The inverse of `save`; raises `StateMismatchError`, with nothing changed, for a state of another exchange."""
    steps, slots = steps_and_slots(identity, state, VERSION)
    known = [name for name, _, _ in identity["tensors"]]
    if not all(name in known and type(step) is int and step >= 0 for name, step in steps.items()):
        raise StateMismatchError(f"load_state_dict(): steps {steps!r}; needed is one number for each table")
    tables = [table_of(name) for name in steps]
    loaded: list[tuple[Any, torch.Tensor]] = [
        (slot, saved_slot(slots, table.spec, slot, name)) for table in tables for name, slot in table.slots.items()
    ]
    # Nothing was changed so far, and nothing can go wrong from here on.
    for slot, saved in loaded:
        arrays.fill(slot, saved)
    for table in tables:
        table.bucket.resume(steps[table.spec.name])
