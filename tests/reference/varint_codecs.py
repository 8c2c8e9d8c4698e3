"""Runs and gaps as varints; FORMAT.md, 4.5 and 4.8."""

from reference.bits import ByteReader, CorruptError, TruncatedError, varint

LONGEST = 5


def gaps_of(positions: list[int]) -> list[int]:
    return [here - before - 1 for before, here in zip([-1, *positions], positions, strict=False)]


def forged(value: int) -> bytes:
    """A varint, of a number no gap has where it is below 0."""
    return varint(value % 2**63)


def _take(reader: ByteReader) -> int:
    length = 0
    while True:
        if length == LONGEST:
            raise CorruptError("a varint longer than 5 bytes")
        if length == reader.left:
            raise TruncatedError("a varint breaks off")
        length += 1
        if reader.data[reader.place + length - 1] < 0x80:
            return reader.varint()


def delta_encode(positions: list[int], numel: int) -> bytes:
    return b"".join(map(forged, gaps_of(positions)))


def delta_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    if kept > len(payload):
        raise TruncatedError("delta: fewer bytes than gaps")
    reader = ByteReader(payload)
    positions: list[int] = []
    for _ in range(kept):
        positions.append((positions[-1] if positions else -1) + 1 + _take(reader))
        if positions[-1] >= numel:
            raise CorruptError("delta: a position outside numel")
    reader.end()
    return positions


def rle_encode(positions: list[int], numel: int) -> bytes:
    if not positions:
        return b""
    runs = []  # of zeros and of ones, in pairs
    for gap in gaps_of(positions):
        if gap or not runs:
            runs.append([gap, 1])
        else:
            runs[-1][1] += 1
    stored = [count - 1 for run in runs for count in run]
    stored[0] += 1
    return b"".join(map(forged, stored))


def rle_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    reader = ByteReader(payload)
    positions: list[int] = []
    end = 0
    while len(positions) < kept:
        start = end + _take(reader) + (1 if positions else 0)
        end = start + _take(reader) + 1
        if end > numel:
            raise CorruptError("rle: a run outside numel")
        if end - start > kept - len(positions):
            raise CorruptError("rle: more ones than kept")
        positions.extend(range(start, end))
    reader.end()
    return positions
