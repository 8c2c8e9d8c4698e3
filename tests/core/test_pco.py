"""What the library pcodec is not trusted with, and what is said where it is missing."""

import importlib.util
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from hvd_deepreduce import Pco, PcoValues, Settings
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError
from hvd_deepreduce.pcodec_chunks import CHUNK, most_bytes
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support

DRAW = Draw()
EQUAL_GAPS = bytes.fromhex("001000000000000000")


def support(positions: np.ndarray, numel: int) -> Support:
    return Support(positions.astype(np.uint32), MatrixView(1, numel))


@pytest.mark.parametrize("kept", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_chunks_follow_one_another(kept: int) -> None:
    rng = np.random.default_rng(kept)
    given = support(np.cumsum(rng.geometric(0.3, kept)), 8 * kept)
    payload = Pco(level=2).encode(given, DRAW)
    assert np.array_equal(Pco().decode(payload, kept, given.view, DRAW).positions, given.positions)
    values = rng.normal(size=kept).astype(np.float32)
    payload = PcoValues(level=2).encode(values, given, DRAW)
    assert np.array_equal(PcoValues().decode(payload, given, values.dtype, DRAW), values)


def test_values_that_can_not_be_compressed_grow_by_little() -> None:
    patterns = np.random.default_rng(0).integers(0, 2**32, CHUNK + 9, dtype=np.uint32)
    for count in (1, 2, 100, len(patterns)):
        values = patterns[:count].view(np.float32)
        payload = PcoValues(level=0).encode(values, support(np.arange(count), count), DRAW)
        assert 4 * count < len(payload) <= most_bytes(count, 4) == PcoValues().max_encoded_size(count, 4)


def test_few_bytes_that_claim_many_numbers_take_memory_for_a_chunk_alone() -> None:
    tracemalloc.start()
    with pytest.raises(CorruptPayloadError, match="^pco: chunk 1 of"):
        Pco().decode(EQUAL_GAPS, 2**30, MatrixView(1, 2**30), DRAW)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


def test_no_sum_of_gaps_overflows() -> None:
    """Gaps of 2**33 - 1 in turn: 2**31 of them would come round to zero."""
    view = MatrixView(1, 2**33)
    payload = bytes.fromhex("001000f8ffffff0f0000000000")
    assert Pco().decode(payload, 1, view, DRAW).positions.tolist() == [2**33 - 1]
    with pytest.raises(CorruptPayloadError, match=f"position {2 * 2**33 - 1} is outside"):
        Pco().decode(payload, 2, view, DRAW)


def test_random_bytes_are_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    view = MatrixView(1, 2**20)
    start = Pco().encode(support(np.cumsum(rng.geometric(0.02, 200)), view.numel), DRAW)
    for _ in range(2000):
        head = start[: rng.integers(len(start))]
        for work in (
            lambda p: Pco().decode(p, 200, view, DRAW),
            lambda p: PcoValues().decode(p, support(np.arange(200), 200), np.dtype(np.float32), DRAW),
        ):
            try:
                work(head + rng.bytes(rng.integers(40)))
            except CorruptPayloadError:
                continue


def test_without_the_library_the_settings_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pcodec" else found(name))
    for text in ("topk+pco", "topk+rice+pco"):
        with pytest.raises(InvalidSettingError, match=r"pco\(level=8\) needs the package pcodec: pip install pcodec"):
            Settings.from_string(text)
    assert Settings.from_string("topk+rice+raw")


def test_without_the_library_a_codec_of_ones_own_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pcodec", None)
    with pytest.raises(InvalidSettingError, match="pip install"):
        Pco().encode(support(np.arange(3), 9), DRAW)


def test_the_library_is_loaded_when_it_is_needed() -> None:
    code = (
        "import sys, hvd_deepreduce as d; d.Settings.of(index='pco', value='pco'); assert 'pcodec' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_format_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvd_deepreduce.pcodec_chunks._HEADER", bytes([4, 0]))
    with pytest.raises(InvalidSettingError, match="writes format 0401; 0400 is needed"):
        Pco().encode(support(np.arange(3), 9), DRAW)
