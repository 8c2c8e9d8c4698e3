"""`tf.IndexedSlices` in real jobs: the optimizer and the tape that merge and code their rows, and their example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wings.launch import run_job

EXAMPLE = Path(__file__).resolve().parents[2] / "tf" / "examples" / "ncf.py"


@pytest.mark.job
@pytest.mark.parametrize(("ranks", "backend"), [(3, "gloo"), (2, "mpi")])
def test_replicas_are_equal_to_one_another_and_to_the_oracle(ranks: int, backend: str) -> None:
    job = run_job("tf_rows.py", ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert "ROWS ok" in job.of_rank(rank), job.output


@pytest.mark.job
def test_the_example_compares_four_ways(tmp_path: Path) -> None:
    result = tmp_path / "ncf.json"
    sizes = ["--users=500", "--items=300", "--batch-size=1000", "--dimension=16", "--steps=15"]
    job = run_job(str(EXAMPLE), *sizes, f"--json={result}", ranks=2, backend="gloo")
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


@pytest.mark.job
def test_what_one_process_does_and_what_is_refused() -> None:
    job = run_job("tf_rows_alone.py", ranks=1, backend="gloo")
    assert job.code == 0, job.output
    assert "ALONE ok" in job.of_rank(0), job.output
