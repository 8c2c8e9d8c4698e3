"""Checks of single settings and sizes, with one wording for all stages."""

from __future__ import annotations

import math

from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError


def require_number(stage: str, setting: str, value: object, *, minimum: float, maximum: float = math.inf) -> None:
    """Raises unless `value` is a finite number from minimum to maximum, both allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise InvalidSettingError(f"{stage}: {setting}={value!r} is not a finite number")
    if not minimum <= value <= maximum:
        allowed = f"{minimum:g} or more" if maximum == math.inf else f"{minimum:g} to {maximum:g}"
        raise InvalidSettingError(f"{stage}: {setting}={value!r}; allowed is {allowed}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def require_fraction(stage: str, setting: str, value: object) -> None:
    """Raises unless 0 < value <= 1."""
    require_number(stage, setting, value, minimum=0.0, maximum=1.0)
    if value == 0:
        raise InvalidSettingError(f"{stage}: {setting}={value!r}; allowed is above 0, up to 1")


def require_integer(stage: str, setting: str, value: object, *, minimum: int, maximum: int) -> None:
    """Raises unless `value` is an integer from minimum to maximum, both allowed."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidSettingError(f"{stage}: {setting}={value!r}; allowed is an integer from {minimum} to {maximum}")


def require_flag(stage: str, setting: str, value: object) -> None:
    """Raises unless `value` is True or False."""
    if not isinstance(value, bool):
        raise InvalidSettingError(f"{stage}: {setting}={value!r}; allowed are True and False")


def require_payload_length(codec: str, payload: bytes, expected: int) -> None:
    """Raises unless a payload of known size has it."""
    if len(payload) < expected:
        raise TruncatedPayloadError(f"{codec}: payload of {len(payload)} bytes; {expected} are needed")
    if len(payload) > expected:
        raise CorruptPayloadError(f"{codec}: payload of {len(payload)} bytes; {len(payload) - expected} are left over")


def varint_size(value: int) -> int:
    """Bytes of a varint."""
    return max(1, (value.bit_length() + 6) // 7)
