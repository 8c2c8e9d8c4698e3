"""The frames of one bucket of one rank; FORMAT.md, 2."""

import zlib
from dataclasses import dataclass

from reference.bits import ByteReader, CorruptError, TruncatedError, varint

FRAMES, ERROR = 0, 1
SMALLEST = 19


class OtherVersionError(CorruptError):
    """A bundle of another version."""


class OtherSettingsError(CorruptError):
    """A bundle of a rank with other settings."""


@dataclass(frozen=True)
class Expected:
    """What the receiver knows without being told."""

    fingerprint: int
    rank: int
    bucket: int
    step: int


def encode(kind: int, body: bytes, sender: Expected, padding: int = 0) -> bytes:
    tail = varint(sender.rank) + varint(sender.bucket) + varint(sender.step) + body + bytes(padding)
    head = b"DR" + bytes([1, kind]) + (16 + len(tail)).to_bytes(4, "little") + sender.fingerprint.to_bytes(4, "little")
    return head + zlib.crc32(head + tail).to_bytes(4, "little") + tail


def encode_error(text: str, sender: Expected, padding: int = 0) -> bytes:
    raw = text.encode("utf-8")
    return encode(ERROR, varint(len(raw)) + raw, sender, padding)


def decode(data: bytes, start: int, expected: Expected) -> tuple[int, ByteReader, int]:
    """Kind, a reader at the start of the body (padding still behind it), and where the next bundle begins."""
    reader = ByteReader(data[start:])
    if reader.take(2) != b"DR":
        raise CorruptError("bundle: magic")
    if reader.uint(1) != 1:
        raise OtherVersionError("bundle: version")
    kind = reader.uint(1)
    length = reader.uint(4)
    if length < SMALLEST:
        raise CorruptError("bundle: length")
    if length > len(reader.data):
        raise TruncatedError("bundle: length")
    fingerprint, checksum = reader.uint(4), reader.uint(4)
    whole = reader.data[:length]
    if zlib.crc32(whole[:12] + whole[16:]) != checksum:
        raise CorruptError("bundle: checksum")
    if kind not in (FRAMES, ERROR):
        raise CorruptError("bundle: kind")
    if kind != ERROR and fingerprint != expected.fingerprint:
        raise OtherSettingsError("bundle: fingerprint")
    body = ByteReader(whole)
    body.place = 16
    for name in ("rank", "bucket", "step"):
        if body.varint() != getattr(expected, name) and not (kind == ERROR and name == "step"):
            raise CorruptError(f"bundle: {name}")
    return kind, body, start + length


def error_text(body: ByteReader) -> str:
    try:
        text = body.take(body.varint()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptError("bundle: text") from error
    padding(body)
    return text


def padding(body: ByteReader) -> None:
    """Checks what follows the last frame or the text."""
    if any(body.take(body.left)):
        raise CorruptError("bundle: padding")
