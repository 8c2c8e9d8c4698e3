"""What the page holds: every number it shows follows from the log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hvd_deepreduce.cli.main import main
from hvd_deepreduce.records import read_json_lines
from hvd_deepreduce.report import make_page
from hvd_deepreduce.report.series import MAX_POINTS, TOTAL, curves
from report.runs import SETTINGS, write_run


def embedded(page: str) -> list[dict[str, Any]]:
    found = re.search(r'id="runs">(.*?)</script>', page, re.DOTALL)
    assert found
    runs: list[dict[str, Any]] = json.loads(found[1])
    return runs


def test_curves_are_means_per_step(tmp_path: Path) -> None:
    (run,) = read_json_lines(write_run(tmp_path / "run.jsonl", ["a", "b"], 3))
    told = curves(run)
    assert told["steps"] == [10, 20, 30]
    total, a, b = told["rows"]
    assert (total["name"], a["name"], b["name"]) == (TOTAL, "a", "b")
    assert a["curve"]["sent_bytes"] == [104.5, 114.5, 124.5]
    assert a["mean"]["sent_bytes"] == 114.5
    assert a["mean"]["relative_volume"] == pytest.approx(114.5 / 4000, rel=1e-5)
    assert b["curve"]["kept"] == [20, 20, 20]
    assert total["curve"]["sent_bytes"] == [104.5 + 204.5 + 42, 114.5 + 214.5 + 42, 124.5 + 224.5 + 42]
    assert total["mean"]["wait_ms"] == 1
    assert total["numel"] == 3000
    assert told["extra"] == {"loss": [0.1, 0.05, 0.0333333]}
    assert a["mean"]["relative_error"] is None


def test_errors_are_shown_where_they_were_logged(tmp_path: Path) -> None:
    (run,) = read_json_lines(write_run(tmp_path / "run.jsonl", ["a", "b"], 2))
    assert "relative error" not in make_page("t", [run])
    for error, record in zip((0.5, 0.25), run.records, strict=True):
        record["tensors"][1]["relative_error"] = error
    b = curves(run)["rows"][2]
    assert (b["curve"]["relative_error"], b["mean"]["relative_error"]) == ([0.5, 0.25], 0.375)
    assert "relative error" in make_page("t", [run])


def test_a_long_run_is_merged_and_loses_nothing(tmp_path: Path) -> None:
    (run,) = read_json_lines(write_run(tmp_path / "run.jsonl", ["a"], MAX_POINTS + 1, steps_each=1))
    told = curves(run)
    assert len(told["steps"]) == MAX_POINTS // 2 + 1
    assert (told["steps"][0], told["steps"][-1]) == (2, MAX_POINTS + 1)
    assert told["rows"][1]["curve"]["sent_bytes"][0] == 100.5
    assert told["rows"][1]["mean"]["sent_bytes"] == 100 + MAX_POINTS / 2


def test_names_cannot_break_out(tmp_path: Path) -> None:
    evil = '</script><script>alert("x")</script>'
    page = make_page(evil, read_json_lines(write_run(tmp_path / "run.jsonl", [evil], 1)))
    assert evil not in page
    assert page.count("</script>") == 2
    assert embedded(page)[0]["rows"][1]["name"] == evil


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    page = make_page("t", read_json_lines(write_run(tmp_path / "run.jsonl", ["a"], 1)))
    addresses = set(re.findall(r"""["'(](https?://[^"')]*)""", page))
    assert addresses == {"http://www.w3.org/2000/svg"}, "a name space, not an address"
    assert not re.search(r"<(link|script|img)[^>]+(src|href)=\"(?!data:)", page)


def test_runs_that_follow_one_another_have_a_section_each(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run.jsonl", ["a"], 1)
    write_run(path, ["b"], 2, append=True)
    page = make_page("t", read_json_lines(path))
    assert page.count("<section") == 2
    assert [run["steps"] for run in embedded(page)] == [[10], [10, 20]]


def test_a_number_logged_after_the_last_step_is_shown(tmp_path: Path) -> None:
    (run,) = read_json_lines(write_run(tmp_path / "run.jsonl", ["a"], 2))
    last = {**run.records[-1], "steps": 0, "extra": {"accuracy": 0.9}}
    zero = dict.fromkeys(("kept", "not_finite", "steps", "dense_bytes", "sent_bytes", "index_bytes", "value_bytes"), 0)
    last["tensors"] = [{**last["tensors"][0], **zero, "encode_ms": 0.0, "decode_ms": 0.0, "wait_ms": 0.0}]
    last["total"] = {**last["total"], **last["tensors"][0]}
    run.records.append(last)
    told = curves(run)
    assert told["extra"]["accuracy"] == [None, None, 0.9]
    assert told["rows"][1]["curve"]["sent_bytes"] == [104.5, 114.5, None]
    assert told["rows"][1]["mean"]["sent_bytes"] == 109.5


def test_a_run_without_a_step_says_so(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run.jsonl", ["a"], 1)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert "No step was compressed" in make_page("t", read_json_lines(path))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "run.jsonl", ["layer.weight"], 2)
    assert main(["report", str(path)]) == 0
    page = (tmp_path / "run.html").read_text()
    assert capsys.readouterr().out == f"{tmp_path / 'run.html'}\n"
    assert SETTINGS in page
    assert "layer.weight" in page
    assert main(["report", str(path), "-o", str(tmp_path / "other.html"), "--title", "Mine"]) == 0
    assert "<h1>Mine</h1>" in (tmp_path / "other.html").read_text()


def test_command_line_refuses_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.jsonl").write_text('{"loss": 1}\n')
    assert main(["report", str(tmp_path / "other.jsonl")]) == 1
    assert "line 1 is no header of a log of hvd_deepreduce" in capsys.readouterr().err
