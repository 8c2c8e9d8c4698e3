"""Fills the page: a template, its style and its script stand in files of their own beside this one."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from hvd_deepreduce.records import LoggedRun
from hvd_deepreduce.report.series import curves, facts

_COLUMNS = (
    ("elements", "numel"),
    ("kept", "kept"),
    ("dense bytes", "dense_bytes"),
    ("sent bytes", "sent_bytes"),
    ("relative volume", "relative_volume"),
    ("bits per kept", "bits_per_kept"),
    ("encode ms", "encode_ms"),
    ("decode ms", "decode_ms"),
    ("wait ms", "wait_ms"),
    ("relative error", "relative_error"),
    ("steps not finite", "not_finite"),
)
_TILES = (
    ("sent per step", "sent_bytes", "bytes"),
    ("dense per step", "dense_bytes", "bytes"),
    ("relative volume", "relative_volume", ""),
    ("per kept element", "bits_per_kept", "bits"),
    ("encode per step", "encode_ms", "ms"),
    ("decode per step", "decode_ms", "ms"),
    ("wait per step", "wait_ms", "ms"),
)


def make_page(title: str, runs: Sequence[LoggedRun]) -> str:
    """One HTML page that holds all it needs: style, script and numbers; `title` is shown as text."""
    told = [(facts(run.header, run.records), curves(run)) for run in runs]
    sections = [_section(number, *run) for number, run in enumerate(told)]
    # A "</script>" in a tensor's name would end the element, and JSON can say "<" otherwise.
    data = json.dumps([run for _, run in told], separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Template(_read("page.html")).substitute(
        title=escape(title), style=_read("page.css"), script=_read("page.js"), data=data, sections="\n".join(sections)
    )


def _read(name: str) -> str:
    return files("hvd_deepreduce.report").joinpath(name).read_text(encoding="utf-8")


def _section(number: int, about: dict[str, Any], run: dict[str, Any]) -> str:
    head = f'<section data-run="{number}"><h2>{escape(about["settings"])}</h2><p class="facts">{_facts(about)}</p>'
    if not about["steps"]:
        return f"{head}<p>No step was compressed: with one process Horovod never calls a compressor.</p></section>"
    return f"{head}{_tiles(run['rows'][0]['mean'])}{_charts()}{_table(run['rows'])}</section>"


def _facts(about: dict[str, Any]) -> str:
    parts = [f"{about['steps']:,} steps"]
    if about["seconds"] is not None:
        parts.append(f"{about['seconds']:,.0f} s")
    if about["rank"] is not None:
        parts.append(f"rank {about['rank']} of {about['size']}")
    parts.append(f"begun {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(about['begun']))}")
    parts.append(f"hvd_deepreduce {about['package_version']}")
    if rest := about["pass_through"]:
        parts.append(f"{rest['tensors']} tensors ({rest['dense_bytes']:,} bytes a step) pass uncompressed")
    return escape(" · ".join(parts))


def _tiles(means: dict[str, float | None]) -> str:
    tiles = "".join(
        f"<div><dt>{label}</dt><dd>{_number(key, means[key])} <small>{unit}</small></dd></div>"
        for label, key, unit in _TILES
    )
    return f'<dl class="tiles">{tiles}</dl>'


def _charts() -> str:
    return (
        '<p class="shown"><label>Curves of <select class="tensor"></select></label></p>'
        '<div class="charts"></div><noscript>The curves need JavaScript; the table does not.</noscript>'
    )


def _table(rows: Sequence[dict[str, Any]]) -> str:
    columns = [column for column in _COLUMNS if column[1] != "relative_error" or _has_errors(rows)]
    head = "".join(f'<th scope="col"><button type="button">{label}</button></th>' for label, _ in columns)
    first, *rest = (_table_row(row, columns) for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="table of tensors"><table>'
        "<caption>Per tensor: means per step and rank</caption>"
        f'<thead><tr><th scope="col"><button type="button">tensor</button></th>{head}</tr></thead>'
        f"<tbody>{''.join(rest)}</tbody><tfoot>{first}</tfoot></table></div>"
    )


def _has_errors(rows: Sequence[dict[str, Any]]) -> bool:
    return any(row["mean"]["relative_error"] is not None for row in rows)


def _table_row(row: dict[str, Any], columns: Sequence[tuple[str, str]]) -> str:
    values = {"numel": row["numel"], "not_finite": row["not_finite"], **row["mean"]}
    cells = "".join(
        f'<td data-value="{"" if values[key] is None else values[key]}">{_number(key, values[key])}</td>'
        for _, key in columns
    )
    return f'<tr><th scope="row">{escape(row["name"])}</th>{cells}</tr>'


def _number(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    if key in ("relative_volume", "relative_error"):
        return f"{value:.5f}"
    if key.endswith("_ms"):
        return f"{value:,.3f}"
    if key == "bits_per_kept":
        return f"{value:,.2f}"
    return f"{value:,.0f}"
