"""Checks of what all stages have in common."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hvd_deepreduce.contracts import Stage
from hvd_deepreduce.errors import CorruptPayloadError, DeepReduceError, InvalidSettingError
from hvd_deepreduce.settings import describe

Check = Callable[[Any], None]


def collector(checks: list[Check]) -> Callable[[Check], Check]:
    """A decorator that puts a check on a list."""

    def add(check: Check) -> Check:
        checks.append(check)
        return check

    return add


STAGE_CHECKS: list[Check] = []
check = collector(STAGE_CHECKS)


@check
def settings_round_trip(stage: Stage) -> None:
    """11: settings go to JSON and back to an equal stage; `repr` evaluates to an equal one; both forms agree."""
    assert dataclasses.is_dataclass(stage), "not a dataclass"
    settings = {field.name: getattr(stage, field.name) for field in dataclasses.fields(stage)}
    again = type(stage)(**json.loads(json.dumps(settings)))
    assert again == stage
    assert hash(again) == hash(stage)
    evaluated = eval(repr(stage), {type(stage).__name__: type(stage)})
    assert evaluated == stage
    changed = {name for name in settings if name not in describe(stage)}
    assert not changed, f"{describe(stage)} does not spell out {changed}"


@check
def is_frozen(stage: Stage) -> None:
    """Style 3: no mutable state."""
    before = dict(vars(stage))
    for name in [*before, "something"]:
        try:
            setattr(stage, name, None)
        except AttributeError:  # dataclasses.FrozenInstanceError is one
            continue
        finally:
            vars(stage).clear()
            vars(stage).update(before)
        raise AssertionError(f"{name} can be set")


@check
def refuses_unknown_settings_when_made(stage: Stage) -> None:
    """Style 3: bad settings are refused in `__post_init__`."""
    for field in dataclasses.fields(stage):
        for wrong in (None, "text", float("nan"), float("inf"), -1, True, [1]):
            if wrong is True and isinstance(getattr(stage, field.name), bool):
                continue  # a flag may be set
            changes = {field.name: wrong}
            with expect(f"{field.name}={wrong!r}", InvalidSettingError) as raised:
                dataclasses.replace(stage, **changes)
            assert field.name in str(raised[0]), f"the message does not name {field.name}: {raised[0]}"


@contextmanager
def expect(what: str, error: type[DeepReduceError]) -> Iterator[list[DeepReduceError]]:
    """Asserts that the body raises `error`, as itself or one of its own kinds, and hands it out."""
    raised: list[DeepReduceError] = []
    try:
        yield raised
    except error as found:
        raised.append(found)
    except Exception as found:
        raise AssertionError(f"{what}: {type(found).__name__} instead of {error.__name__}: {found}") from found
    else:
        raise AssertionError(f"{what}: no {error.__name__}")


def outcome(what: str, call: Callable[[], Any]) -> Any | None:
    """What the call returns, or None when it raises `CorruptPayloadError`; asserts that it raises nothing else."""
    try:
        return call()
    except CorruptPayloadError:
        return None
    except Exception as found:
        raise AssertionError(f"{what}: {type(found).__name__} is not a named error: {found}") from found


def call(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The call's result; whatever it raises becomes an `AssertionError` that says on which input."""
    try:
        return function(*arguments)
    except Exception as found:
        raise AssertionError(f"{what}: {type(found).__name__}: {found}") from found


def assert_owned(array: np.ndarray, payload: bytes) -> None:
    """6: a decoded array is the caller's own."""
    assert isinstance(array, np.ndarray)
    assert array.flags.writeable, "the decoded array is read-only"
    assert not np.shares_memory(array, np.frombuffer(payload, np.uint8)), "the decoded array is a view of the payload"


def variants(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """3: the same elements in arrays of every kind that a codec must not choke on."""
    read_only = array.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    strided = np.empty(3 * len(array), array.dtype)
    strided[:] = np.arange(3 * len(array)).astype(array.dtype)
    strided[::3] = array
    yield "non-contiguous", strided[::3]
    yield "reversed", array[::-1].copy()[::-1]
    unaligned = np.empty(len(array) * array.itemsize + 1, np.uint8)[1:].view(array.dtype)
    unaligned[:] = array
    yield "unaligned", unaligned
    yield "big-endian", array.astype(array.dtype.newbyteorder(">"))


def flips(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """8: the payload with each of its bits turned over."""
    for bit in range(8 * len(payload)):
        changed = bytearray(payload)
        changed[bit // 8] ^= 1 << (bit % 8)
        yield bit, bytes(changed)
