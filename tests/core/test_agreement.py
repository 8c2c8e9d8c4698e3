"""The comparison of settings before the first collective."""

from __future__ import annotations

import json

import pytest

from hvd_deepreduce.agreement import compare, statement
from hvd_deepreduce.errors import SettingsMismatchError
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec

SPECS = [TensorSpec("a", (3, 4)), TensorSpec("b", (7,), "float16")]


def say(text: str = "topk(density=0.01)", specs: list[TensorSpec] = SPECS, seed: int = 0, **shaping: int) -> bytes:
    return statement("name", Settings.from_string(text, seed=seed), specs, 2, **({"min_numel": 1} | shaping))


def test_equal_statements_pass() -> None:
    compare(say() + say(), 2)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            say("topk(density=0.02)"),
            r"settings is 'topk\(density=0.02\).* on rank 1 and 'topk\(density=0.01\).* on rank 0",
        ),
        (say(seed=5), "seed is 5 on rank 1 and 0 on rank 0"),
        (say(min_numel=2), "min_numel is 2 on rank 1 and 1 on rank 0"),
        (say(specs=SPECS[:1]), "1 tensors are compressed on rank 1 and 2 on rank 0"),
        (
            say(specs=[SPECS[0], TensorSpec("b", (8,), "float16")]),
            r"tensor \('b', \[8\], 'float16'\) on rank 1 is \('b', \[7\]",
        ),
        (say().replace(b'"wire format version":1', b'"wire format version":9'), "wire format version is 9 on rank 1"),
        (b"not json\n", "a rank's statement of settings can't be read"),
        (say() + say(), "3 statements from 2 ranks"),
    ],
)
def test_a_difference_is_named_with_rank_and_both_values(other: bytes, message: str) -> None:
    with pytest.raises(SettingsMismatchError, match=message) as raised:
        compare(say() + other, 2)
    assert "same script, settings and package version" in str(raised.value)


def test_statement_is_one_line_of_json() -> None:
    assert say().count(b"\n") == 1
    assert json.loads(say())["tensors"] == [["a", [3, 4], "float32"], ["b", [7], "float16"]]
