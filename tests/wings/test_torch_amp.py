"""Mixed precision with overflows, under both of Horovod's CPU backends."""

from __future__ import annotations

import pytest
from wings.launch import run_job


@pytest.mark.job
@pytest.mark.parametrize("backend", ["gloo", pytest.param("mpi", marks=pytest.mark.long)])
def test_overflows_on_one_rank_cost_no_accuracy(backend: str) -> None:
    job = run_job("amp.py", ranks=2, backend=backend)
    assert job.code == 0, job.output
    for rank in range(2):
        assert "AMP ok" in job.of_rank(rank), job.output
