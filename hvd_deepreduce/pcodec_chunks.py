"""What the codecs `pco` of both kinds have in common: numbers in chunks of the library pcodec; FORMAT.md, 4.13."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError

PACKAGE: Final = "pcodec"
HIGHEST_LEVEL: Final = 12
"""The lowest is 0."""
CHUNK: Final = 2**18
"""Numbers in every chunk but the last."""
_HEADER: Final = bytes([4, 1])
"""Of pcodec's wrapped format, version 4.1. It is the same for all, so it does not travel."""
_NAMES: Final = {
    np.dtype(np.uint32): "u32",
    np.dtype(np.uint64): "u64",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
}
_MORE: Final = b"\xff" * 64


def library() -> Any:
    """pcodec; raises `InvalidSettingError` where it is not installed."""
    try:
        return importlib.import_module(PACKAGE)
    except ImportError as missing:
        raise InvalidSettingError(
            f"pco needs the package pcodec: pip install 'pcodec>=1.1,<2' ({missing})"
        ) from missing


def compress(numbers: NDArray[Any], level: int) -> bytes:
    """The chunks of one-dimensional, contiguous numbers of 32 or 64 bits, one behind the other.

    Raises `InvalidSettingError` where the library that is installed writes another format.
    """
    pcodec = library()
    file = pcodec.wrapped.FileCompressor()
    if file.write_header() != _HEADER:
        raise InvalidSettingError(
            f"pco: pcodec {pcodec.__version__} writes format {file.write_header().hex()}; {_HEADER.hex()} is needed"
        )
    paging = pcodec.PagingSpec.equal_pages_up_to(CHUNK)
    config = pcodec.ChunkConfig(compression_level=level, paging_spec=paging)
    parts = []
    for start in range(0, len(numbers), CHUNK):
        chunk = file.chunk_compressor(numbers[start : start + CHUNK], config)
        parts += [chunk.write_meta(), chunk.write_page(0)]
    return b"".join(parts)


def decompress(payload: bytes, count: int, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """So many numbers, chunk by chunk, each a new array; memory for a chunk is reserved when the ones before are there.

    Raises `CorruptPayloadError`, also for bytes behind the last chunk.
    """
    pcodec = library()
    offset = 0
    for start in range(0, count, CHUNK):
        numbers = np.empty(min(CHUNK, count - start), dtype)
        try:
            offset += _read(pcodec, payload[offset:], numbers)
        except RuntimeError as error:
            what = f"pco: chunk {start // CHUNK} of {-(-count // CHUNK)}: pcodec: {error}"
            kind = (
                TruncatedPayloadError if _breaks_off(pcodec, payload[offset:], numbers, error) else CorruptPayloadError
            )
            raise kind(what) from error
        yield numbers
    if offset < len(payload):
        raise CorruptPayloadError(f"pco: {len(payload) - offset} bytes are left over after the last chunk")


def most_bytes(count: int, itemsize: int) -> int:
    """What pcodec promises: numbers that can't be compressed are stored as they are, with their bits counted anew."""
    return count * itemsize + 64 * -(-count // CHUNK)


def _read(pcodec: Any, payload: bytes, numbers: NDArray[Any]) -> int:
    """Fills `numbers` from the first chunk of a payload; returns its bytes."""
    file, _ = pcodec.wrapped.FileDecompressor.new(_HEADER)
    chunk, meta = file.chunk_decompressor(payload, _NAMES[numbers.dtype])
    progress, page = chunk.read_page_into(payload[meta:], len(numbers), numbers)
    if not progress.finished or progress.n_processed != len(numbers) or meta + page > len(payload):
        raise RuntimeError(f"{progress.n_processed} numbers are there; {len(numbers)} are needed")
    return int(meta + page)


def _breaks_off(pcodec: Any, payload: bytes, numbers: NDArray[Any], error: RuntimeError) -> bool:
    """Whether it was the end of the payload that was wrong.

    Where the library takes bits beyond the end for zeros and stumbles over these, it says something else if there are
    others.
    """
    if "InsufficientData" in str(error):
        return True
    try:
        _read(pcodec, payload + _MORE, numbers)
    except RuntimeError as other:
        return str(other) != str(error)
    return True
