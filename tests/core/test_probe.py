"""What a reduced probe tells: the factor, or that the reduction was none that gathered gradients can follow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hvd_deepreduce.errors import UnsupportedOperationError
from hvd_deepreduce.probe import Probe

SIZES = [2, 3, 4, 7, 16, 64, 512]


def probes(size: int) -> np.ndarray:
    return np.array([Probe(rank, size).values() for rank in range(size)], dtype=np.float32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("factor", ["sum", "average"])
def test_linear_reductions_tell_their_factor_exactly(size: int, factor: str) -> None:
    scale = np.float32(1 if factor == "sum" else 1 / size)
    reduced = (probes(size).sum(axis=0, dtype=np.float32) * scale).tolist()
    assert Probe(0, size).factor(reduced) == (1.0 if factor == "sum" else 1 / size)


@pytest.mark.parametrize("size", SIZES)
def test_predivide_changes_nothing_beyond_rounding(size: int) -> None:
    for predivide in (2.0, 3.0, float(size), 1e3):
        scaled = probes(size) * np.float32(1 / predivide)
        reduced = scaled.sum(axis=0, dtype=np.float32) * np.float32(predivide / size)
        assert Probe(0, size).factor(reduced.tolist()) == 1 / size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "operation"), [("Min", np.min), ("Max", np.max), ("Product", np.prod)])
def test_other_reductions_are_refused_by_name(size: int, name: str, operation: object) -> None:
    if name == "Product" and size > 64:
        pytest.skip("the product of that many overflows float32; the next test covers it")
    reduced = operation(probes(size).astype(np.float64), axis=0).astype(np.float32)  # type: ignore[operator]
    with pytest.raises(UnsupportedOperationError, match=f"op={name} .*allowed are op=Average and op=Sum"):
        Probe(0, size).factor(reduced.tolist())


@pytest.mark.parametrize("reduced", [[1.0, math.inf, 0.0], [math.nan] * 3, [0.0, 0.0, 0.0], [-2.0, -2.0, 0.0]])
def test_nonsense_is_refused(reduced: list[float]) -> None:
    with pytest.raises(UnsupportedOperationError, match="no sum or average over the 2 ranks"):
        Probe(0, 2).factor(reduced)


def test_another_factor_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"by 2; allowed are 1 \(op=Sum\) and 1/2 \(op=Average\)"):
        Probe(0, 2).factor((2 * probes(2).sum(axis=0)).tolist())


def test_process_sets_do_not_look_alike() -> None:
    """Any two subsets of 6 ranks give another ratio, so a process set that DeepReduce was not given is seen."""
    everyone = probes(6).astype(np.float64)
    means = {}
    for size in range(2, 7):
        for subset in itertools.combinations(range(6), size):
            means[subset] = everyone[list(subset), 1].mean()
    for (first, left), (second, right) in itertools.combinations(means.items(), 2):
        assert abs(left - right) > 2e-5 * left, (first, second)


def test_error_flag() -> None:
    assert Probe.failed([1.0, 1.5, 0.5])
    assert not Probe.failed([1.0, 1.5, 0.0])
    assert Probe(1, 2).values(failed=True)[2] == 1
