"""Cases of `pco`, FORMAT.md, 4.13 and 5.16. What is written depends on the library, so it is read only."""

from golden.more_index_rejects import index_reject
from golden.value_accept_cases import floats
from golden.value_reject_cases import rejected
from golden.vectors import Fields

_SETTINGS = "pco(level=8)"
_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"
_INDEX = {"kind": "index", "settings": _SETTINGS, "written": "no"}
_VALUE = {"kind": "value", "settings": _SETTINGS, "written": "no"}
_GAPS = "0010000000000040000300ff"
_VALUES = "002100f0ffffff03000000fc05000100"

PCO_ACCEPTS: dict[str, Fields] = {
    "index_pco_example": {
        "why": "The example of FORMAT.md, 4.13.",
        **_INDEX,
        "shape": "1000",
        "positions": "3 4 260",
        "payload": _GAPS,
    },
    "index_pco_all_kept": {
        "why": "Nine bytes for any number of equal gaps, here 200 of 0.",
        **_INDEX,
        "shape": "200",
        "positions": " ".join(map(str, range(200))),
        "payload": "001000000000000000",
    },
    "index_pco_64_bits": {
        "why": "Gaps are numbers of 64 bits where numel is above 2**32.",
        **_INDEX,
        "shape": "8589934592",
        "positions": "8589934591",
        "payload": "001000f8ffffff0f0000000000",
    },
    "value_pco_example": {
        "why": "The example of FORMAT.md, 5.16.",
        **_VALUE,
        "input": floats(1, -2),
        "payload": _VALUES,
    },
    "value_pco_any_bits": {
        "why": "Infinities, a signalling NaN and -0.0 keep their bits.",
        **_VALUE,
        "input": "0000807f 0100807f 000080ff 00000080",
        "payload": "003200e0ffff0f00e0ffffff0f080000f03f00c580",
    },
    "value_pco_float64": {
        "why": "Values of 64 bits.",
        **_VALUE,
        "dtype": "float64",
        "input": floats(1, -2.5, dtype="<f8"),
        "payload": "002100f0ffffffffffbfff0300000000000000ff0b000100",
    },
}

PCO_REJECTS: dict[str, Fields] = {
    "index_pco_empty": index_reject(_SETTINGS, "No bytes for one kept.", 1000, 1, "", _TRUNCATED, "chunk 0 of 1"),
    "index_pco_short": index_reject(
        _SETTINGS, "The example without its last byte.", 1000, 3, _GAPS[:-2], _TRUNCATED, "chunk 0 of 1"
    ),
    "index_pco_long": index_reject(_SETTINGS, "The example and a byte.", 1000, 3, _GAPS + "00", _CORRUPT, "left over"),
    "index_pco_no_mode": index_reject(
        _SETTINGS, "A mode that pcodec does not know.", 1000, 3, "0f" + _GAPS[2:], _CORRUPT, "pcodec: "
    ),
    "index_pco_outside": index_reject(_SETTINGS, "The example in 260.", 260, 3, _GAPS, _CORRUPT, "position 260"),
    "index_pco_gap_outside": index_reject(_SETTINGS, "The example in 200.", 200, 3, _GAPS, _CORRUPT, "a gap of 255"),
    "index_pco_second_chunk_missing": index_reject(
        _SETTINGS,
        "2**20 kept are four chunks: refused when the first, of equal gaps, is read.",
        2**20,
        2**20,
        "001000000000000000",
        _TRUNCATED,
        "chunk 1 of 4",
    ),
    "value_pco_short": rejected(
        _SETTINGS, "The example without its last byte.", 2, _VALUES[:-2], _TRUNCATED, "chunk 0 of 1"
    ),
    "value_pco_long": rejected(_SETTINGS, "The example and a byte.", 2, _VALUES + "00", _CORRUPT, "left over"),
    "value_pco_of_other_width": rejected(
        _SETTINGS, "The example read as float64.", 2, _VALUES, _CORRUPT, "chunk 0 of 1", "float64"
    ),
}
