"""What a hostile zlib stream can and can't do; the rest of `deflate` stands in the conformance suite."""

import tracemalloc
import zlib

import numpy as np
import pytest

from hvd_deepreduce import Deflate
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support
from hvd_deepreduce.value_codecs import deflate

FLOAT32 = np.dtype(np.float32)


def support(kept):
    return Support(np.arange(kept, dtype=np.uint32), MatrixView(1, max(kept, 1)))


def decode(payload, kept, **settings):
    return Deflate(**settings).decode(payload, support(kept), FLOAT32, Draw())


@pytest.mark.parametrize("kept", [0, 1, 1000])
def test_a_bomb_is_refused_before_it_takes_memory(kept):
    bomb = zlib.compress(bytes(2**24), 9)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptPayloadError, match="^deflate: more than the"):
            decode(bomb, kept)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**18


def test_more_values_than_any_stream_of_that_length_holds():
    with pytest.raises(TruncatedPayloadError, match="are never in so few$"):
        decode(zlib.compress(bytes(100)), 2**30)


def test_the_most_that_a_stream_can_hold_is_let_through():
    data = bytes(4 * 2**20)
    payload = zlib.compress(data, 9)
    assert len(data) / len(payload) > 1000
    assert not decode(payload, 2**20).any()


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_takes_no_more_than_stored_blocks(level, shuffle, dtype):
    codec = Deflate(level, shuffle)
    values = np.random.default_rng(0).integers(0, 256, 200_000, np.uint8).view(dtype)
    payload = codec.encode(values, support(len(values)), Draw())
    assert len(payload) <= codec.max_encoded_size(len(values), values.itemsize)
    decoded = codec.decode(payload, support(len(values)), values.dtype, Draw())
    assert decoded.tobytes() == values.tobytes()


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 131070, 200_000])
def test_the_stream_of_stored_blocks_that_the_bound_rests_on(size):
    data = np.random.default_rng(0).bytes(size)
    stored = deflate._stored(data)
    assert len(stored) == deflate._stored_size(size)
    assert zlib.decompress(stored) == data
