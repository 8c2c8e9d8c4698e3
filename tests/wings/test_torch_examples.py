"""The examples, cut short: each job must end with equal replicas and the right volume."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from wings.launch import run_job

from hvd_deepreduce import read_json_lines

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


@pytest.mark.job
def test_half_precision_with_a_log(tmp_path: Path) -> None:
    log, result = tmp_path / "run.jsonl", tmp_path / "result.json"
    arguments = ["--steps=120", "--amp", f"--statistics={log}", f"--json={result}"]
    job = run_job(str(EXAMPLES / "fashion_mnist.py"), *arguments, ranks=2, backend="gloo")
    assert job.code == 0, job.output
    found = json.loads(result.read_text())
    [(header, records)] = read_json_lines(log)
    assert (header["rank"], header["size"]) == (0, 2)
    assert [(record["step"], record["steps"]) for record in records] == [(50, 50), (100, 50), (120, 20)]
    assert [list(record["extra"]) for record in records] == [["loss"], ["loss"], ["accuracy"]]
    assert records[-1]["extra"]["accuracy"] == found["accuracy"] > 0.7
    sent = sum(record["total"]["sent_bytes"] for record in records)
    assert sent / 120 == found["volume"]["compressed_sent_bytes"]


@pytest.mark.job
def test_half_precision_without_compression(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    arguments = ["--steps=20", "--amp", "--compression=fp16", f"--json={result}"]
    job = run_job(str(EXAMPLES / "fashion_mnist.py"), *arguments, ranks=2, backend="gloo")
    assert job.code == 0, job.output
    assert json.loads(result.read_text())["replicas_identical"]
