"""From records to curves: what each tensor sent and took per step, over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from hvd_deepreduce.records import LoggedRun, ratios

MAX_POINTS: Final = 400
"""More records than this are merged with their neighbours: no screen shows more, and a page must stay small."""

TOTAL: Final = "all tensors, with headers and probes"

# Sums over the steps of a record, which become means per step.
_SUMS = ("kept", "dense_bytes", "sent_bytes", "index_bytes", "value_bytes", "encode_ms", "decode_ms", "wait_ms")
_RATIOS = ("relative_volume", "bits_per_kept", "relative_error")

Row = dict[str, Any]


def curves(run: LoggedRun) -> dict[str, Any]:
    """The run as plain lists for JSON: `steps`, one of `rows` for the total and for each tensor, and `extra`.

    A row has `name`, `numel`, and for each quantity a mean over the whole run (`mean`) and a list over the steps
    (`curve`), None where there is nothing to divide by.
    """
    groups = _groups([record for record in run.records if record["steps"] or record["extra"]])
    rows = [_row(TOTAL, None, [[record["total"] for record in group] for group in groups], _steps_of(groups))]
    for place, tensor in enumerate(run.header["tensors"]):
        of_tensor = [[record["tensors"][place] for record in group] for group in groups]
        steps = [[row["steps"] for row in group] for group in of_tensor]
        rows.append(_row(tensor["name"], tensor["numel"], of_tensor, steps))
    rows[0]["numel"] = sum(tensor["numel"] for tensor in run.header["tensors"])
    names = dict.fromkeys(chain.from_iterable(record["extra"] for group in groups for record in group))
    return {
        "steps": [group[-1]["step"] for group in groups],
        "rows": rows,
        "extra": {name: [_last(group, name) for group in groups] for name in names},
    }


def _groups(records: Sequence[Row]) -> list[Sequence[Row]]:
    size = -(-len(records) // MAX_POINTS) or 1
    return [records[start : start + size] for start in range(0, len(records), size)]


def _steps_of(groups: Sequence[Sequence[Row]]) -> list[list[int]]:
    return [[record["steps"] for record in group] for group in groups]


def _row(name: str, numel: int | None, groups: Sequence[Sequence[Row]], steps: Sequence[Sequence[int]]) -> Row:
    points = [_means(group, counts) for group, counts in zip(groups, steps, strict=True)]
    everything = list(chain.from_iterable(groups))
    return {
        "name": name,
        "numel": numel,
        "not_finite": sum(row["not_finite"] for row in everything),
        "mean": _means(everything, list(chain.from_iterable(steps))),
        "curve": {key: [_short(point[key]) for point in points] for key in (*_SUMS, *_RATIOS)},
    }


def _means(rows: Sequence[Row], steps: Sequence[int]) -> dict[str, float | None]:
    count = sum(steps)
    sums = {key: sum(row[key] for row in rows) for key in _SUMS}
    errors = [row["relative_error"] for row in rows if row.get("relative_error") is not None]
    return {
        **{key: value / count if count else None for key, value in sums.items()},
        **ratios(sums["sent_bytes"], sums["dense_bytes"], sums["kept"]),
        "relative_error": sum(errors) / len(errors) if errors else None,
    }


def _last(group: Sequence[Row], name: str) -> float | None:
    values: list[float | None] = [record["extra"][name] for record in group if name in record["extra"]]
    return _short(values[-1]) if values else None


def _short(value: float | None) -> float | None:
    """Six digits: more than a screen shows, at half the size of the page."""
    return None if value is None else float(f"{value:.6g}")


def facts(header: Mapping[str, Any], records: Sequence[Row]) -> dict[str, Any]:
    """What a reader asks first: which settings, how many steps, how long."""
    last = records[-1] if records else None
    return {
        "settings": header["settings"],
        "rank": header["rank"],
        "size": header["size"],
        "package_version": header["package_version"],
        "begun": header["since"],
        "seconds": last["time"] - header["since"] if last else None,
        "steps": sum(record["steps"] for record in records),
        "pass_through": last["pass_through"] if last else None,
    }
