"""Arrays and numbers that kernels refuse, each by an error that says what was given and what is needed."""

import numpy as np
import pytest

from hvd_deepreduce import _native
from hvd_deepreduce.errors import InvalidSettingError

FLOAT32 = np.dtype(np.float32)
VALUES = np.arange(8, dtype=np.float32)
POSITIONS = np.uint32([1, 5])

# How each kernel is called with a given array of values, others being as they should.
READERS = {
    "all_finite": ("values", _native.all_finite),
    "compensate": ("residual", lambda values: _native.compensate(values, VALUES)),
    "compensate's gradient": ("gradient", lambda values: _native.compensate(VALUES.copy(), values)),
    "subtract_at": ("dense", lambda values: _native.subtract_at(values, POSITIONS, VALUES[:2])),
    "gather": ("dense", lambda values: _native.gather(values, POSITIONS)),
    "scatter_add": ("dense", lambda values: _native.scatter_add(values, POSITIONS, VALUES[:2], 1.0)),
    "select_topk": ("values", lambda values: _native.select_topk(values, 1)),
    "select_above": ("values", lambda values: _native.select_above(values, 0.0)),
    "fp16_encode": ("values", _native.fp16_encode),
    "bf16_encode": ("values", _native.bf16_encode),
    "qsgd_encode": ("values", lambda values: _native.qsgd_encode(values, 4, 2, 0)),
}
POSITION_READERS = {
    "check_positions": lambda positions, numel: _native.check_positions(positions, numel),
    "bitmap_encode": lambda positions, numel: _native.bitmap_encode(positions, numel),
    "rice_encode": lambda positions, numel: _native.rice_encode(positions, numel),
    "rice_bits": lambda positions, numel: _native.rice_bits(positions, numel),
    "gather": lambda positions, numel: _native.gather(np.zeros(numel, np.float32), positions),
}
by_reader = pytest.mark.parametrize(("name", "call"), READERS.values(), ids=READERS)


def unaligned(dtype):
    return np.frombuffer(bytearray(8 * np.dtype(dtype).itemsize + 1), dtype, offset=1)


@by_reader
@pytest.mark.parametrize(
    ("array", "problem"),
    [
        ([1.0, 2.0], "a NumPy array is needed, not list"),
        (None, "a NumPy array is needed, not NoneType"),
        (np.ones((2, 4), np.float32), "2 dimensions; one is needed"),
        (np.zeros((), np.float32), "0 dimensions; one is needed"),
        (np.ones(16, np.float32)[::2], "not contiguous"),
        (np.ones(8, np.float32)[::-1], "not contiguous"),
        (np.ones(8, ">f4"), "foreign byte order"),
        (unaligned(np.float32), "not aligned"),
        (np.ones(8, np.float16), "dtype float16"),
        (np.ones(8, np.int32), "dtype int32"),
        (np.ones(8, np.longdouble), f"dtype {np.dtype(np.longdouble)}"),
        (np.ones(8, np.complex64), "dtype complex64"),
        (np.ones(8, object), "dtype object"),
        (np.ones(8, bool), "dtype bool"),
    ],
    ids=lambda parameter: parameter[:24] if isinstance(parameter, str) else "",
)
def test_arrays_of_values(array, problem, name, call):
    with pytest.raises(InvalidSettingError, match=f"^{name}: .*{problem}"):
        call(array)


@pytest.mark.parametrize("kernel", ["compensate", "subtract_at", "scatter_add"])
def test_what_is_written_must_be_writeable(kernel):
    values = VALUES.copy()
    values.flags.writeable = False
    name, call = READERS[kernel]
    with pytest.raises(InvalidSettingError, match=f"^{name}: the array is read-only; it is written to$"):
        call(values)


def test_what_is_read_may_be_read_only():
    values, positions = VALUES.copy(), POSITIONS.copy()
    values.flags.writeable = positions.flags.writeable = False
    assert _native.all_finite(values)
    assert _native.gather(values, positions).flags.writeable
    _native.scatter_add(np.zeros(8, np.float32), positions, values[:2], 1.0)
    assert _native.compensate(np.zeros(8, np.float32), values)


@pytest.mark.parametrize("call", POSITION_READERS.values(), ids=POSITION_READERS)
@pytest.mark.parametrize(
    ("array", "problem"),
    [
        ([1, 2], "a NumPy array is needed, not list"),
        (np.uint32([[1]]), "2 dimensions; one is needed"),
        (np.uint32([1, 2, 3, 4])[::2], "not contiguous"),
        (np.array([1, 2], ">u4"), "foreign byte order"),
        (unaligned(np.uint32), "not aligned"),
        (np.int32([1, 2]), "dtype int32; for numel 10 needed is uint32"),
        (np.int64([1, 2]), "dtype int64; for numel 10 needed is uint32"),
        (np.uint64([1, 2]), "dtype uint64; for numel 10 needed is uint32"),
        (np.float32([1, 2]), "dtype float32; for numel 10 needed is uint32"),
    ],
    ids=lambda parameter: parameter[:24] if isinstance(parameter, str) else "",
)
def test_arrays_of_positions(array, problem, call):
    with pytest.raises(InvalidSettingError, match=f"^positions: .*{problem}"):
        call(array, 10)


def test_wide_positions_above_32_bits():
    wide = np.uint64([1, 2**33 - 1])
    _native.check_positions(wide, 2**33)
    _native.check_positions(wide[:1].astype(np.uint32), 2**32)
    with pytest.raises(InvalidSettingError, match="dtype uint32; for numel 4294967297 needed is uint64"):
        _native.check_positions(np.uint32([1]), 2**32 + 1)


def test_arrays_that_do_not_match():
    with pytest.raises(InvalidSettingError, match="^gradient: 8 elements; residual has 7$"):
        _native.compensate(np.zeros(7, np.float32), VALUES)
    with pytest.raises(InvalidSettingError, match="^gradient: dtype float32; needed is float64$"):
        _native.compensate(np.zeros(8), VALUES)
    for call in (_native.subtract_at, lambda *arrays: _native.scatter_add(*arrays, 1.0)):
        dense = np.zeros(8, np.float32)
        with pytest.raises(InvalidSettingError, match="^values: 8 elements; positions has 2$"):
            call(dense, POSITIONS, VALUES)
        with pytest.raises(InvalidSettingError, match="^values: dtype float64; needed is float32$"):
            call(dense, POSITIONS, np.zeros(2))
        assert not dense.any()


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("kept: 9; allowed is an integer from 0 to 8", lambda: _native.select_topk(VALUES, 9)),
        ("kept: -1; allowed is an integer from 0 to 8", lambda: _native.select_topk(VALUES, -1)),
        ("kept: 1.5; allowed", lambda: _native.select_topk(VALUES, 1.5)),
        ("kept: None; allowed", lambda: _native.rice_decode(b"", None, 1)),
        ("kept: 18446744073709551616; allowed", lambda: _native.rice_decode(b"", 2**64, 1)),
        ("kept: 8589934593; allowed", lambda: _native.fp16_decode(b"", 2**33 + 1, FLOAT32)),
        (
            "numel: 8589934593; allowed is an integer from 0 to 8589934592",
            lambda: _native.rice_bits(POSITIONS, 2**33 + 1),
        ),
        ("numel: -1; allowed", lambda: _native.check_positions(POSITIONS, -1)),
        ("bits: 1; allowed is an integer from 2 to 16", lambda: _native.qsgd_encode(VALUES, 1, 4, 0)),
        ("bits: 17; allowed", lambda: _native.qsgd_decode(b"", 0, 17, 4, FLOAT32)),
        ("bucket: 0; allowed is an integer from 1 to 1048576", lambda: _native.qsgd_encode(VALUES, 4, 0, 0)),
        ("bucket: 1048577; allowed", lambda: _native.qsgd_decode(b"", 0, 4, 2**20 + 1, FLOAT32)),
        ("key: -1; allowed", lambda: _native.qsgd_encode(VALUES, 4, 4, -1)),
        ("key: 18446744073709551616; allowed", lambda: _native.random_u64(2**64, 1)),
        ("count: -1; allowed", lambda: _native.random_u64(0, -1)),
        ("dtype: dtype float16; allowed are float32 and float64", lambda: _native.fp16_decode(b"", 0, np.dtype("f2"))),
        ("dtype: dtype >f4; allowed are float32 and float64", lambda: _native.bf16_decode(b"", 0, np.dtype(">f4"))),
        ("payload: contiguous bytes are needed, not str", lambda: _native.rice_decode("", 0, 1)),
        (
            "payload: contiguous bytes are needed, not memoryview",
            lambda: _native.rice_decode(memoryview(b"abc")[::2], 0, 1),
        ),
    ],
)
def test_single_arguments(message, call):
    with pytest.raises(InvalidSettingError, match=f"^{message}"):
        call()


def test_payloads_of_any_kind_of_bytes():
    """A frame need not be copied to be decoded."""
    for payload in (b"\x09", bytearray(b"\x09"), memoryview(b"x\x09x")[1:2], np.uint8([9])):
        assert _native.bitmap_decode(payload, 2, 6).tolist() == [0, 3]


def test_numpy_integers_are_integers():
    assert _native.select_topk(VALUES, np.int64(2)).tolist() == [6, 7]


def test_arguments_have_names():
    assert _native.select_topk(values=VALUES, kept=1).tolist() == [7]
    assert _native.rice_decode(payload=b"\x30\x00\xe2\x03", kept=3, numel=1000).tolist() == [3, 4, 260]
