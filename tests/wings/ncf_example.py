"""What the NCF examples of both wings must show: one comparison of four ways to send the rows of two tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wings.launch import JobResult, run_job


def compare_four_ways(example: Path, result: Path) -> tuple[JobResult, list[dict[str, Any]]]:
    """Runs it on two ranks, cut short; `result` is where it writes. The job, and what it wrote of each way."""
    sizes = ["--users=500", "--items=300", "--batch-size=1000", "--dimension=16", "--steps=15"]
    job = run_job(str(example), *sizes, f"--json={result}", ranks=2, backend="gloo")
    assert job.code == 0, job.output
    ways = json.loads(result.read_text())
    assert [way["name"] for way in ways] == ["stock", "sparse_as_dense", "rice+raw", "rice+qsgd(bits=7, bucket=16)"]
    assert all(way["replicas_identical"] for way in ways)
    stock, dense, exact, lossy = (way["sent"] for way in ways)
    assert stock["tables"] == 2 * 5000 * (16 * 4 + 8)
    assert dense["tables"] == 800 * 16 * 4
    assert exact["merged"] < stock["tables"] / 5
    assert exact["tables"] < exact["merged"]
    assert lossy["tables"] < exact["tables"] * 9.5 / 32
    assert abs(ways[0]["hit_rate"] - ways[2]["hit_rate"]) < 0.02
    return job, ways
