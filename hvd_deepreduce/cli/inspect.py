"""Explains a bundle or a frame, field by field.

The file holds bytes, or their hex digits. A bundle says all about itself but for the tensors: how many elements they
have is not on the wire.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.console import PlainConsole
from hvd_deepreduce.errors import CorruptPayloadError
from hvd_deepreduce.registry import INDEX_CODECS, VALUE_CODECS, wire_ids
from hvd_deepreduce.sparse import MAX_NUMEL
from hvd_deepreduce.wire.bundle import MAGIC, Kind, describe_header
from hvd_deepreduce.wire.frame import SHARED_ID, Special, read_frame
from hvd_deepreduce.wire.reader import ByteReader

_SHOWN = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See --help."""
    parser.add_argument("frame", type=Path, metavar="FRAME", help="a file with a bundle, or with a single frame")
    parser.add_argument("--numel", type=int, help="elements of the tensor, to check a single frame against")


def run(options: argparse.Namespace) -> None:
    """Prints a table."""
    if options.numel is not None:
        require_integer("inspect", "numel", options.numel, minimum=1, maximum=MAX_NUMEL)
    data = _bytes_of(options.frame)
    table = Table(title=f"{options.frame}: {len(data)} bytes")
    for column in ("offset", "bytes", "field", "value"):
        table.add_column(column, justify="right" if column == "offset" else "left", overflow="fold")
    rows = _Rows(data, table)
    reader = ByteReader(data, str(options.frame))
    if data[:2] == MAGIC:
        _bundle(rows, reader, data)
    else:
        _frame(rows, reader, 0, options.numel or MAX_NUMEL)
        if reader.rest():
            raise CorruptPayloadError(f"{options.frame}: {len(reader.rest())} bytes after the frame")
    PlainConsole().print(table)


class _Rows:
    def __init__(self, data: bytes, table: Table):
        self._data, self._table = data, table

    def add(self, start: int, end: int, field: str, value: str) -> None:
        shown = self._data[start : min(end, start + _SHOWN)].hex(" ")
        more = " …" if end - start > _SHOWN else ""
        self._table.add_row(str(start), shown + more, field, value)

    def section(self) -> None:
        self._table.add_section()


def _bytes_of(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        return bytes.fromhex(data.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        return data


def _bundle(rows: _Rows, reader: ByteReader, data: bytes) -> None:
    kind = Kind.FRAMES
    for start, end, field, value in describe_header(data, reader):
        rows.add(start, end, field, value)
        if field == "kind":
            kind = Kind(data[start])
    if kind is Kind.ERROR:
        start = reader.offset
        text = reader.take(reader.varint("length of the message"), "message")
        rows.add(start, reader.offset, "message", text.decode("utf-8", "replace"))
        return
    place = 0
    while reader.rest().strip(b"\0"):
        rows.section()
        _frame(rows, reader, place, MAX_NUMEL)
        place += 1
    if reader.rest():
        # Frames of tensors of which nothing was kept are two zero bytes, as padding is.
        rows.section()
        rows.add(reader.offset, len(data), "empty frames, padding", f"{len(reader.rest())} zero bytes")


def _frame(rows: _Rows, reader: ByteReader, place: int, numel: int) -> None:
    start = reader.offset
    frame = read_frame(reader, numel)
    if isinstance(frame, Special):
        what = "nothing was kept" if frame is Special.EMPTY else "the gradient held a NaN or an infinity"
        rows.add(start, reader.offset, f"frame {place}", what)
        return
    index_end = reader.offset - len(frame.value_payload)
    index_start = index_end - len(frame.index_payload)
    index = "shared support" if frame.index_id == SHARED_ID else _name(INDEX_CODECS, frame.index_id)
    rows.add(
        start,
        index_start,
        f"frame {place}",
        f"index id {frame.index_id} ({index}), value id {frame.value_id} ({_name(VALUE_CODECS, frame.value_id)}), "
        f"kept {frame.kept:,}, payloads of {len(frame.index_payload):,} and {len(frame.value_payload):,} bytes",
    )
    for first, last, what, payload in (
        (index_start, index_end, "positions", frame.index_payload),
        (index_end, reader.offset, "values", frame.value_payload),
    ):
        rows.add(first, last, what, f"{8 * len(payload) / frame.kept:.2f} bits per kept element")


def _name(codecs: object, wire_id: int) -> str:
    assert hasattr(codecs, "values")
    for codec in codecs.values():
        forms = [codec, type(codec().ordered)]
        if any(wire_id in wire_ids(form) for form in forms if form is not type(None)):
            return str(codec.name)
    return "unknown"
