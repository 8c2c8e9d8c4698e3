"""One tensor of one rank; FORMAT.md, 3."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from hvd_deepreduce.errors import CorruptPayloadError
from hvd_deepreduce.wire.reader import ByteReader, varint


class Special(IntEnum):
    """Frames without payloads."""

    EMPTY = 0
    """Nothing was kept."""
    NOT_FINITE = 1
    """The gradient held a NaN or an infinity."""


SPECIAL_ID: Final = 0
SHARED_ID: Final = 11
"""In the place of an index codec's: the sparsifier tells the receivers the support."""
EMPTY_FRAME: Final = bytes([SPECIAL_ID, Special.EMPTY])
NOT_FINITE_FRAME: Final = bytes([SPECIAL_ID, Special.NOT_FINITE])


@dataclass(frozen=True, slots=True)
class Frame:
    """The payloads of a tensor, still encoded."""

    index_id: int
    value_id: int
    kept: int
    index_payload: bytes
    value_payload: bytes

    def to_bytes(self) -> bytes:
        return b"".join(
            (
                varint(self.index_id),
                varint(self.value_id),
                varint(self.kept),
                varint(len(self.index_payload)),
                varint(len(self.value_payload)),
                self.index_payload,
                self.value_payload,
            )
        )


def read_frame(reader: ByteReader, numel: int) -> Frame | Special:
    """Takes the next frame; raises `CorruptPayloadError` for one that no encoder makes for `numel` elements."""
    index_id = reader.varint("index id")
    if index_id == SPECIAL_ID:
        what = reader.varint("kind of special frame")
        if what not in (Special.EMPTY, Special.NOT_FINITE):
            raise CorruptPayloadError(f"{reader.what}: special frame of kind {what}; allowed are 0 and 1")
        return Special(what)
    value_id = reader.varint("value id")
    kept = reader.varint("kept")
    if not 1 <= kept <= numel:
        raise CorruptPayloadError(f"{reader.what}: kept is {kept}; allowed is 1 to numel {numel}")
    index_length = reader.varint("index length")
    value_length = reader.varint("value length")
    return Frame(
        index_id,
        value_id,
        kept,
        reader.take(index_length, "index payload"),
        reader.take(value_length, "value payload"),
    )
