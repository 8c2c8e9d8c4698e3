"""What one rank contributes to one collective; FORMAT.md, 2."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from hvd_deepreduce.errors import (
    CorruptPayloadError,
    DeepReduceError,
    RemoteRankError,
    TruncatedPayloadError,
    UnsupportedVersionError,
)
from hvd_deepreduce.wire.reader import ByteReader, varint

MAGIC: Final = b"DR"
VERSION: Final = 1
_FIXED = struct.Struct("<2sBBII")
_CHECKSUM_END = _FIXED.size + 4
_SHORTEST = _CHECKSUM_END + 3
_LONGEST_MESSAGE = 4096


class Kind(IntEnum):
    """What the body of a bundle is."""

    FRAMES = 0
    ERROR = 1


@dataclass(frozen=True)
class BundleHeader:
    """What must be equal on both sides, but for the rank."""

    fingerprint: int
    rank: int
    bucket: int
    step: int

    def frames(self, body: bytes, previous_length: int | None = None) -> bytes:
        """A bundle of frames, padded as `padded_length` says when the length of the previous one is given."""
        return self._bundle(Kind.FRAMES, body, previous_length)

    def error(self, message: str) -> bytes:
        """A bundle that tells every rank why this one can't go on."""
        text = message.encode("utf-8", "replace")[:_LONGEST_MESSAGE].decode("utf-8", "ignore").encode()
        return self._bundle(Kind.ERROR, varint(len(text)) + text)

    def _bundle(self, kind: Kind, body: bytes, previous_length: int | None = None) -> bytes:
        tail = varint(self.rank) + varint(self.bucket) + varint(self.step) + body
        length = _CHECKSUM_END + len(tail)
        if previous_length is not None:
            length = padded_length(length, previous_length)
            tail = tail.ljust(length - _CHECKSUM_END, b"\0")
        if length >= 2**31:
            raise DeepReduceError(f"bucket {self.bucket}: a bundle of {length} bytes; below 2**31 are allowed")
        head = _FIXED.pack(MAGIC, VERSION, kind, length, self.fingerprint)
        checksum = zlib.crc32(tail, zlib.crc32(head))
        return head + checksum.to_bytes(4, "little") + tail


def padded_length(length: int, previous: int) -> int:
    """The size that a bundle of `length` bytes is padded to: up to 5 %, or 10 bytes, more.

    Horovod negotiates a gather anew whenever its size changes, which costs more than the padding: so a bundle keeps the
    size of the previous one while it fits into it and fills 15/16 of it.
    """
    if previous - previous // 16 <= length <= previous:
        return previous
    step = max(8, 1 << max(0, length.bit_length() - 6))
    return -(-(length + step // 4) // step) * step


def split_bundles(gathered: bytes, expected: BundleHeader, ranks: int) -> list[ByteReader]:
    """One reader per rank, in rank order, each standing at the first frame; `expected.rank` is not looked at.

    Raises `UnsupportedVersionError` or `CorruptPayloadError` for bytes that are not these bundles, and
    `RemoteRankError` with the text of every rank that sent an error.
    """
    readers: list[ByteReader] = []
    messages: list[str] = []
    offset = 0
    for rank in range(ranks):
        what = f"bucket {expected.bucket}, step {expected.step}, rank {rank}"
        bundle = _cut(gathered, offset, what)
        offset += len(bundle)
        reader = ByteReader(bundle, what, _CHECKSUM_END)
        failed = bundle[3] == Kind.ERROR
        for field, right in (("rank", rank), ("bucket", expected.bucket), ("step", expected.step)):
            found = reader.varint(field)
            # A rank that failed early in a step may not have opened this bucket for it.
            if found != right and not (failed and field == "step"):
                raise CorruptPayloadError(f"{what}: bundle is of {field} {found}; expected was {right}")
        if failed:
            text = reader.take(reader.varint("length of the message"), "message")
            require_padding(reader)
            messages.append(f"rank {rank}: {_decode_text(text, what)}")
            continue
        _, _, _, _, fingerprint = _FIXED.unpack_from(bundle)
        if fingerprint != expected.fingerprint:
            raise CorruptPayloadError(
                f"{what}: bundle was made with settings of fingerprint {fingerprint:08x}; "
                f"here it is {expected.fingerprint:08x}: start every rank with the same settings"
            )
        readers.append(reader)
    if offset != len(gathered):
        raise CorruptPayloadError(f"bucket {expected.bucket}: {len(gathered) - offset} bytes after the last bundle")
    if messages:
        raise RemoteRankError("; ".join(messages))
    return readers


def describe_header(data: bytes, reader: ByteReader) -> list[tuple[int, int, str, str]]:
    """Start, end, name and meaning of every field before the body; leaves the reader there.

    Raises `CorruptPayloadError` for a single bundle that no encoder makes, or is followed by something.
    """
    bundle = _cut(data, 0, reader.what)
    if len(bundle) != len(data):
        raise CorruptPayloadError(f"{reader.what}: {len(data) - len(bundle)} bytes after the bundle")
    _, version, kind, length, fingerprint = _FIXED.unpack_from(bundle)
    fields = [
        (0, 2, "magic", MAGIC.decode()),
        (2, 3, "version", str(version)),
        (3, 4, "kind", Kind(kind).name.lower()),
        (4, 8, "length", f"{length:,} bytes"),
        (8, 12, "fingerprint", f"{fingerprint:08x}: the sender's settings"),
        (12, 16, "checksum", "right"),
    ]
    reader.take(_CHECKSUM_END, "fixed fields")
    for field in ("rank", "bucket", "step"):
        start = reader.offset
        value = reader.varint(field)
        fields.append((start, reader.offset, field, str(value)))
    return fields


def require_padding(reader: ByteReader) -> None:
    """Raises unless nothing but zero bytes is left."""
    rest = reader.rest()
    if rest.count(0) != len(rest):
        raise CorruptPayloadError(f"{reader.what}: padding from byte {reader.offset} on is not zero")


def _cut(gathered: bytes, offset: int, what: str) -> bytes:
    """The bundle at `offset`, once its fixed fields and its checksum were found right."""
    left = len(gathered) - offset
    if left >= 3:
        if gathered[offset : offset + 2] != MAGIC:
            raise CorruptPayloadError(
                f"{what}: no bundle at byte {offset}: it starts with "
                f"{gathered[offset : offset + 2].hex()}, not {MAGIC.hex()}"
            )
        if gathered[offset + 2] != VERSION:
            raise UnsupportedVersionError(
                f"{what}: wire format version {gathered[offset + 2]}; this is version {VERSION}: "
                "install the same hvd_deepreduce on every rank"
            )
    if left < _SHORTEST:
        raise TruncatedPayloadError(f"{what}: {left} bytes at byte {offset}; a bundle has {_SHORTEST} or more")
    _, _, kind, length, _ = _FIXED.unpack_from(gathered, offset)
    if length < _SHORTEST:
        raise CorruptPayloadError(f"{what}: length is {length}; {_SHORTEST} or more are allowed")
    if length > left:
        raise TruncatedPayloadError(f"{what}: length is {length}, and {left} bytes are there")
    bundle = gathered[offset : offset + length]
    checksum = zlib.crc32(bundle[_CHECKSUM_END:], zlib.crc32(bundle[: _FIXED.size]))
    stored = int.from_bytes(bundle[_FIXED.size : _CHECKSUM_END], "little")
    if checksum != stored:
        raise CorruptPayloadError(f"{what}: checksum is {checksum:08x}, the bundle says {stored:08x}: it was damaged")
    if kind not in (Kind.FRAMES, Kind.ERROR):
        raise CorruptPayloadError(f"{what}: bundle of kind {kind}; allowed are 0 and 1")
    return bundle


def _decode_text(text: bytes, what: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise CorruptPayloadError(f"{what}: message is not UTF-8 at its byte {error.start}") from error
