"""What `auto` chooses, and what it costs in bytes."""

import numpy as np
import pytest
from conformance.inputs import random_support, support

from hvd_deepreduce import Auto, Matrix, Rice
from hvd_deepreduce.errors import CorruptPayloadError, UnknownCodecError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MAX_NUMEL, MatrixView, Support

DRAW = Draw()
NAMES = {1: "raw", 3: "bitmap", 4: "rice", 5: "rle", 7: "huffman", 8: "delta", 10: "matrix"}


def uneven(rows: int, columns: int, density: float, seed: int = 0) -> Support:
    """Rows and columns of unlike density, as layers of a model have."""
    rng = np.random.default_rng(seed)
    densities = np.outer(rng.gamma(1.0, 1, rows), rng.gamma(1.0, 1, columns))
    chosen = np.flatnonzero(rng.random((rows, columns)) < densities * (density / densities.mean()))
    return Support(chosen.astype(np.uint32), MatrixView(rows, columns))


def in_rows(given: Support, rows: int) -> Support:
    return Support(given.positions, MatrixView(rows, given.view.numel // rows))


def heavy_tailed(kept: int) -> Support:
    """In every block of `rice` small gaps and huge ones."""
    gaps = np.where(np.arange(kept) % 3 == 0, 2**27, np.random.default_rng(1).integers(0, 100, kept))
    return support(np.cumsum(gaps + 1) - 1, 2**33)


CASES = {
    "half of all": (random_support(50_000, 0.5), {"bitmap"}),
    "one in a hundred at random": (in_rows(random_support(10**6, 0.01), 1000), {"rice", "huffman"}),
    "rows and columns of unlike density": (uneven(1000, 800, 0.01), {"matrix"}),
    "a few hundred of a structured layer": (uneven(64, 576, 0.01), {"matrix"}),
    "a million of a structured layer": (uneven(4096, 2048, 0.12), {"matrix"}),
    "one of a thousand": (support([700], 1000), {"rice", "raw"}),
    "three of a thousand": (support([3, 4, 260], 1000), {"rice", "raw", "delta"}),
    "all": (support(range(100_000), 100_000), {"rle"}),
    "whole rows": (
        support([row * 500 + i for row in (3, 9, 40, 77) for i in range(500)], 50_000, 100),
        {"rle", "matrix"},
    ),
    "every seventh": (support(range(0, 70_000, 7), 70_000), {"huffman"}),
    "two kinds of gaps": (heavy_tailed(60), {"delta"}),
}


@pytest.mark.parametrize("case", CASES)
def test_takes_what_is_small(case: str) -> None:
    given, names = CASES[case]
    payload = Auto().encode(given, DRAW)
    assert NAMES[payload[0]] in names
    others = [len(codec.encode(given, DRAW)) for codec in (Rice(), Matrix())]
    assert len(payload) <= 4 + 1.005 * min(others), f"{NAMES[payload[0]]}: {len(payload)} bytes; rice, matrix {others}"
    assert np.array_equal(Auto().decode(payload, given.kept, given.view, DRAW).positions, given.positions)


@pytest.mark.parametrize("density", [1e-4, 1e-3, 0.01, 0.1, 0.25, 0.5, 0.75, 0.99])
@pytest.mark.parametrize("numel", [100, 36_864, 400_000])
def test_is_never_above_rice_by_more_than_a_byte(numel: int, density: float) -> None:
    given = in_rows(random_support(numel, density, seed=numel), 4)
    assert len(Auto().encode(given, DRAW)) <= 1 + len(Rice().encode(given, DRAW))


def test_loses_little_to_the_smallest_of_all_on_structured_layers() -> None:
    """Where an estimate decides, it may be wrong by what it holds to be not worth the time."""
    for seed in range(6):
        given = uneven(300, 400, [0.02, 0.1][seed % 2], seed)
        assert len(Auto().encode(given, DRAW)) <= 1 + 1.005 * len(Matrix().encode(given, DRAW))


def test_positions_of_64_bits() -> None:
    positions = np.sort(np.random.default_rng(0).choice(2**31, 5000, replace=False)).astype(np.uint64) * 4
    given = Support(positions, MatrixView(2**16, 2**17))
    payload = Auto().encode(given, DRAW)
    assert np.array_equal(Auto().decode(payload, given.kept, given.view, DRAW).positions, positions)


@pytest.mark.parametrize("wire_id", [0, 2, 6, 9, 11, 13, 14, 255])
def test_refuses_ids_that_it_does_not_choose_from(wire_id: int) -> None:
    with pytest.raises(UnknownCodecError, match=f"auto: index codec id {wire_id}; allowed are 1, 3, 4"):
        Auto().decode(bytes([wire_id, 0, 0]), 1, MatrixView(1, 10), DRAW)


@pytest.mark.parametrize("wire_id", sorted(NAMES))
def test_trusts_no_count_under_any_id(wire_id: int) -> None:
    for rest in (b"", b"\0", b"\xff" * 16, b"\x55" * 100):
        for kept in (2**20, 2**31, MAX_NUMEL):
            with pytest.raises(CorruptPayloadError):
                Auto().decode(bytes([wire_id]) + rest, kept, MatrixView(1, MAX_NUMEL), DRAW)
