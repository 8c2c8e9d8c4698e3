"""All blocks of Python in README.md and docs/ run, in one job of two ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wings.launch import run_job

from docs.blocks import blocks


@pytest.mark.job
def test_every_block_of_python_runs() -> None:
    script = Path(__file__).resolve().parent / "jobs/python_blocks.py"
    job = run_job(str(script), ranks=2, backend="gloo")
    assert job.code == 0, job.output
    ran = re.search(r"(\d+) blocks ran", job.output)
    assert ran, job.output
    python = [block for block in blocks() if block.language == "python"]
    assert int(ran[1]) == sum(not block.not_run for block in python) >= 8
