"""Gradients of rows: merge, frames, residuals by row, and the sum of several ranks."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from conformance.inputs import examples
from hypothesis import given
from hypothesis import strategies as st

from hvd_deepreduce import JsonLinesWriter, agreement, read_json_lines
from hvd_deepreduce.errors import (
    CorruptPayloadError,
    InvalidSettingError,
    RemoteRankError,
    SettingsMismatchError,
    TruncatedPayloadError,
)
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS, VALUE_CODECS
from hvd_deepreduce.rows.batch import RowBatch
from hvd_deepreduce.rows.gradient import RowGradient
from hvd_deepreduce.rows.merge import Rows, add_rows, merge_rows, table_of
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.rows.statistics import RowStatistics, TableStatistics
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

SPEC = TensorSpec("table", (40, 2, 3))
DRAW = Draw(tensor="table", step=2, rank=1)
EXACT_VALUES = [name for name, codec in VALUE_CODECS.items() if codec.exact]
LOSSY_VALUES = [name for name, codec in VALUE_CODECS.items() if not codec.exact]


def rows_of(seed: int, number: int = 30, spec: TensorSpec = SPEC) -> Rows:
    generator = np.random.default_rng(seed)
    table = table_of(spec)
    values = generator.standard_normal((number, table.columns)).astype(spec.value_dtype)
    return Rows(generator.integers(0, table.rows, number), values)


def densified(rows: Rows, spec: TensorSpec = SPEC) -> np.ndarray:
    table = table_of(spec)
    dense = np.zeros((table.rows, table.columns), spec.value_dtype)
    np.add.at(dense, rows.numbers, rows.values)
    return dense


def decoded(pipeline: RowPipeline, frame: bytes, spec: TensorSpec = SPEC) -> Rows:
    reader = ByteReader(frame, "test")
    read = pipeline.read(reader, spec)
    assert not reader.rest()
    if read is None:
        return add_rows([], table_of(spec).columns, spec.value_dtype)
    return pipeline.decode(read, spec, DRAW)


@st.composite
def some_rows(draw: st.DrawFn) -> tuple[Rows, TensorSpec]:
    rows, columns = draw(st.integers(1, 70)), draw(st.integers(1, 5))
    numbers = draw(st.lists(st.integers(0, rows - 1), max_size=80))
    spec = TensorSpec("table", (rows, columns), draw(st.sampled_from(["float32", "float64", "bfloat16"])))
    value = st.floats(-(2.0**30), 2.0**30, width=32)
    values = draw(st.lists(value, min_size=len(numbers) * columns, max_size=len(numbers) * columns))
    return Rows(np.array(numbers, np.int64), np.array(values, spec.value_dtype).reshape(-1, columns)), spec


@pytest.mark.parametrize("index", [name for name, codec in INDEX_CODECS.items() if codec.exact])
@pytest.mark.parametrize("value", EXACT_VALUES)
def test_rows_arrive_merged_and_bit_for_bit(index: str, value: str) -> None:
    @examples(12)
    @given(some_rows())
    def check(case: tuple[Rows, TensorSpec]) -> None:
        rows, spec = case
        before = rows.numbers.copy(), rows.values.copy()
        pipeline = RowPipeline(RowSettings.of(index, value))
        encoded = pipeline.encode(rows, spec, pipeline.new_slots(spec), DRAW)
        found = decoded(pipeline, encoded.frame, spec)
        assert found.numbers.tolist() == sorted(set(rows.numbers.tolist()))
        np.testing.assert_array_equal(found.values, densified(rows, spec)[found.numbers])
        assert encoded.kept == found.values.size
        np.testing.assert_array_equal(rows.numbers, before[0])
        np.testing.assert_array_equal(rows.values, before[1])

    check()


@pytest.mark.parametrize("value", LOSSY_VALUES)
def test_what_is_not_sent_of_a_row_is_kept_for_it(value: str) -> None:
    pipeline = RowPipeline(RowSettings.of("rice", value, "residual"))
    slots = pipeline.new_slots(SPEC)
    total = np.zeros((40, 6))
    for step in range(4):
        rows = rows_of(step)
        before = slots["residual"].reshape(40, 6).copy()
        sent = decoded(pipeline, pipeline.encode(rows, SPEC, slots, DRAW).frame)
        after = slots["residual"].reshape(40, 6)
        np.testing.assert_allclose(densified(rows) + before, densified(sent) + after, rtol=1e-5, atol=1e-5)
        others = np.setdiff1d(np.arange(40), rows.numbers)
        np.testing.assert_array_equal(after[others], before[others])
        total += densified(sent)
    expected = sum(densified(rows_of(step)).astype(np.float64) for step in range(4))
    np.testing.assert_allclose(total + slots["residual"].reshape(40, 6), expected, rtol=1e-4, atol=1e-4)


def test_a_step_taken_back_is_in_the_residual_again() -> None:
    pipeline = RowPipeline(RowSettings.of("rice", "qsgd(bits=3, bucket=6)", "residual"))
    slots = pipeline.new_slots(SPEC)
    pipeline.encode(rows_of(0), SPEC, slots, DRAW)
    before = slots["residual"].reshape(40, 6).copy()
    frame = pipeline.encode(rows_of(1), SPEC, slots, DRAW).frame
    pipeline.restore(frame, SPEC, slots, DRAW)
    np.testing.assert_allclose(slots["residual"].reshape(40, 6), before + densified(rows_of(1)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("value", VALUE_CODECS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_makes_every_value_nan_and_no_residual(value: str, bad: float) -> None:
    rows = rows_of(0)
    rows.values[3, 1] = bad
    pipeline = RowPipeline(RowSettings.of("rice", value, "residual"))
    slots = pipeline.new_slots(SPEC)
    encoded = pipeline.encode(rows, SPEC, slots, DRAW)
    assert not encoded.finite
    found = decoded(pipeline, encoded.frame)
    assert found.numbers.tolist() == sorted(set(rows.numbers.tolist()))
    assert np.isnan(found.values).all()
    pipeline.restore(encoded.frame, SPEC, slots, DRAW)
    assert not any(slot.any() for slot in slots.values())


def test_the_largest_tables_take_no_memory_for_rows_without_a_gradient() -> None:
    spec = TensorSpec("table", (2**27, 64))
    pipeline = RowPipeline(RowSettings.of())
    numbers = np.array([2**27 - 1, 5, 2**27 - 1])
    rows = Rows(numbers, np.arange(3 * 64, dtype=np.float32).reshape(3, 64))
    found = decoded(pipeline, pipeline.encode(rows, spec, {}, DRAW).frame, spec)
    assert found.numbers.tolist() == [5, 2**27 - 1]
    np.testing.assert_array_equal(found.values, [rows.values[1], rows.values[0] + rows.values[2]])


def test_equal_rows_are_summed_in_the_order_they_are_given() -> None:
    values = np.array([[1e8], [1.0], [-1e8], [1.0]], np.float32)
    merged = merge_rows(Rows(np.array([3, 3, 3, 3]), values), table_of(TensorSpec("table", (4, 1))))
    assert merged.values.tolist() == [[1.0]]


@pytest.mark.parametrize("number", [-1, 40])
def test_a_row_outside_the_table_is_refused(number: int) -> None:
    rows = Rows(np.array([1, number]), np.zeros((2, 6), np.float32))
    with pytest.raises(InvalidSettingError, match=f"row {number} is outside the table of 40 rows"):
        RowPipeline(RowSettings.of()).encode(rows, SPEC, {}, DRAW)


@pytest.mark.parametrize(("shape", "dtype"), [((2, 5), np.float32), ((3, 6), np.float32), ((2, 6), np.float64)])
def test_values_that_do_not_fit_are_refused(shape: tuple[int, int], dtype: type) -> None:
    with pytest.raises(InvalidSettingError, match="tensor 'table': rows of shape"):
        RowPipeline(RowSettings.of()).encode(Rows(np.array([1, 2]), np.zeros(shape, dtype)), SPEC, {}, DRAW)


# --- settings ---


def test_settings_are_spelled_out_and_read_again() -> None:
    settings = RowSettings.from_string("rice+qsgd(bits=7, bucket=64)", seed=3)
    assert str(settings) == "rows+rice+qsgd(bits=7, bucket=64)+residual"
    assert RowSettings.from_string(str(settings).removeprefix("rows+"), seed=3) == settings
    assert settings.fingerprint != RowSettings.from_string("rice+qsgd(bits=7, bucket=64)").fingerprint
    assert str(RowSettings.from_string("rice")) == "rows+rice+raw+none", "nothing is kept back of what is exact"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rice+raw+none+none", "4 parts; the form is index\\+value\\+memory"),
        ("rice+qsgd+dgc", "memory dgc.*; allowed are none and residual"),
        ("topk", "index: 'topk' is unknown"),
    ],
)
def test_other_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        RowSettings.from_string(text)


# --- several ranks ---


class Ranks:
    """All ranks of an exchange in one process."""

    def __init__(self, size: int, text: str) -> None:
        settings = RowSettings.from_string(text)
        self.pipeline = RowPipeline(settings)
        self.buckets = [Bucket(4, [SPEC], settings, RowBatch(self.pipeline), rank, size) for rank in range(size)]
        self.slots = [self.pipeline.new_slots(SPEC) for _ in range(size)]

    def put(self, given: list[Rows]) -> list[RowGradient]:
        gradients = [RowGradient(rows, SPEC, of, self.pipeline) for rows, of in zip(given, self.slots, strict=True)]
        for bucket, gradient, slots in zip(self.buckets, gradients, self.slots, strict=True):
            bucket.put(0, gradient, slots)
            bucket.encode(bucket.close())
        return gradients

    def step(self, given: list[Rows], factor: float) -> list[Rows]:
        gradients = self.put(given)
        gathered = b"".join(bucket.bundle() for bucket in self.buckets)
        for bucket, gradient in zip(self.buckets, gradients, strict=True):
            [one] = bucket.decode(gathered, [gradient], factor)
            assert one.finite
        return [gradient.rows for gradient in gradients]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_rank_gets_the_same_sum(size: int) -> None:
    exact, lossy = Ranks(size, "rice+raw"), Ranks(size, "rice+qsgd(bits=7, bucket=6)+residual")
    for step in range(3):
        # The last rank has no rows in the second step.
        given = [
            rows_of(10 * step + rank, 0 if size > 1 and (step, rank) == (1, size - 1) else 30) for rank in range(size)
        ]
        expected = np.zeros((40, 6), np.float32)
        for rows in given:  # the product in binary64, then rounded
            expected += (densified(rows).astype(np.float64) * (1 / size)).astype(np.float32)
        present = np.unique(np.concatenate([rows.numbers for rows in given]))
        for ranks in (exact, lossy):
            found = ranks.step(given, 1 / size)
            for one in found:
                np.testing.assert_array_equal(one.numbers, present)
                assert one.values.tobytes() == found[0].values.tobytes()
        np.testing.assert_array_equal(exact.step(given, 1 / size)[0].values, expected[present])


def test_no_rows_anywhere_are_none() -> None:
    [found, _] = Ranks(2, "rice+raw").step([rows_of(0, 0), rows_of(1, 0)], 0.5)
    assert found.values.shape == (0, 6)


def test_every_damaged_byte_is_refused() -> None:
    ranks = Ranks(2, "rice+raw")
    gradients = ranks.put([rows_of(0, 4), rows_of(1, 4)])
    bundles = [bucket.bundle() for bucket in ranks.buckets]
    for at in range(len(bundles[1])):
        damaged = bytearray(bundles[1])
        damaged[at] ^= 0x10
        with pytest.raises(CorruptPayloadError):
            ranks.buckets[0].decode(bundles[0] + bytes(damaged), [gradients[0]], 1.0)
    with pytest.raises(CorruptPayloadError):
        ranks.buckets[0].decode(bundles[0] + bundles[1][:-1], [gradients[0]], 1.0)
    with pytest.raises(RemoteRankError, match="rank 1: out of rows"):
        ranks.buckets[0].decode(bundles[0] + ranks.buckets[1].error_bundle("out of rows"), [gradients[0]], 1.0)


@pytest.mark.parametrize("index", [name for name, codec in INDEX_CODECS.items() if codec.exact])
@pytest.mark.parametrize("value", VALUE_CODECS)
def test_frames_cut_off_or_flipped_are_refused_or_well_formed(index: str, value: str) -> None:
    pipeline = RowPipeline(RowSettings.of(index, value, "none"))
    frame = pipeline.encode(rows_of(0, 5), SPEC, {}, DRAW).frame
    for end in range(len(frame)):
        with pytest.raises(TruncatedPayloadError):
            decoded(pipeline, frame[:end])
    for at in range(8 * min(len(frame), 40)):
        flipped = bytearray(frame)
        flipped[at // 8] ^= 1 << at % 8
        with contextlib.suppress(CorruptPayloadError):
            read = pipeline.read(ByteReader(bytes(flipped), "test"), SPEC)
            if read is not None:
                found = pipeline.decode(read, SPEC, DRAW)
                assert found.values.shape == (len(found.numbers), 6)
                assert (np.diff(found.numbers) > 0).all()


def test_ranks_with_other_settings_are_told() -> None:
    statements = [
        agreement.statement("x.rows", RowSettings.from_string(text), [SPEC], 2, average=1)
        for text in ("rice+raw", "bitmap+raw")
    ]
    assert json.loads(statements[0])["settings"] == "rows+rice+raw+none"
    with pytest.raises(SettingsMismatchError, match="'rows\\+bitmap\\+raw\\+none' on rank 1"):
        agreement.compare(b"".join(statements), 2)


# --- sizes ---


def test_a_position_serves_a_whole_row() -> None:
    spec = TensorSpec("table", (8000, 64))
    generator = np.random.default_rng(0)
    numbers = np.sort(generator.choice(8000, 2000, replace=False))
    rows = Rows(numbers, generator.standard_normal((2000, 64)).astype(np.float32))
    pipeline = RowPipeline(RowSettings.from_string("rice+qsgd(bits=7, bucket=64)"))
    encoded = pipeline.encode(rows, spec, pipeline.new_slots(spec), DRAW)
    assert encoded.value_bytes == 2000 * 64 * 7 // 8 + 2000 * 4
    # The entropy of a random support is 3.245 bits a row at density 1/4.
    assert 8 * encoded.index_bytes / 2000 < 3.245 * 1.01 + 0.02
    assert len(encoded.frame) <= encoded.index_bytes + encoded.value_bytes + 12


def test_statistics_are_logged_like_others(tmp_path: Path) -> None:
    statistics, pipeline = RowStatistics("rows+rice+raw+none"), RowPipeline(RowSettings.of())
    table = TableStatistics(SPEC)
    statistics.tensors.append(table)
    with JsonLinesWriter(tmp_path / "log") as log:
        for step in range(2):
            table.add(pipeline.encode(rows_of(step), SPEC, {}, DRAW))
            table.rows_given += 30
            statistics.steps += 1
            log.write({"rank": 0, "size": 2, **statistics.as_dict()})
    [(header, records)] = read_json_lines(tmp_path / "log")
    assert header["settings"] == "rows+rice+raw+none"
    assert [record["total"]["given_bytes"] for record in records] == [30 * 32, 30 * 32]


def test_statistics_tell_the_merge_from_the_coding() -> None:
    statistics = RowStatistics("rows+rice+raw+none")
    table = TableStatistics(SPEC, rows_given=30, rows_sent=20)
    pipeline = RowPipeline(RowSettings.of())
    table.add(pipeline.encode(rows_of(0), SPEC, {}, DRAW))
    statistics.tensors.append(table)
    total = statistics.as_dict()["total"]
    assert (total["given_bytes"], total["merged_bytes"]) == (30 * 32, 20 * 32)
    assert statistics.as_dict()["tensors"][0]["dense_bytes"] == 40 * 6 * 4
    assert "table" in statistics.as_table()
