"""Real jobs of the TensorFlow wing: what a user would run, on several ranks, under both of Horovod's CPU backends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wings.launch import run_job

pytestmark = pytest.mark.job


@pytest.mark.parametrize(
    ("ranks", "backend", "arguments"),
    [(2, "gloo", []), (3, "gloo", ["basics", "process_set"]), (2, "mpi", ["basics"])],
)
def test_every_option_of_the_stock_optimizers_and_tape(ranks: int, backend: str, arguments: list[str]) -> None:
    job = run_job("tf_options.py", *arguments, ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert "OPTIONS ok" in job.of_rank(rank), job.output


def test_both_wings_send_the_same_bytes(tmp_path: Path) -> None:
    for wing in ("torch", "tf"):
        job = run_job("bytes.py", wing, str(tmp_path), ranks=2, backend="gloo")
        assert job.code == 0, job.output
    for rank in range(2):
        right, *others = (
            json.loads((tmp_path / f"{run}.{rank}.json").read_text()) for run in ("torch", "tf", "tf in Python")
        )
        for other in others:
            for case, found in right.items():
                assert found["bundles"], case
                of_steps = [errors.values() for errors in found["errors"]]
                assert [len(errors) for errors in of_steps] == [0 if case == "raw" else 3] * 3, case
                assert all(0 < error < 1 for errors in of_steps for error in errors), case
                assert other[case] == found, case


def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    for parts in (["first"], ["second", "wrong"]):
        job = run_job("tf_checkpoint.py", str(tmp_path), *parts, ranks=2, backend="gloo")
        assert job.code == 0, job.output
        for rank in range(2):
            assert "CHECKPOINT ok" in job.of_rank(rank), job.output
