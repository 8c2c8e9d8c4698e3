"""`rice` against the fewest bits any code can spend on a random support: log2 C(numel, kept)."""

from math import lgamma, log

import numpy as np
import pytest
from reference import rice as reference

from hvd_deepreduce import _native


def entropy_bits(numel, kept):
    return (lgamma(numel + 1) - lgamma(kept + 1) - lgamma(numel - kept + 1)) / log(2)


def support(numel, kept, seed):
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(numel, kept, replace=False)).astype(np.uint32)


@pytest.mark.parametrize("density", [0.0001, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("kept", [1000, 10_000])
def test_a_random_support_costs_little_more_than_its_entropy(density, kept):
    numel = round(kept / density)
    allowed = 1.02 if density <= 0.05 else 1.035
    seeds = range(3)
    bits = [_native.rice_bits(support(numel, kept, seed), numel) for seed in seeds]
    assert sum(bits) / len(bits) <= allowed * entropy_bits(numel, kept)
    assert max(bits) <= (allowed + 0.01) * entropy_bits(numel, kept)


@pytest.mark.parametrize(("numel", "kept"), [(100, 1), (1000, 3), (1000, 10), (10_000, 100)])
def test_a_small_support_pays_no_table_and_no_header(numel, kept):
    bits = [_native.rice_bits(support(numel, kept, seed), numel) for seed in range(200)]
    assert sum(bits) / len(bits) <= 1.06 * entropy_bits(numel, kept) + 16


def test_a_clustered_support_costs_less_than_a_random_one():
    starts = support(1_000_000 // 20, 100, 0).astype(np.uint64) * 20
    clustered = (starts[:, None] + np.arange(10, dtype=np.uint64)).ravel().astype(np.uint32)
    assert _native.rice_bits(clustered, 1_000_000) < 0.6 * entropy_bits(1_000_000, 1000)


@pytest.mark.parametrize(("numel", "kept"), [(1, 1), (9, 9), (1000, 3), (5000, 700), (100_000, 129)])
def test_bits_are_those_of_the_stream(numel, kept):
    positions = support(numel, kept, 1)
    bits = _native.rice_bits(positions, numel)
    assert bits == len(reference.stream(positions.tolist(), numel).bits)
    assert len(_native.rice_encode(positions, numel)) == (bits + 7) // 8


def test_the_divisor_follows_the_density_from_block_to_block():
    """Half of the kept elements lie close together, half far apart: one divisor fits neither."""
    positions = np.concatenate([np.arange(0, 6400, 2), 6400 + np.arange(3200) * 1000]).astype(np.uint32)
    numel = 6400 + 3200 * 1000
    one_divisor = [reference.first_entry(6400, numel)] * 50
    fixed = len(reference.stream(positions.tolist(), numel, one_divisor).bits)
    assert _native.rice_bits(positions, numel) < 0.7 * fixed
