"""What takes too long for every submission: `make test-long`."""

from __future__ import annotations

import pytest
from wings.launch import run_job

from hvd_deepreduce.registry import INDEX_CODECS, SPARSIFIERS, VALUE_CODECS

pytestmark = [pytest.mark.job, pytest.mark.long, pytest.mark.timeout(3600)]
RANKS = 4


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_triple_on_four_ranks(threads: int, backend: str) -> None:
    job = run_job(
        "triples.py", "all", "--steps=5", f"--threads={threads}", ranks=RANKS, backend=backend, timeout_s=3000
    )
    assert job.code == 0, job.output
    triples = len(SPARSIFIERS) * len(INDEX_CODECS) * len(VALUE_CODECS)
    for rank in range(RANKS):
        assert f"TRIPLES {triples} ok" in job.of_rank(rank), job.output


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_nothing_grows_in_5000_steps(backend: str) -> None:
    job = run_job("soak.py", ranks=RANKS, backend=backend, timeout_s=3000)
    assert job.code == 0, job.output
    for rank in range(RANKS):
        assert "SOAK ok" in job.of_rank(rank), job.output
