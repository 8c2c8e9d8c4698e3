"""`matrix` against the fewest bits of a random support, against `rice`, and on rows and columns of unlike density."""

from math import lgamma, log

import numpy as np
import pytest
from reference import matrix as reference
from reference import matrix_code as code_reference
from reference.bits import CorruptError, varint

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError


def entropy_bits(numel, kept):
    return (lgamma(numel + 1) - lgamma(kept + 1) - lgamma(numel - kept + 1)) / log(2)


def random_support(rows, columns, density, seed=0):
    rng = np.random.default_rng(seed)
    numel = rows * columns
    return np.sort(rng.choice(numel, max(1, round(numel * density)), replace=False)).astype(np.uint32)


def crowded_support(rows, columns, density, seed=0, evenness=1.0, taps=1):
    """Densities of rows and columns are random; the lower `evenness`, the more unlike. Columns go by `taps`."""
    rng = np.random.default_rng(seed)
    of_columns = np.repeat(rng.gamma(evenness, 1, -(-columns // taps)), taps)[:columns]
    densities = np.outer(rng.gamma(evenness, 1, rows), of_columns)
    densities *= density / densities.mean()
    return np.flatnonzero(rng.random((rows, columns)) < densities).astype(np.uint32)


@pytest.mark.parametrize("density", [0.001, 0.01, 0.1, 0.5])
@pytest.mark.parametrize(("rows", "columns"), [(1, 250_000), (500, 500), (25_000, 10)])
def test_a_random_support_costs_no_more_than_its_entropy(rows, columns, density):
    positions = random_support(rows, columns, density)
    bits = 8 * len(_native.matrix_encode(positions, rows, columns))
    assert bits <= 1.01 * entropy_bits(rows * columns, len(positions)) + 32


def test_nor_does_one_of_any_shape_and_density():
    rng = np.random.default_rng(5)
    for _ in range(600):
        rows, columns = (int(2 ** rng.uniform(0, 7.5)) for _ in range(2))
        density = min(1.0, 2 ** rng.uniform(-8, 0.1))
        positions = random_support(rows, columns, density, int(rng.integers(2**32)))
        bits = 8 * len(_native.matrix_encode(positions, rows, columns))
        assert bits <= 1.01 * entropy_bits(rows * columns, len(positions)) + 32, (rows, columns, len(positions))


def test_nor_does_one_that_is_nearly_full():
    positions = np.delete(np.arange(1200 * 1000, dtype=np.uint32), np.arange(7, 1200 * 1000, 300))
    bits = 8 * len(_native.matrix_encode(positions, 1200, 1000))
    assert bits <= 1.01 * entropy_bits(1200 * 1000, len(positions)) + 32


@pytest.mark.parametrize("kept", [1, 2, 5, 20, 100])
def test_it_costs_a_byte_more_than_rice_at_most(kept):
    for seed in range(50):
        positions = random_support(40, 250, kept / 10_000, seed)
        assert len(_native.matrix_encode(positions, 40, 250)) <= len(_native.rice_encode(positions, 10_000)) + 1


@pytest.mark.parametrize(("density", "saved"), [(0.003, 0.07), (0.01, 0.18), (0.1, 0.4)])
def test_unlike_rows_and_columns_cost_less(density, saved):
    positions = crowded_support(600, 500, density, evenness=0.5)
    bits = 8 * len(_native.matrix_encode(positions, 600, 500))
    assert bits < (1 - saved) * entropy_bits(300_000, len(positions))


def test_what_is_coded_is_near_what_the_densities_say():
    """Beside the entropy of the cells, given their densities, it costs a few bits for each row and column."""
    rng = np.random.default_rng(3)
    densities = np.minimum(0.9, 0.02 * np.outer(rng.gamma(1, 1, 800), rng.gamma(1, 1, 700)))
    cells = rng.random(densities.shape) < densities
    entropy = -np.log2(np.where(cells, densities, 1 - densities)).sum()
    bits = 8 * len(_native.matrix_encode(np.flatnonzero(cells).astype(np.uint32), 800, 700))
    assert bits < 1.01 * entropy + 4 * (800 + 700)


SHAPES = [(1, 1), (2, 2), (1, 900), (900, 1), (7, 13), (64, 36), (30, 48), (3, 500), (200, 4)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
@pytest.mark.parametrize("density", [0.02, 0.2, 0.9])
def test_agrees_with_the_reference(rows, columns, density):
    for seed, (evenness, taps) in enumerate([(0.05, 1), (0.3, 9), (1.0, 4), (30.0, 1)]):
        positions = crowded_support(rows, columns, density, seed, evenness, taps)
        payload = _native.matrix_encode(positions, rows, columns)
        assert payload == reference.encode(positions.tolist(), rows, columns)
        assert reference.decode(payload, len(positions), rows, columns) == positions.tolist()
        assert np.array_equal(_native.matrix_decode(payload, len(positions), rows, columns), positions)


def test_every_form_of_the_reference_is_decoded():
    """Classes, groups and scales that the encoder would not choose."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        rows, columns, row_group, column_group = (int(rng.integers(1, most)) for most in (9, 40, 4, 12))
        row_classes = rng.integers(0, 4, -(-rows // row_group)).tolist() if row_group < rows else None
        column_classes = rng.integers(0, 6, -(-columns // column_group)).tolist() if column_group < columns else None
        sides = (row_classes, row_group if row_classes else 0, column_classes, column_group if column_classes else 0)
        code = int(rng.integers(0, 2**15))
        steepest = code_reference.scale_of(code) * max(row_classes or [1]) ** 2 * max(column_classes or [1]) ** 2
        field = reference.field_of(code, *sides, columns)
        allowed = [
            row * columns + column
            for row in range(rows)
            for column in range(columns)
            if field.rate(row) * (field.sums[column + 1] - field.sums[column])
        ]
        if not 0 < steepest <= code_reference.STEEPEST:
            continue
        positions = [position for position in allowed if rng.random() < 0.3]
        coder = code_reference.RangeWriter()
        contexts = int(rng.integers(0, 4))
        code_reference.put_classes(coder, row_classes or [], bool(contexts & 1))
        code_reference.put_classes(coder, column_classes or [], bool(contexts & 2))
        reference.encode_positions(coder, field, positions)
        stream = coder.to_bytes()
        head = bytes([1 + contexts]) + code.to_bytes(2, "little") + bytes([sides[1], sides[3]])
        payload = head + varint(len(stream)) + stream
        assert reference.decode(payload, len(positions), rows, columns) == positions
        assert _native.matrix_decode(payload, len(positions), rows, columns).tolist() == positions


def _models():
    """Payloads of models, with kept, rows and columns: what the conformance suite flips is mostly plain."""
    yield bytes.fromhex("01009801000192"), 2, 2, 4
    for rows, columns, taps in ((60, 40, 1), (40, 72, 9), (2, 1000, 9)):
        positions = crowded_support(rows, columns, 0.15, 5, 0.3, taps)
        payload = _native.matrix_encode(positions, rows, columns)
        assert payload[0] != 0
        yield payload, len(positions), rows, columns


@pytest.mark.parametrize("model", list(_models()))
def test_models_with_a_bit_turned_over_are_read_as_the_reference_does(model):
    payload, *place = model
    for bit in range(8 * len(payload)):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            expected = reference.decode(bytes(flipped), *place)
        except CorruptError:
            expected = None
        try:
            found = _native.matrix_decode(bytes(flipped), *place).tolist()
        except CorruptPayloadError:
            found = None
        assert found == expected, bit


@pytest.mark.parametrize("model", list(_models()))
def test_models_are_read_to_the_byte(model):
    payload, *place = model
    for size in range(len(payload)):
        with pytest.raises(TruncatedPayloadError):
            _native.matrix_decode(payload[:size], *place)
    with pytest.raises(CorruptPayloadError, match="left over"):
        _native.matrix_decode(payload + b"\0", *place)
