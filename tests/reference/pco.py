"""Gaps and values in chunks of pcodec; FORMAT.md, 4.13 and 5.16. The chunks themselves are read by the library."""

import numpy as np
from pcodec import ChunkConfig, PagingSpec, wrapped

from reference.bits import CorruptError, TruncatedError

CHUNK = 2**18
HEADER = bytes([4, 1])


def gaps_of(positions: list[int]) -> list[int]:
    return [here - before - 1 for before, here in zip([-1, *positions], positions, strict=False)]


def encode_numbers(numbers: list[int], width: int, floats: bool) -> bytes:
    """`numbers` are bit patterns; one encoder of many: the library's fastest."""
    patterns = np.array([number % 2**width for number in numbers], f"u{width // 8}")
    array = patterns.view(f"f{width // 8}") if floats else patterns
    config = ChunkConfig(compression_level=0, paging_spec=PagingSpec.equal_pages_up_to(CHUNK))
    payload = b""
    for start in range(0, len(array), CHUNK):
        chunk = wrapped.FileCompressor().chunk_compressor(array[start : start + CHUNK], config)
        payload += chunk.write_meta() + chunk.write_page(0)
    return payload


def decode_numbers(payload: bytes, count: int, width: int, floats: bool) -> list[int]:
    """Bit patterns."""
    numbers: list[int] = []
    while len(numbers) < count:
        array = np.empty(min(CHUNK, count - len(numbers)), f"{'f' if floats else 'u'}{width // 8}")
        payload = payload[_chunk(payload, array, f"{'f' if floats else 'u'}{width}") :]
        numbers += array.view(f"u{width // 8}").tolist()
    if payload:
        raise CorruptError("pco: bytes behind the last chunk")
    return numbers


def _chunk(payload: bytes, array: np.ndarray, dtype: str) -> int:
    # The library says which end it met only in most cases; what follows decides.
    try:
        used = _read(payload, array, dtype)
    except RuntimeError as error:
        try:
            _read(payload + b"\xff" * 64, array, dtype)
        except RuntimeError as other:
            if "InsufficientData" not in str(error) and str(other) == str(error):
                raise CorruptError(f"pco: {error}") from error
        raise TruncatedError(f"pco: {error}") from error
    if used > len(payload):
        raise TruncatedError("pco: too short")
    return used


def _read(payload: bytes, array: np.ndarray, dtype: str) -> int:
    file, _ = wrapped.FileDecompressor.new(HEADER)
    chunk, meta = file.chunk_decompressor(payload, dtype)
    progress, page = chunk.read_page_into(payload[meta:], len(array), array)
    assert progress.finished
    assert progress.n_processed == len(array)
    return meta + page


def encode(positions: list[int], numel: int) -> bytes:
    return encode_numbers(gaps_of(positions), 32 if numel <= 2**32 else 64, floats=False)


def decode(payload: bytes, kept: int, numel: int) -> list[int]:
    positions: list[int] = []
    for gap in decode_numbers(payload, kept, 32 if numel <= 2**32 else 64, floats=False):
        positions.append((positions[-1] if positions else -1) + 1 + gap)
        if positions[-1] >= numel:
            raise CorruptError(f"pco: position {positions[-1]} outside numel {numel}")
    return positions


def limit(count: int, size: int) -> int:
    return count * size + 64 * -(-count // CHUNK)
