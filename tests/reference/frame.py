"""One tensor of one rank; FORMAT.md, 3."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reference import curves, index_codecs, shared_support, value_codecs
from reference.bits import ByteReader, CorruptError, varint
from reference.floats import VALUE_TYPES


@dataclass(frozen=True)
class Codecs:
    """What the receiver's settings name: the index ids its codec may write, and the value codec."""

    index_ids: tuple[int, ...]
    value_id: int
    value_settings: Mapping[str, Any]
    """With the sender's "key", and "rows" and "columns" of the tensor, for a codec that has to know."""
    shared: tuple[int, int] | None = None
    """Key and kept of a support that all ranks know."""

    def ids(self) -> tuple[tuple[int, ...], int]:
        """Of positions and values, as they stand in a frame."""
        if index_codecs.RAW in self.index_ids and self.value_id in value_codecs.ORDERED:
            return (index_codecs.ORDERED,), value_codecs.ORDERED[self.value_id]
        return self.index_ids, self.value_id


@dataclass(frozen=True)
class Parsed:
    """The fields of a frame; `index_id` 0 has only `special`."""

    index_id: int
    special: int = 0
    value_id: int = 0
    kept: int = 0
    index_payload: bytes = b""
    value_payload: bytes = b""

    def to_bytes(self) -> bytes:
        if self.index_id == 0:
            return varint(0) + varint(self.special)
        lengths = (len(self.index_payload), len(self.value_payload))
        head = b"".join(map(varint, (self.index_id, self.value_id, self.kept, *lengths)))
        return head + self.index_payload + self.value_payload


EMPTY = Parsed(0, special=0)
NOT_FINITE = Parsed(0, special=1)


def parse(reader: ByteReader, codecs: Codecs, numel: int) -> Parsed:
    """Reads one frame and leaves the reader behind it."""
    index_id = reader.varint()
    if index_id == 0:
        special = reader.varint()
        if special > 1:
            raise CorruptError(f"frame: special {special}")
        return Parsed(0, special=special)
    index_ids, needed = codecs.ids()
    if index_id not in index_ids:
        raise CorruptError(f"frame: index id {index_id}")
    value_id = reader.varint()
    if value_id != needed:
        raise CorruptError(f"frame: value id {value_id}")
    kept, index_length, value_length = reader.varint(), reader.varint(), reader.varint()
    if not 1 <= kept <= numel:
        raise CorruptError(f"frame: kept {kept}")
    return Parsed(index_id, 0, value_id, kept, reader.take(index_length), reader.take(value_length))


def decode(reader: ByteReader, codecs: Codecs, numel: int, width: int) -> list[int]:
    """The dense gradient as bit patterns of the value type."""
    frame = parse(reader, codecs, numel)
    if frame.index_id == 0:
        return [VALUE_TYPES[width].quiet_nan if frame.special else 0] * numel
    if codecs.shared is not None:
        key, kept = codecs.shared
        if frame.kept != kept or frame.index_payload:
            raise CorruptError("frame: not the shared support")
        positions = shared_support.support(key, numel, kept)
    else:
        positions = index_codecs.DECODERS[frame.index_id](frame.index_payload, frame.kept, numel)
    decode_values = value_codecs.DECODERS[frame.value_id]
    settings = {**codecs.value_settings, "positions": positions}
    values = decode_values(frame.value_payload, len(positions), width, settings)
    dense = [0] * numel
    for position, value in zip(positions, values, strict=True):
        dense[position] = value
    return dense


def encode(positions: list[int], dense: list[int], codecs: Codecs, numel: int, width: int, key: int) -> bytes:
    """With the first of the index ids, from sorted positions and the dense gradient: values are those decoded to."""
    if not positions:
        return EMPTY.to_bytes()
    (index_id, *_), value_id = codecs.ids()
    index_payload, decoded = b"", positions
    if index_id not in (shared_support.ID, index_codecs.ORDERED):
        index_payload = index_codecs.ENCODERS[index_id](positions, numel)
        decoded = index_codecs.DECODERS[index_id](index_payload, len(positions), numel)
    settings = {**codecs.value_settings, "positions": decoded}
    values = [dense[position] for position in decoded]
    value_payload = value_codecs.ENCODERS[value_id](values, width, settings, key)
    if index_id == index_codecs.ORDERED:
        order = curves.falling([curves.number(value, width) for value in values])
        index_payload = index_codecs.ENCODERS[index_id]([positions[i] for i in order], numel)
    return Parsed(index_id, 0, value_id, len(positions), index_payload, value_payload).to_bytes()
