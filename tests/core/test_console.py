"""Names and messages are shown as they stand, wherever they are shown."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from hvd_deepreduce.console import PlainConsole, printable
from hvd_deepreduce.demo.progress import new_progress, result_console
from hvd_deepreduce.demo.ways import Sent, Way, ways_table
from hvd_deepreduce.rows.statistics import RowStatistics, TableStatistics
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import Statistics

HOSTILE = "[/b][red]x[/red] :smile: [link=y]"


def shown(table: Table) -> str:
    text = io.StringIO()
    PlainConsole(file=text, width=160).print(table)
    return text.getvalue()


@given(st.text())
def test_any_text_is_shown(text: str) -> None:
    table = Table(title=text, caption=text)
    table.add_column(text)
    table.add_row(text)
    found = shown(table)
    assert all(one.isprintable() or one == "\n" for one in found)
    found.encode()
    for word in printable(text).split():
        assert len(word) > 100 or word in found


def test_reports_show_names_as_they_are() -> None:
    spec = TensorSpec(HOSTILE, (10, 3))
    assert HOSTILE in Statistics("settings", [spec], []).as_table()
    rows = RowStatistics("rows")
    rows.tensors.append(TableStatistics(spec))
    assert HOSTILE in rows.as_table()


def test_the_demos_show_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    way = Way(HOSTILE, Sent(1, 1, 1, 1), hit_rate=1, step_ms=1, exchange_ms=None, replicas_identical=True)
    result_console(width=200).print(ways_table([way], title=HOSTILE))
    assert capsys.readouterr().out.count(HOSTILE) == 2
    console = PlainConsole(file=io.StringIO(), width=200, force_terminal=True)
    with new_progress(console) as progress:
        progress.add_task(HOSTILE, note=HOSTILE)
    assert console.file.getvalue().count(HOSTILE) >= 2  # type: ignore[attr-defined]
