"""Frames of rows that must be written and read as they stand, and some that must be refused; FORMAT.md, 3.1."""

from golden.value_accept_cases import floats as _floats
from golden.value_accept_cases import gradient as _gradient
from golden.vectors import Fields

_PLACE = {"seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}
_CORRUPT, _TRUNCATED, _UNKNOWN = "CorruptPayloadError", "TruncatedPayloadError", "UnknownCodecError"
_VALUES = "0000803f00000040000000c000000000"

ROW_ACCEPTS: dict[str, Fields] = {
    "rows_example": {
        "why": "The example of FORMAT.md, 3.1; a value of zero is sent, since its row is.",
        "kind": "rows",
        "settings": "bitmap+raw+none",
        "shape": "6x2",
        "rows": "0 3",
        "input": _floats(1, 2, -2, 0),
    },
    "rows_merged": {
        "why": "Rows in any order, one of them three times and one that sums to zero.",
        "kind": "rows",
        "settings": "raw+raw+none",
        "shape": "5x2",
        "rows": "4 1 4 0 4 0",
        "input": _floats(1, 2, -3, 4, 0.5, 0.25, 7, -7, 8, 16, -7, 7),
    },
    "rows_without_any": {
        "why": "No rows are a special frame.",
        "kind": "rows",
        "settings": "rice+qsgd+residual",
        "shape": "6x2",
        "rows": "",
        "input": "",
    },
    "rows_rice_qsgd": {
        "why": "A norm for each row; draws are counted over the values of all rows.",
        "kind": "rows",
        "settings": "rice+qsgd(bits=7, bucket=4)+residual",
        **_PLACE,
        "shape": "9x2x2",
        "rows": "8 0 2 3 2",
        "input": _gradient(20),
    },
    "rows_onebit_by_column": {
        "why": "The columns of a value codec are those of the table.",
        "kind": "rows",
        "settings": "bitmap+onebit(centroid='column')+none",
        "shape": "4x3",
        "rows": "1 2",
        "input": _floats(1, -2, 3, -2, 4, 5),
    },
    "rows_of_one_dimension": {
        "why": "A shape of one dimension is a table of one column.",
        "kind": "rows",
        "settings": "delta+fp16+none",
        "dtype": "float64",
        "shape": "300",
        "rows": "299 7",
        "input": _gradient(2, "<f8"),
    },
    "rows_not_finite": {
        "why": "An infinity makes every value of the gradient NaN, and its rows are told all the same.",
        "kind": "rows",
        "settings": "bitmap+raw+none",
        "shape": "6x2",
        "rows": "0 3",
        "input": "0000803f 0000807f 000000c0 00000000",
        "frame": "0301020110090000c07f0000c07f0000c07f0000c07f",
        "decoded": "0000c07f 0000c07f 0000c07f 0000c07f",
    },
}


def _rejected(why: str, frame: str, error: str, message: str) -> Fields:
    return {
        "why": why,
        "kind": "rows",
        "settings": "bitmap+raw+none",
        "tensor": "table.weight",
        "rank": "1",
        "shape": "6x2",
        "frame": frame,
        "error": error,
        "message": message,
    }


ROW_REJECTS: dict[str, Fields] = {
    "rows_special_not_finite": _rejected("NaN goes by its rows, never alone.", "0001", _CORRUPT, "rows don't have"),
    "rows_kept_beyond_the_table": _rejected(
        "Kept is counted in rows: 7 of 6.", "030107011c7f" + "00" * 28, _CORRUPT, "kept is 7"
    ),
    "rows_outside_the_table": _rejected(
        "Row 6 of 6.", "0301020110" + "48" + _VALUES, _CORRUPT, "tensor 'table.weight', rank 1: bitmap"
    ),
    "rows_of_another_index_codec": _rejected(
        "`raw` under settings with `bitmap`.", "01010204100000000003000000" + _VALUES, _UNKNOWN, "index codec 1"
    ),
    "rows_in_value_order": _rejected(
        "Id 2, which no settings of rows have.", "02010208100000000003000000" + _VALUES, _UNKNOWN, "index codec 2"
    ),
    "rows_of_another_value_codec": _rejected(
        "`fp16` under settings with `raw`.", "030202010809003c0040003c0040", _UNKNOWN, "value codec 2"
    ),
    "rows_with_a_value_a_row": _rejected(
        "Two rows, and values for one.", "030102010809" + _VALUES[:16], _TRUNCATED, "8 bytes; 16 are needed"
    ),
    "rows_value_left_over": _rejected(
        "A value more than the rows have.", "030102011409" + _VALUES + "0000803f", _CORRUPT, "4 are left over"
    ),
    "rows_bytes_left_over": _rejected(
        "A byte that is not zero after the frame.", "030102011009" + _VALUES + "01", _CORRUPT, "padding"
    ),
}
