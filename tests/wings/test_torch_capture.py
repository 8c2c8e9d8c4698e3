"""Gradients captured on the spot, for the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hvd_deepreduce.cli.main import main
from hvd_deepreduce.torch.demo.capture import capture


def test_compensated_gradients_are_gradient_plus_residual() -> None:
    steps: list[int] = []
    plain, again = (capture(3, None, steps.append) for _ in range(2))
    assert steps == [1, 2, 3, 1, 2, 3]
    assert plain["hidden.weight"].shape == (640, 1568)
    for name, gradient in plain.items():
        np.testing.assert_array_equal(gradient, again[name])
    compensated = capture(3, 0.01, steps.append)
    # With 1 % sent a step, most of three gradients is still there.
    assert np.linalg.norm(compensated["hidden.weight"]) > 1.5 * np.linalg.norm(plain["hidden.weight"])


def test_bench_captures_on_the_spot(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "--compensated=2", "--index=rice", "--value=raw", "--json", "--min-numel=100000"]
    assert main(arguments) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["numel"] == 640 * 1568
