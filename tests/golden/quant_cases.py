"""Cases of the value codec of FORMAT.md, 5.10: what must be written and read, and what must be refused."""

from golden.value_accept_cases import floats, gradient
from golden.value_reject_cases import rejected
from golden.vectors import Fields

_PLACE = {"kind": "value", "seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}
_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"

QUANT_ACCEPTS: dict[str, Fields] = {
    "value_quant_example": {
        "why": "The example of FORMAT.md, 5.10.",
        "kind": "value",
        "settings": "quant(error=0.2)",
        "input": floats(1, -1, 1.5, -3),
    },
    "value_quant_not_finite": {
        "why": "One NaN, and all decode to NaN.",
        "kind": "value",
        "settings": "quant",
        "input": "0000803f 0000c07f 000080bf",
    },
    "value_quant_zero": {
        "why": "Zeros of both signs are one byte.",
        "kind": "value",
        "settings": "quant",
        "input": floats(0, -0.0, 0),
    },
    "value_quant_all_equal": {
        "why": "One level, and a step of 0: signs alone in the stream.",
        "kind": "value",
        "settings": "quant",
        "input": floats(2.5, -2.5, -2.5, 2.5),
    },
    "value_quant_subnormal": {
        "why": "The step is the smallest subnormal, and nothing is lost.",
        "kind": "value",
        "settings": "quant",
        "input": "01000000 01000080 03000000 00000000",
    },
    "value_quant_largest": {
        "why": "What would decode to more than the largest float is the largest.",
        "kind": "value",
        "settings": "quant(error=0.3)",
        "input": "ffff7f7f ffff7fff ffff7f7f 0000807e 0000807e 0000407f",
    },
    "value_quant_escape": {
        "why": "Small values among which a few are huge: token 15, with up to 7 bits of how far it goes.",
        "kind": "value",
        "settings": "quant(error=0.01)",
        "input": floats(*(((29 * i) % 40 - 19.5) / 8 for i in range(40)), 300, -25, 36),
    },
    "value_quant_shift": {
        "why": "A mean level of over 8: a shift, and bits below the tokens.",
        "kind": "value",
        "settings": "quant(error=0.01)",
        "input": gradient(60),
    },
    "value_quant_float64": {
        "why": "Magnitudes far beyond what can be squared.",
        "kind": "value",
        "settings": "quant(error=0.1)",
        "dtype": "float64",
        "input": floats(1e300, -2e300, 1.25e300, 5e299, -1e200, dtype="<f8"),
    },
    "value_quant_unbiased": {
        "why": "A dither by the draws of this place; offset 128.",
        **_PLACE,
        "settings": "quant(error=0.1, unbiased=True)",
        "input": gradient(20),
    },
    "value_quant_eight_contexts": {
        "why": "2048 values: eight token models, a count that is halved, small values and large ones in turn.",
        "kind": "value",
        "settings": "quant(error=0.1)",
        "input": floats(*(((37 * i) % 101 - 50 + 0.5) / 64 * (1 + (i // 128) % 4) for i in range(2048))),
    },
}

QUANT_REJECTS: dict[str, Fields] = {
    "value_quant_nothing": rejected("quant", "No bytes.", 4, "", _TRUNCATED, "no bytes"),
    "value_quant_mode_0": rejected("quant", "Mode 0.", 4, "00", _CORRUPT, "mode 0"),
    "value_quant_mode_5": rejected(
        "quant", "The example, of mode 5.", 4, "05100000803f7ed9e63f1919998071", _CORRUPT, "mode 5"
    ),
    "value_quant_zero_and_more": rejected("quant", "A byte after zeros.", 4, "0200", _CORRUPT, "2 bytes"),
    "value_quant_not_finite_and_more": rejected("quant", "A byte after NaN.", 4, "0100", _CORRUPT, "2 bytes"),
    "value_quant_without_a_stream": rejected(
        "quant", "The head of the example, and 3 bytes.", 4, "03100000803f7ed9e63f19199980", _TRUNCATED, "14 bytes"
    ),
    "value_quant_short": rejected(
        "quant", "Ten values in the example's stream.", 10, "03100000803f7ed9e63f1919998071", _TRUNCATED, "15 bytes"
    ),
    "value_quant_more_than_bits": rejected(
        "quant", "33 signs in 32 bits.", 33, "03100000803f7ed9e63f1919998071", _TRUNCATED, "at most 32"
    ),
    "value_quant_long": rejected(
        "quant", "A byte too many.", 4, "03100000803f7ed9e63f191999807100", _CORRUPT, "1 are left over"
    ),
    "value_quant_end": rejected(
        "quant",
        "A stream that is not at the lower end of its range.",
        4,
        "03100000803f7ed9e63f1919998072",
        _CORRUPT,
        "end",
    ),
    "value_quant_beyond_the_range": rejected(
        "quant", "A code of 2**32 - 1.", 4, "03100000803f7ed9e63f19ffffffff", _CORRUPT, "range coder"
    ),
    "value_quant_lowest_negative": rejected(
        "quant", "A negative magnitude.", 4, "0310000080bf7ed9e63f1919998071", _CORRUPT, "lowest"
    ),
    "value_quant_step_infinite": rejected(
        "quant", "An infinite step.", 4, "03100000803f0000807f1919998071", _CORRUPT, "step"
    ),
    "value_quant_shift_of_one_token": rejected(
        "quant", "A shift of 1 where all levels are 0.", 4, "03010000803f7ed9e63f1919998071", _CORRUPT, "shift of 1"
    ),
    "value_quant_signs_by_place_in_a_row": rejected(
        "quant",
        "Signs by row and column in a matrix of one row.",
        4,
        "04100000803f7ed9e63f1919998071",
        _CORRUPT,
        "1 x 4",
    ),
    "value_quant_float32_for_float64": rejected(
        "quant",
        "The example where the gradient is float64.",
        4,
        "03100000803f7ed9e63f1919998071",
        _TRUNCATED,
        "23",
        "float64",
    ),
}
