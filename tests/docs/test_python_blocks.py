"""All blocks of Python in README.md and docs/ run, those of a framework in one job of two ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wings.launch import run_job

from docs.blocks import python_blocks


@pytest.mark.job
@pytest.mark.parametrize(
    ("framework", "script", "least"), [("torch", "python_blocks.py", 8), ("tf", "tf_blocks.py", 6)]
)
def test_every_block_of_python_runs(framework: str, script: str, least: int) -> None:
    job = run_job(str(Path(__file__).resolve().parent / "jobs" / script), ranks=2, backend="gloo")
    assert job.code == 0, job.output
    ran = re.search(r"(\d+) blocks ran", job.output)
    assert ran, job.output
    assert int(ran[1]) == len(python_blocks(framework)) >= least
