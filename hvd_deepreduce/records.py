"""The log of a training: a header, then records of what happened from one to the next; as JSON lines, and back."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from hvd_deepreduce.agreement import package_version
from hvd_deepreduce.checks import quoted
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.log_schema import header_fault, record_fault

FORMAT: Final = "hvd_deepreduce statistics"
VERSION: Final = 1

Stats = Mapping[str, Any]
"""What a compressor's `stats()` returns."""

Errors = Mapping[str, float | None]
"""What a compressor's `errors()` returns."""

# What is the same at every step, or follows from the sums; all else in a row of the statistics is a sum.
_NOT_SUMMED = ("name", "numel", "relative_volume", "bits_per_kept")


class LoggedRun(NamedTuple):
    """What one compressor logged."""

    header: dict[str, Any]
    records: list[dict[str, Any]]


def ratios(sent_bytes: int, dense_bytes: int, kept: int) -> dict[str, float | None]:
    """Relative volume (sent / dense) and bits per kept element; None where there is nothing to divide by."""
    return {
        "relative_volume": sent_bytes / dense_bytes if dense_bytes else None,
        "bits_per_kept": 8 * sent_bytes / kept if kept else None,
    }


def make_header(stats: Stats) -> dict[str, Any]:
    """What holds for all records of a compressor."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "package_version": package_version(),
        "time": time.time(),
        **_identity(stats),
    }


def make_record(
    stats: Stats, before: Stats | None, extra: Mapping[str, int | float], errors: Errors | None = None
) -> dict[str, Any]:
    """What happened since `before`, or since the compressor was made; the keys are those of `stats`.

    `errors` of the last step, by tensor, are added to the rows of the tensors as `relative_error`.
    """
    old_rows = before["tensors"] if before else [{}] * len(stats["tensors"])
    rows = [_since(row, old) for row, old in zip(stats["tensors"], old_rows, strict=True)]
    if errors is not None:
        for row in rows:
            row["relative_error"] = errors.get(row["name"])
    return {
        "step": stats["steps"],
        # The compressor's own count begins elsewhere when it goes on from a checkpoint.
        "steps": max((row["steps"] for row in rows), default=0),
        "time": time.time(),
        "collectives": stats["collectives"] - (before["collectives"] if before else 0),
        "total": _since(stats["total"], before["total"] if before else {}),
        "tensors": rows,
        "pass_through": dict(stats["pass_through"]),
        "extra": dict(extra),
    }


def continues(stats: Stats, before: Stats) -> bool:
    """Whether `stats` are later ones of the compressor that `before` is of: else no difference has a meaning."""
    if _identity(stats) != _identity(before):
        return False
    pairs = [(stats["total"], before["total"]), *zip(stats["tensors"], before["tensors"], strict=True)]
    return all(row[key] >= old[key] for row, old in pairs for key in _sums(row))


def to_line(entry: Mapping[str, Any]) -> str:
    """JSON without line breaks; what is not finite is null there."""
    return json.dumps(finite_or_null(entry), separators=(",", ":"), allow_nan=False) + "\n"


def read_json_lines(path: str | Path) -> list[LoggedRun]:
    """Reads what `JsonLinesWriter` wrote: one run, or several where compressors followed one another in the file.

    A line that breaks off, because its job was killed, is left out. Raises `InvalidSettingError` for other files, with
    the line and the field that can't be.
    """
    runs: list[LoggedRun] = []
    broken: InvalidSettingError | None = None
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        entry = _parse(line, where)
        if isinstance(entry, dict) and entry.get("format") == FORMAT:
            if entry.get("version") != VERSION:
                raise InvalidSettingError(f"{where} has version {quoted(entry.get('version'))}; allowed is {VERSION}")
            _require(f"{where} is no header", header_fault(entry))
            runs.append(LoggedRun(entry, []))
            broken = None
        elif not runs:
            _require(f"{where} is no header", f"its format is not {FORMAT!r}")
        elif broken is not None:
            raise broken
        elif entry is _BROKEN:
            broken = InvalidSettingError(
                f"{where} is no record of a log of hvd_deepreduce: it breaks off, or is no JSON"
            )
        else:
            _require(f"{where} is no record", record_fault(entry, runs[-1].header))
            runs[-1].records.append(entry)
    if not runs:
        raise InvalidSettingError(f"{path} is empty: nothing was logged there so far")
    return runs


def _require(what: str, fault: str | None) -> None:
    if fault is not None:
        raise InvalidSettingError(f"{what} of a log of hvd_deepreduce: {fault}")


_BROKEN: Final = object()


def _parse(line: bytes, where: str) -> Any:
    """What stands in a line, or `_BROKEN`. Python's NaN and Infinity are taken, for the schema to refuse."""
    try:
        return json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return _BROKEN
    except RecursionError as error:
        raise InvalidSettingError(f"{where} is nested too deep for a log of hvd_deepreduce") from error
    except ValueError as error:  # Python reads no integers of thousands of digits
        raise InvalidSettingError(f"{where} is of no log of hvd_deepreduce: a number is too long ({error})") from error


def _identity(stats: Stats) -> dict[str, Any]:
    return {
        **{key: stats[key] for key in ("settings", "rank", "size", "since")},
        "tensors": [{"name": row["name"], "numel": row["numel"]} for row in stats["tensors"]],
    }


def _sums(row: Mapping[str, Any]) -> list[str]:
    return [key for key in row if key not in _NOT_SUMMED]


def _since(row: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    # A nanosecond is less than a clock can tell, and shorter to write than what a difference of floats leaves.
    sums = {key: round(row[key] - old.get(key, 0), 6) for key in _sums(row)}
    same = {key: row[key] for key in ("name", "numel") if key in row}
    return {**same, **sums, **ratios(sums["sent_bytes"], sums["dense_bytes"], sums["kept"])}


def finite_or_null(entry: Any) -> Any:
    """The entry with None for numbers that are not finite: Python's words for them are not JSON."""
    if isinstance(entry, Mapping):
        return {key: finite_or_null(value) for key, value in entry.items()}
    if isinstance(entry, list):
        return [finite_or_null(value) for value in entry]
    return None if isinstance(entry, float) and not math.isfinite(entry) else entry
