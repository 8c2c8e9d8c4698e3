"""The demo, cut short: it must run its four jobs, and each must end with equal replicas and the right volume."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "torch" / "examples"


@pytest.mark.job
def test_the_demo_runs_its_four_jobs(tmp_path: Path) -> None:
    result = tmp_path / "demo.json"
    command = [sys.executable, str(EXAMPLES / "demo.py"), "--steps", "20", "--json", str(result)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    jobs = json.loads(result.read_text())
    names = [job["compression"] for job in jobs]
    assert names == ["dense", "fp16", "topk(density=0.01)+rice+qsgd(bits=7)", "topk(density=0.001)+rice+qsgd(bits=7)"]
    assert all(job["replicas_identical"] and job["steps"] == 20 for job in jobs)
    dense, half, percent, permille = (job["volume"]["relative_of_compressed"] for job in jobs)
    assert (dense, half) == (1.0, 0.5)
    assert percent <= 0.0052
    assert permille <= 0.00075
    for name in names:
        assert name in run.stdout
