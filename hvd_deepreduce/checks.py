"""Checks of single settings and sizes, with one wording for all stages."""

from __future__ import annotations

import math

from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError

_QUOTED = 80


def quoted(value: object) -> str:
    """`repr` for a message, cut where it is long: what was given may be a whole file by mistake.

    >>> quoted("topk"), quoted("a" * 50000)[81:]
    ("'topk'", "'… (50000 characters)")
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= _QUOTED else f"{value[:_QUOTED]!r}… ({len(value)} characters)"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no integers of thousands of digits
        return f"one of type {type(value).__name__}, too long to show"
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text)} characters)"


def require_text(what: str, value: object, example: str) -> str:
    """The text itself; raises for any other type."""
    if not isinstance(value, str):
        raise InvalidSettingError(
            f"{what}: {quoted(value)} is of type {type(value).__name__}; needed is text, {example!r} for instance"
        )
    return value


def require_number(stage: str, setting: str, value: object, *, minimum: float, maximum: float = math.inf) -> None:
    """Raises unless `value` is a finite number from minimum to maximum, both allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise InvalidSettingError(f"{stage}: {setting}={quoted(value)} is not a finite number")
    if not minimum <= value <= maximum:
        allowed = f"{minimum:g} or more" if maximum == math.inf else f"{minimum:g} to {maximum:g}"
        raise InvalidSettingError(f"{stage}: {setting}={quoted(value)}; allowed is {allowed}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def require_fraction(stage: str, setting: str, value: object) -> None:
    """Raises unless 0 < value <= 1."""
    require_number(stage, setting, value, minimum=0.0, maximum=1.0)
    if value == 0:
        raise InvalidSettingError(f"{stage}: {setting}={quoted(value)}; allowed is above 0, up to 1")


def require_integer(stage: str, setting: str, value: object, *, minimum: int, maximum: int) -> None:
    """Raises unless `value` is an integer from minimum to maximum, both allowed."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidSettingError(
            f"{stage}: {setting}={quoted(value)}; allowed is an integer from {minimum} to {maximum}"
        )


def require_flag(stage: str, setting: str, value: object) -> None:
    """Raises unless `value` is True or False."""
    if not isinstance(value, bool):
        raise InvalidSettingError(f"{stage}: {setting}={quoted(value)}; allowed are True and False")


def require_payload_length(codec: str, payload: bytes, expected: int) -> None:
    """Raises unless a payload of known size has it."""
    if len(payload) < expected:
        raise TruncatedPayloadError(f"{codec}: payload of {len(payload)} bytes; {expected} are needed")
    if len(payload) > expected:
        raise CorruptPayloadError(f"{codec}: payload of {len(payload)} bytes; {len(payload) - expected} are left over")


def varint_size(value: int) -> int:
    """Bytes of a varint."""
    return max(1, (value.bit_length() + 6) // 7)
