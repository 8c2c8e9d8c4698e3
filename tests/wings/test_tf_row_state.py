"""The state of an exchange of rows, as bytes and back; what is none is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.sparse import TensorSpec

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what TensorFlow thinks of its own parts
    from hvd_deepreduce.tf.row_checkpoint import VERSION, from_bytes, of_table, require_own, to_bytes

SPEC = TensorSpec("0.words", (3, 2), "float32")
OTHER = TensorSpec("1.places", (4, 2), "float32")
IDENTITY = {"rank": 0, "size": 2}


def a_state(**parts: Any) -> dict[str, Any]:
    residual = np.arange(6, dtype=np.float32)
    whole = {"version": VERSION, "identity": IDENTITY, "steps": {"0.words": 7}}
    return {**whole, "slots": {"0.words": {"residual": residual}}, **parts}


def slots_of(spec: TensorSpec) -> dict[str, np.ndarray]:
    return {"residual": np.ones(spec.numel, np.float32)}


def test_bytes_hold_all_of_it() -> None:
    state = from_bytes(to_bytes(a_state()))
    require_own(IDENTITY, state)
    steps, slots = of_table(state, SPEC, slots_of(SPEC))
    assert steps == 7
    assert slots["residual"].tolist() == [0, 1, 2, 3, 4, 5]
    assert from_bytes(to_bytes(a_state(steps={}, slots={})))["slots"] == {}


def test_a_table_that_had_no_gradient_begins_with_nothing() -> None:
    steps, slots = of_table(a_state(), OTHER, slots_of(OTHER))
    assert steps == 0
    assert not slots["residual"].any()


@pytest.mark.parametrize("data", [b"", b"nonsense", b"PK\x03\x04", to_bytes(a_state())[:-30]])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(StateMismatchError, match="no state of an exchange of rows"):
        from_bytes(data)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "or of another version"),
        (a_state(version=VERSION + 1), "or of another version"),
        (a_state(identity={"rank": 1, "size": 2}), "of rank 1, here it is 0; each rank saves and loads its own"),
        (a_state(slots=None), "the state has no 'slots'"),
        (a_state(steps={"0.words": -1}), "needed is one number for each table"),
        (a_state(steps={}), "needed is one number for each table"),
    ],
)
def test_the_state_of_another_is_refused(state: dict[str, Any], message: str) -> None:
    with pytest.raises(StateMismatchError, match=message):
        require_own(IDENTITY, state)


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ({}, "'0.words': residual is missing"),
        ({"residual": np.zeros(5, np.float32)}, r"shape \(5,\) and dtype float32; needed are \(6,\)"),
        ({"residual": np.zeros(6)}, "dtype float64; needed"),
        ({"residual": np.full(6, np.nan, np.float32)}, "holds a NaN or an infinity"),
    ],
)
def test_slots_that_do_not_fit_are_refused(slots: dict[str, Any], message: str) -> None:
    with pytest.raises(StateMismatchError, match=message):
        of_table(a_state(slots={"0.words": slots}), SPEC, slots_of(SPEC))
