"""Some rows of a table, of one rank; FORMAT.md, 3.1."""

from reference import index_codecs, value_codecs
from reference.bits import ByteReader, CorruptError
from reference.frame import Codecs, parse


def decode(reader: ByteReader, codecs: Codecs, rows: int, columns: int, width: int) -> tuple[list[int], list[int]]:
    """Numbers of the rows, and their values row after row as bit patterns of the value type."""
    frame = parse(reader, codecs, rows)
    if frame.index_id == 0:
        if frame.special != 0:
            raise CorruptError("frame of rows: special")
        return [], []
    numbers = index_codecs.decode(frame.index_id, frame.index_payload, frame.kept, 1, rows)
    positions = [number * columns + column for number in numbers for column in range(columns)]
    settings = {**codecs.value_settings, "positions": positions}
    return numbers, value_codecs.DECODERS[frame.value_id](frame.value_payload, len(positions), width, settings)
