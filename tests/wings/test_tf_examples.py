"""The Keras example, cut short: equal replicas, the right volume, and a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wings.launch import run_job

from hvd_deepreduce import read_json_lines

SCRIPT = Path(__file__).resolve().parents[2] / "tf" / "examples" / "fashion_mnist.py"


@pytest.mark.job
def test_fashion_mnist_with_a_log(tmp_path: Path) -> None:
    log, result = tmp_path / "run.jsonl", tmp_path / "result.json"
    arguments = ["--steps=60", f"--statistics={log}", f"--json={result}"]
    job = run_job(str(SCRIPT), *arguments, ranks=2, backend="gloo")
    assert job.code == 0, job.output
    found = json.loads(result.read_text())
    assert found["replicas_identical"]
    assert found["accuracy"] > 0.5
    assert found["volume"]["relative_of_compressed"] <= 0.0052
    assert "8.hidden/kernel" in job.of_rank(0)
    [(header, records)] = read_json_lines(log)
    assert (header["rank"], header["size"]) == (0, 2)
    assert [(record["step"], record["steps"]) for record in records] == [(50, 50), (60, 10)]
    assert 0 < records[0]["tensors"][0]["relative_error"] < 1
    sent = sum(record["total"]["sent_bytes"] for record in records)
    assert sent / 60 == found["volume"]["compressed_sent_bytes"]
