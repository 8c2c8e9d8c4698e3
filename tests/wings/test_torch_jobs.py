"""Real jobs: what a user would run, on several ranks, under both of Horovod's CPU backends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wings.launch import run_job

pytestmark = pytest.mark.job
JOBS = [(2, "gloo"), (3, "gloo"), (2, "mpi")]


@pytest.mark.parametrize(("ranks", "backend"), JOBS)
@pytest.mark.parametrize(("which", "steps"), [("chosen", 200), ("pairs", 10)])
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


FAULTS = {
    "min": ["UnsupportedOperationError: tensor 'min.", "op=Min"],
    "max": ["UnsupportedOperationError: tensor 'max.", "op=Max"],
    "product": ["UnsupportedOperationError: tensor 'product.", "op=Product"],
    "adasum": ["UnsupportedOperationError: tensor 'adasum.", "op=Adasum"],
    "settings": ["SettingsMismatchError", "topk(density=0.02)", "on rank 1", "topk(density=0.01)", "on rank 0"],
    "min_numel": ["SettingsMismatchError", "min_numel is 10 on rank 1 and 30 on rank 0"],
    "nothing_on_one_rank": ["SettingsMismatchError", "min_numel is 1000000000 on rank 1 and 30 on rank 0"],
    "exception": ["rank 1: tensor 'exception.2.weight': KeyError: 'residual'"],
    "unknown": ["gradient 'unknown.2.weight' of shape (16, 24) belongs to none of the 5 named parameters"],
    "unknown_on_one_rank": [
        "rank 1: gradient 'unknown_on_one_rank.2.weight' of shape (16, 24) belongs to none of the 6 named parameters"
    ],
}


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_every_fault_is_named_on_every_rank(backend: str) -> None:
    job = run_job("faults.py", *FAULTS, ranks=2, backend=backend, timeout_s=120)
    assert job.code == 0, job.output
    assert "NO ERROR" not in job.output, job.output
    for rank in range(2):
        caught = {line.split()[1]: line for line in job.of_rank(rank).splitlines() if line.startswith("CAUGHT")}
        for fault, parts in FAULTS.items():
            for part in [*parts, f"(raised by rank {rank} of 2)"]:
                assert part in caught[fault], job.output
            assert "not every rank answered" not in caught[fault]


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
@pytest.mark.parametrize(
    ("fault", "parts"),
    [
        ("exception", ["rank 1: tensor 'exception.2.weight': KeyError: 'residual'", "(raised by rank {rank} of 2)"]),
        ("name", ["DeepReduce 'name.{rank}', comparing settings", "has another name="]),
    ],
)
def test_a_fault_ends_the_job_within_seconds(fault: str, parts: list[str], backend: str) -> None:
    job = run_job("faults.py", "--die", fault, ranks=2, backend=backend, timeout_s=90)
    assert job.code != 0
    for rank in range(2):
        for part in parts:
            assert part.format(rank=rank) in job.of_rank(rank), job.output


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
