"""Real jobs: what a user would run, on several ranks, under both of Horovod's CPU backends."""

from __future__ import annotations

import pytest
from launch import run_job

pytestmark = pytest.mark.job
JOBS = [(2, "gloo"), (3, "gloo"), (2, "mpi")]


@pytest.mark.parametrize(("ranks", "backend"), JOBS)
@pytest.mark.parametrize(
    "arguments", [("--steps", "200"), ("--all", "--steps", "10")], ids=["four-200-steps", "all-10-steps"]
)
def test_replicas_are_equal_to_one_another_and_to_the_oracle(
    ranks: int, backend: str, arguments: tuple[str, ...]
) -> None:
    job = run_job("triples.py", *arguments, ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert "ok" in job.of_rank(rank), job.output


@pytest.mark.parametrize(("ranks", "backend"), JOBS)
def test_every_option_of_the_stock_optimizer(ranks: int, backend: str) -> None:
    job = run_job("options.py", ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert "OPTIONS ok" in job.of_rank(rank), job.output


FAULTS = {
    "min": ["tensor '", "op=Min", "rank {rank}"],
    "max": ["tensor '", "op=Max", "rank {rank}"],
    "product": ["tensor '", "op=Product", "rank {rank}"],
    "adasum": ["rank {rank}", "Adasum"],
    "settings": ["settings is", "topk(density=0.02)", "on rank 1", "on rank 0"],
    "min_numel": ["min_numel is 10 on rank 1 and 30 on rank 0"],
    "exception": ["rank 1: tensor '2.weight'", "KeyError", "residual"],
    "unknown": ["gradient of shape (16, 24)", "named parameters"],
    "unknown_on_one_rank": ["rank 1", "gradient of shape (16, 24)", "named parameters"],
    "name": ["comparing settings", "within 5 s", "name="],
}


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_on_every_rank_within_seconds(fault: str, backend: str) -> None:
    job = run_job("faults.py", fault, ranks=2, backend=backend, timeout_s=90)
    assert job.code != 0
    assert "NO ERROR" not in job.output, job.output
    for rank in range(2):
        for part in FAULTS[fault]:
            assert part.format(rank=rank) in job.of_rank(rank), job.output
    assert job.seconds < 40, job.output
