"""A log that was damaged, or made to harm, gives a page or one clear error, and is never overwritten."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvd_deepreduce.cli.main import main
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.records import read_json_lines
from hvd_deepreduce.report import make_page
from report.runs import write_run

DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]
NUMBERS = [-1, 0, 0.5, 2**63, 10**30, 1e308, float("nan"), float("inf"), 10**400]
HOSTILE = [None, True, *NUMBERS, "", "1", "<script>", "\ud800", "[/b]", [], [1], {}, {"a": 1}, DEEP]
GONE = object()
TOO_LONG = "9" * 5000


def valid_lines() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        return [
            json.loads(line)
            for line in write_run(Path(folder) / "run.jsonl", ["a", "b"], 2).read_text().split("\n")[:-1]
        ]


VALID = valid_lines()


def places(entry: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything in an entry but the whole."""
    inner = entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ()
    for key, value in inner:
        yield (*at, key)
        yield from places(value, (*at, key))


PLACES = [(line, *place) for line, entry in enumerate(VALID) for place in places(entry)]


def damaged(place: tuple[Any, ...], value: Any) -> str:
    lines = copy.deepcopy(VALID)
    inner = lines
    for key in place[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return "".join(json.dumps(line) + "\n" for line in lines)


@given(st.sampled_from(PLACES), st.sampled_from([*HOSTILE, GONE]))
def test_a_page_or_a_clear_error(place: tuple[Any, ...], value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        path.write_text(damaged(place, value))
        try:
            page = make_page("run", read_json_lines(path))
        except InvalidSettingError as error:
            page, fault = "", str(error)
        else:
            fault = "run.jsonl: line "
    assert "run.jsonl: line " in fault
    assert len(fault) < 600
    assert "NaN" not in page.partition('id="runs">')[2].partition("</script>")[0]


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ((0, "since"), None, "line 1 is no header of a log of hvd_deepreduce: since is None; needed is seconds"),
        ((0, "settings"), GONE, "line 1 is no header of a log of hvd_deepreduce: settings is missing"),
        ((1, "total", "kept"), "many", "line 2 is no record .*: total.kept is 'many'; needed is a whole number"),
        ((2, "tensors", 1, "encode_ms"), float("nan"), r"line 3 is no record .*: tensors\[1\].encode_ms is nan"),
        ((1, "tensors", 1), GONE, "line 2 is no record .*: tensors are 1; needed are the 2 of the header"),
        ((1, "tensors", 0, "name"), "c", r"tensors\[0\].name is 'c'; needed is that of the header, 'a'"),
    ],
)
def test_the_error_names_line_and_field(tmp_path: Path, place: tuple[Any, ...], value: Any, words: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(damaged(place, value))
    with pytest.raises(InvalidSettingError, match=words):
        read_json_lines(path)


@pytest.mark.parametrize(
    ("line", "words"), [("[" * 100000, "nested too deep"), (f'{{"step": {TOO_LONG}}}', "too long")]
)
def test_what_python_itself_refuses(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(f"{json.dumps(VALID[0])}\n{line}\n")
    with pytest.raises(InvalidSettingError, match=f"line 2 .*{words}"):
        read_json_lines(path)


def test_no_log_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_run(tmp_path / "run.html", ["a"], 2)
    other = write_run(tmp_path / "other.jsonl", ["a"], 2)
    (tmp_path / "link").symlink_to(log)
    before = log.read_text(), other.read_text()
    for arguments in ([log], [log, "-o", log], [log, "-o", tmp_path / "link"], [log, "-o", other]):
        assert main(["report", *map(str, arguments)]) != 0
        assert "would be overwritten" in capsys.readouterr().err
    assert (log.read_text(), other.read_text()) == before
    assert main(["report", str(other)]) == 0
    assert main(["report", str(other)]) == 0  # a page may be made anew
