"""`tf.IndexedSlices` in real jobs: the optimizer and the tape that merge and code their rows, and their example."""

from __future__ import annotations

from pathlib import Path

import pytest
from wings.launch import run_job
from wings.ncf_example import compare_four_ways

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
    compare_four_ways(EXAMPLE, tmp_path / "ncf.json")


@pytest.mark.job
def test_what_one_process_does_and_what_is_refused() -> None:
    job = run_job("tf_rows_alone.py", ranks=1, backend="gloo")
    assert job.code == 0, job.output
    assert "ALONE ok" in job.of_rank(0), job.output
