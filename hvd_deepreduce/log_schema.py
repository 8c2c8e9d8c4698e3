"""What stands in a header and in a record of a training's log: fields, and what they may be; docs/options.md.

Whatever is not named here may be there too, and is nobody's business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hvd_deepreduce.checks import quoted


@dataclass(frozen=True)
class Kind:
    """A single value: what it has to be, in words and as a test."""

    needed: str
    allows: Callable[[Any], bool]

    def or_null(self) -> Kind:
        """The same, or null."""
        return Kind(f"{self.needed}, or null", lambda value: value is None or self.allows(value))


@dataclass(frozen=True)
class Optional:
    """A field that may be missing."""

    schema: Schema


@dataclass(frozen=True)
class ListOf:
    """A list of any length."""

    schema: Schema


@dataclass(frozen=True)
class MappingOf:
    """An object whose keys are the user's."""

    schema: Schema


Schema = Kind | ListOf | MappingOf | Mapping[str, "Schema | Optional"]


def _number(least: float, most: float) -> Callable[[Any], bool]:
    # Not isinstance: True is no number here. NaN is within no limits.
    return lambda value: type(value) in (int, float) and least <= value <= most


def _whole(most: int) -> Kind:
    return Kind(f"a whole number from 0 to {most:.0e}", lambda value: type(value) is int and 0 <= value <= most)


_TEXT = Kind("text", lambda value: isinstance(value, str))
_COUNT = _whole(10**19)
# The page draws a mark for each of some steps, and needs them to differ as float64.
_STEP = _whole(10**15)
# The sum of millions of them must be finite.
_NUMBER = Kind("a number from -1e300 to 1e300", _number(-1e300, 1e300))
_TIME = Kind("seconds since 1970, up to the year 9999", _number(0, 253402300799))

_SUMS: Final[Mapping[str, Schema | Optional]] = {
    **dict.fromkeys(("numel", "kept", "not_finite", "dense_bytes", "index_bytes", "value_bytes", "sent_bytes"), _COUNT),
    **dict.fromkeys(("encode_ms", "decode_ms", "wait_ms"), _NUMBER),
    **dict.fromkeys(("relative_volume", "bits_per_kept", "relative_error"), Optional(_NUMBER.or_null())),
}
_HEADER: Final[Schema] = {
    "package_version": _TEXT,
    "settings": _TEXT,
    "rank": _COUNT.or_null(),
    "size": _COUNT.or_null(),
    "since": _TIME,
    "tensors": ListOf({"name": _TEXT, "numel": _COUNT}),
}
_RECORD: Final[Schema] = {
    "step": _STEP,
    "steps": _STEP,
    "time": _TIME,
    "total": _SUMS,
    "tensors": ListOf({"name": _TEXT, "steps": _STEP, **_SUMS}),
    "pass_through": dict.fromkeys(("tensors", "numel", "dense_bytes"), _COUNT),
    "extra": MappingOf(Kind("a finite number", _number(-sys.float_info.max, sys.float_info.max)).or_null()),
}


def header_fault(entry: Any) -> str | None:
    """What is wrong with a header, as `field is ...; needed is ...`; None where nothing is."""
    return _fault(entry, _HEADER, "")


def record_fault(entry: Any, header: Mapping[str, Any]) -> str | None:
    """Likewise of a record that follows this header, which has no fault."""
    if found := _fault(entry, _RECORD, ""):
        return found
    names, expected = ([tensor["name"] for tensor in one["tensors"]] for one in (entry, header))
    if len(names) != len(expected):
        return f"tensors are {len(names)}; needed are the {len(expected)} of the header"
    for place, (name, right) in enumerate(zip(names, expected, strict=True)):
        if name != right:
            return f"tensors[{place}].name is {quoted(name)}; needed is that of the header, {quoted(right)}"
    return None


def _fault(value: Any, schema: Schema, at: str) -> str | None:
    if isinstance(schema, Kind):
        return None if schema.allows(value) else f"{at} is {quoted(value)}; needed is {schema.needed}"
    if isinstance(schema, ListOf):
        if not isinstance(value, list):
            return f"{at} is {quoted(value)}; needed is a list"
        return _first(_fault(one, schema.schema, f"{at}[{place}]") for place, one in enumerate(value))
    if not isinstance(value, dict):
        return f"{at or 'the line'} is {quoted(value)}; needed is an object"
    if isinstance(schema, MappingOf):
        return _first(_fault(one, schema.schema, f"{at}[{quoted(name)}]") for name, one in value.items())
    return _first(_field_fault(value, name, inner, at) for name, inner in schema.items())


def _field_fault(value: Mapping[str, Any], name: str, schema: Schema | Optional, at: str) -> str | None:
    field = f"{at}.{name}" if at else name
    if isinstance(schema, Optional):
        return _fault(value[name], schema.schema, field) if name in value else None
    return _fault(value[name], schema, field) if name in value else f"{field} is missing"


def _first(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault is not None), None)
