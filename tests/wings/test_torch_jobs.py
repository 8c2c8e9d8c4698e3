"""Real jobs: what a user would run, on several ranks, under both of Horovod's CPU backends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wings.launch import run_job

pytestmark = pytest.mark.job
JOBS = [(2, "gloo"), (3, "gloo"), (2, "mpi")]


@pytest.mark.parametrize(
    ("ranks", "backend", "which", "steps"),
    [*((*job, "chosen", 200) for job in JOBS), (3, "gloo", "pairs", 5), (2, "mpi", "pairs", 5)],
)
def test_replicas_are_equal_to_one_another_and_to_the_oracle(ranks: int, backend: str, which: str, steps: int) -> None:
    job = run_job("triples.py", which, f"--steps={steps}", ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert re.search(r"TRIPLES \d+ ok", job.of_rank(rank)), job.output


@pytest.mark.parametrize(
    ("ranks", "backend", "arguments"),
    [
        *(pytest.param(*job, [], id=f"{job[0]}-{job[1]}") for job in JOBS),
        pytest.param(2, "gloo", ["--device-stages"], id="device-stages"),
    ],
)
def test_every_option_of_the_stock_optimizer(ranks: int, backend: str, arguments: list[str]) -> None:
    job = run_job("options.py", *arguments, ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert "OPTIONS ok" in job.of_rank(rank), job.output


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_another_name_ends_by_the_time_limit(backend: str) -> None:
    job = run_job("faults.py", "--die", "name", ranks=2, backend=backend, timeout_s=90)
    assert job.code != 0
    for rank in range(2):
        for part in (f"DeepReduce 'name.{rank}', comparing settings", "has another name="):
            assert part in job.of_rank(rank), job.output


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("gloo", []),
        ("mpi", []),
        ("gloo", ["--settings", "dropping"]),
        ("gloo", ["--settings", "dropping", "--device-stages"]),
    ],
)
def test_training_goes_on_from_a_state_dict_bit_for_bit(backend: str, options: list[str], tmp_path: Path) -> None:
    for parts in (["first"], ["second", "scaled", "rolled_back", "rested"]):
        job = run_job("checkpoint.py", str(tmp_path), *parts, *options, ranks=2, backend=backend)
        assert job.code == 0, job.output
        for rank in range(2):
            assert "CHECKPOINT ok" in job.of_rank(rank), job.output
