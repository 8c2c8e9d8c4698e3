"""Cases of the index codec `matrix`, FORMAT.md, 4.10."""

from reference import matrix, matrix_code
from reference.bits import varint

from golden.vectors import Fields

_MATRIX = {"kind": "index", "settings": "matrix"}


def _positions(places: list[int]) -> str:
    return " ".join(map(str, places))


def _crowded(rows: int, columns: int, most: int, step: int) -> str:
    """Cells at places without a pattern, in ever fewer of the rows and columns."""
    return _positions(
        [
            row * columns + column
            for row in range(rows)
            for column in range(columns)
            if (1 + row % 7) * (1 + column // step % 5) * ((row * 7919 + column * 104729) % 1009) < most
        ]
    )


def _written(why: str, shape: str, positions: str) -> Fields:
    return {"why": why, **_MATRIX, "shape": shape, "positions": positions}


def _read(why: str, shape: str, positions: str, payload: str) -> Fields:
    """An encoder may choose other classes than ours."""
    return {"why": why, **_MATRIX, "written": "no", "shape": shape, "positions": positions, "payload": payload}


def _model(positions: list[int], columns: int, scale: int, rows: list[int] | None, wide: list[int] | None) -> str:
    """The payload of a model that was chosen for what it shows; classes are of single rows and columns."""
    coder = matrix_code.RangeWriter()
    matrix_code.put_classes(coder, rows or [], context=False)
    matrix_code.put_classes(coder, wide or [], context=False)
    groups = (rows, int(rows is not None), wide, int(wide is not None))
    matrix.encode_positions(coder, matrix.field_of(scale, *groups, columns), positions)
    code = coder.to_bytes()
    return (b"\x01" + scale.to_bytes(2, "little") + bytes(groups[1::2]) + varint(len(code)) + code).hex()


_HALF_OCTAVE = 19 * 2048
_STEPS = [3, 4, 29, 30, 59]

MATRIX_ACCEPTS: dict[str, Fields] = {
    "index_matrix_plain": _written("The example of plain in FORMAT.md, 4.10.", "1000", "3 4 260"),
    "index_matrix_example": _read("The example of a model in FORMAT.md, 4.10.", "2x4", "4 6", "01009801000192"),
    "index_matrix_rows_and_columns": _written(
        "Classes of rows and of columns, both with contexts.", "60x70", _crowded(60, 70, 900, 1)
    ),
    "index_matrix_groups": _written("Columns go nine by nine.", "56x72", _crowded(56, 72, 900, 9)),
    "index_matrix_alike": _written(
        "No classes pay: the geometric law alone.",
        "3000",
        _positions([p for p in range(3000) if (p * 2654435761 >> 9) % 100 < 10]),
    ),
    "index_matrix_steps": _read(
        "Gaps beyond reach, in a row and over the ends of rows: one to seven steps.",
        "6x10",
        _positions(_STEPS),
        _model(_STEPS, 10, _HALF_OCTAVE, None, None),
    ),
    "index_matrix_even": _read("The example of even in FORMAT.md, 4.10.", "4", "0 1 3", "050140"),
    "index_matrix_even_half": _written(
        "Half of all.", "20x30", _positions([p for p in range(600) if p * 7919 % 1009 < 500])
    ),
    "index_matrix_even_most": _written(
        "All but a few.", "700", _positions([p for p in range(700) if p * 7919 % 1009 > 20])
    ),
    "index_matrix_steepest": _read(
        "Hazards of 6 octaves, the most there may be, and none beside them.",
        "3x3",
        "3 5",
        _model([3, 5], 3, 22 * 2048 + 1024, [0, 1, 0], [1, 0, 1]),
    ),
}


def _refused(why: str, shape: str, kept: int, payload: str, message: str, truncated: bool = False) -> Fields:
    return {
        "why": why,
        **_MATRIX,
        "shape": shape,
        "kept": str(kept),
        "payload": payload,
        "error": "TruncatedPayloadError" if truncated else "CorruptPayloadError",
        "message": message,
    }


MATRIX_REJECTS: dict[str, Fields] = {
    "index_matrix_empty": _refused("Not even a form.", "2x4", 2, "", "form", truncated=True),
    "index_matrix_form": _refused("Form 6.", "2x4", 2, "06009801000192", "form 6"),
    "index_matrix_even_sparse": _refused("1 of 9 elements as even.", "9", 1, "050100", "1 of 9"),
    "index_matrix_even_short": _refused("The example of even less a byte.", "4", 3, "0501", "0 bytes", truncated=True),
    "index_matrix_even_long": _refused("The example of even and a byte.", "4", 3, "05014000", "left over"),
    "index_matrix_even_code_left": _refused("The same with two zeros in the code.", "4", 3, "0503400000", "do not end"),
    "index_matrix_even_no_symbol": _refused("An even code of 2**32.", "4", 3, "0508" + "ff" * 8, "do not end"),
    "index_matrix_short_head": _refused("The head ends early.", "2x4", 2, "01009801", "4 bytes", truncated=True),
    "index_matrix_no_length": _refused("The head alone.", "2x4", 2, "0100980100", "length", truncated=True),
    "index_matrix_long_varint": _refused("Length 1 in two bytes.", "2x4", 2, "0100980100810092", "shortest"),
    "index_matrix_short": _refused("The example less a byte.", "2x4", 2, "010098010001", "0 bytes", truncated=True),
    "index_matrix_long": _refused("The example and a byte.", "2x4", 2, "0100980100019200", "left over"),
    "index_matrix_plain_long": _refused("A plain payload and a byte.", "1000", 3, "003000e20300", "left over"),
    "index_matrix_row_group": _refused("Groups of 2 rows of 2.", "2x4", 2, "01009802000192", "groups of 2"),
    "index_matrix_column_group": _refused("Groups of 4 columns of 4.", "2x4", 2, "01009800040192", "4 columns"),
    "index_matrix_too_many_rows": _refused(
        "65665 rows where 2 are kept.", "65665x1", 2, "01009800000192", "65665 rows"
    ),
    "index_matrix_too_many_columns": _refused(
        "65665 columns with classes where 2 are kept.", "1x65665", 2, "01009800010192", "65665 columns"
    ),
    "index_matrix_too_many_kept": _refused(
        "A code of one byte holds 3168 positions at most.", "1x4000", 3169, "01009800000192", "3169", truncated=True
    ),
    "index_matrix_too_steep": _refused(
        "A hazard just above 6 octaves.", "2x4", 2, "0101b400000192", "scale 412451078144"
    ),
    "index_matrix_no_class": _refused("Both rows are of class 0.", "2x4", 2, "010098010001f0", "classes 0"),
    "index_matrix_outside": _refused("The example, and a third position.", "2x4", 3, "01009801000192", "position 2"),
    "index_matrix_code_left": _refused(
        "The example with two zeros that go without saying.", "2x4", 2, "010098010003920000", "do not end"
    ),
    "index_matrix_no_symbol": _refused(
        "The value is 2**32: the code lies in what the division leaves.",
        "2x4",
        2,
        "010098000008" + "ff" * 8,
        "position 0",
    ),
}
