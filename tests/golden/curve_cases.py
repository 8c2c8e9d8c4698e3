"""Cases of the value codecs of FORMAT.md, 5.11 to 5.13: what must be written and read, and what must be refused."""

from golden.value_accept_cases import floats, gradient
from golden.value_reject_cases import rejected
from golden.vectors import Fields

_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"
_POLY, _DEXP = "fit_poly(degree=2)", "fit_dexp"
# The examples of the page, without the order.
_POLY_CURVES = "0003000080400000803f01025555153f0000c0be0000003e0000004000000040"
_DEXP_CURVES = "0004000000410000803f014bc07d3f000000c0"
_SKETCH_HEAD = "02555515400000803f000080c0"


def _accepted(settings: str, why: str, values: str, dtype: str = "float32") -> Fields:
    return {"why": why, "kind": "value", "settings": settings, "dtype": dtype, "input": values}


CURVE_ACCEPTS: dict[str, Fields] = {
    "value_fit_poly_example": _accepted(_POLY, "The example of FORMAT.md, 5.11.", floats(1, -2, 4, 2)),
    "value_fit_poly_pieces": _accepted(
        "fit_poly(degree=1, segments=6)", "Six pieces of each sign, and values that are there twice.", gradient(120)
    ),
    "value_fit_poly_own_pieces": _accepted(
        "fit_poly(degree=1)", "As many pieces as bits allow.", floats(*(1 / (1 + i) for i in range(200)))
    ),
    "value_fit_poly_float64": _accepted(
        "fit_poly(degree=3, segments=2)",
        "Magnitudes far beyond what a coefficient holds: heights are at most 1.",
        floats(1e300, -2e300, 1.25e300, 5e299, -1e200, 3e299, 2e299, dtype="<f8"),
        "float64",
    ),
    "value_fit_poly_one_value": _accepted("fit_poly", "No curve, and places of no bits.", floats(-3)),
    "value_fit_poly_zeros": _accepted("fit_poly", "Zeros of both signs are positive.", floats(0, -0.0, 0)),
    "value_fit_poly_not_finite": _accepted("fit_poly", "One infinity, and all decode to NaN.", "0000803f 0000807f"),
    "value_fit_poly_subnormal": _accepted(
        "fit_poly", "Heights of the smallest numbers.", "01000000 01000080 03000000 00000000"
    ),
    "value_fit_dexp_example": _accepted(_DEXP, "The example of FORMAT.md, 5.12.", floats(8, 4, 2, 1)),
    "value_fit_dexp_line": _accepted(_DEXP, "A straight line takes no parameters.", floats(1, 2, 3, 4, -7, -6)),
    "value_fit_dexp_two_terms": _accepted(
        _DEXP, "Steep at first, flat later: two terms of each sign.", floats(*((-1) ** i / (1 + i) for i in range(40)))
    ),
    "value_fit_dexp_float64": _accepted(
        _DEXP,
        "Two terms through numbers that binary32 does not have.",
        floats(*(1e-300 * (3.0**-i + 0.5) for i in range(12)), dtype="<f8"),
        "float64",
    ),
    "value_fit_dexp_not_finite": _accepted(_DEXP, "One NaN, and all decode to NaN.", "0000803f 0000c07f 000080bf"),
    "value_sketch_example": _accepted(
        "sketch(quantiles=3, of='values')", "The example of FORMAT.md, 5.13.", floats(1, 2, 3, -4, 2)
    ),
    "value_sketch_signs": _accepted(
        "sketch(quantiles=8)", "Eight buckets, some for either sign, none for both.", gradient(60)
    ),
    "value_sketch_squares": _accepted(
        "sketch(quantiles=16)",
        "The largest values have buckets of their own, the many small ones short words.",
        floats(*((-1) ** (i // 3) * 0.9**i for i in range(60))),
    ),
    "value_sketch_few_distinct": _accepted(
        "sketch(quantiles=256)", "Three distinct values: buckets of unlike sizes.", floats(1, 1, 1, -1, 1, 0, 1, -1, 1)
    ),
    "value_sketch_all_equal": _accepted("sketch", "One bucket, and no stream.", floats(2.5, 2.5, 2.5)),
    "value_sketch_not_finite": _accepted("sketch", "One NaN, and all decode to NaN.", "0000803f 0000c07f 000080bf"),
    "frame_raw_fit_poly": {
        "why": "Positions in the order of values, and curves without one: ids 2 and 14.",
        "kind": "frame",
        "settings": "topk(density=0.5)+raw+fit_poly(degree=2, segments=1)+none",
        "shape": "4x5",
        "input": gradient(20),
    },
    "frame_raw_fit_dexp": {
        "why": "The same with ids 2 and 15.",
        "kind": "frame",
        "settings": "topk(density=0.5)+raw+fit_dexp+none",
        "shape": "4x5",
        "input": gradient(20),
    },
    "value_sketch_float64": _accepted(
        "sketch(quantiles=2)",
        "Means of numbers whose sum overflows.",
        floats(1.5e308, 1.7e308, -1.5e308, -1.25e308, dtype="<f8"),
        "float64",
    ),
}

CURVE_REJECTS: dict[str, Fields] = {
    "value_fit_poly_nothing": rejected(_POLY, "No bytes.", 4, "", _TRUNCATED, "0 bytes"),
    "value_fit_poly_form": rejected(_POLY, "Form 2.", 4, "02", _CORRUPT, "form 2"),
    "value_fit_poly_not_finite_and_more": rejected(_POLY, "A byte after NaN.", 4, "0100", _CORRUPT, "1 are left over"),
    "value_fit_poly_too_many_positive": rejected(
        _POLY, "Five positive values of four.", 4, "0005" + _POLY_CURVES[4:] + "4e", _CORRUPT, "5 of 4"
    ),
    "value_fit_poly_highest_negative": rejected(
        _POLY, "A negative magnitude.", 1, "0001000080c0000080c0", _CORRUPT, "magnitudes"
    ),
    "value_fit_poly_highest_infinite": rejected(
        _POLY, "An infinite magnitude.", 1, "00010000807f0000807f", _CORRUPT, "magnitudes"
    ),
    "value_fit_poly_lowest_above_highest": rejected(
        _POLY, "From 1 down to 4.", 3, "00030000803f00008040", _CORRUPT, "magnitudes"
    ),
    "value_fit_poly_two_magnitudes_of_one": rejected(
        _POLY, "One value that is both 4 and 1.", 1, "0001000080400000803f", _CORRUPT, "magnitudes of 1"
    ),
    "value_fit_poly_no_pieces": rejected(_POLY, "No pieces.", 3, "0003000080400000803f00", _CORRUPT, "0 pieces"),
    "value_fit_poly_too_many_pieces": rejected(
        _POLY, "Four pieces of three values.", 3, "0003000080400000803f04", _CORRUPT, "4 pieces"
    ),
    "value_fit_poly_a_value_too_many": rejected(
        _POLY, "A piece of four of three values.", 3, "0003000080400000803f0103", _CORRUPT, "a piece of 4"
    ),
    "value_fit_poly_a_value_too_few": rejected(
        _POLY, "A piece of two of three values.", 3, "0003000080400000803f0101", _CORRUPT, "a piece of 2"
    ),
    "value_fit_poly_coefficient": rejected(
        _POLY, "An infinite coefficient.", 3, "0003000080400000803f01020000807f", _CORRUPT, "coefficient"
    ),
    "value_fit_poly_ends_in_a_curve": rejected(
        _POLY, "Half a coefficient.", 3, "0003000080400000803f01025555", _TRUNCATED, "14 bytes"
    ),
    "value_fit_poly_without_order": rejected(_POLY, "No order.", 4, _POLY_CURVES, _TRUNCATED, "33 are needed"),
    "value_fit_poly_long": rejected(_POLY, "A byte too many.", 4, _POLY_CURVES + "4e00", _CORRUPT, "1 are left over"),
    "value_fit_poly_place_twice": rejected(_POLY, "Places 2, 3, 0, 0.", 4, _POLY_CURVES + "0e", _CORRUPT, "another"),
    "value_fit_poly_place_outside": rejected(
        "fit_poly", "Places 1, 2, 3 of three.", 3, "00030000803f0000803f39", _CORRUPT, "place 3"
    ),
    "value_fit_poly_padding": rejected(
        "fit_poly", "Places 0, 1, 2, and a bit more.", 3, "00030000803f0000803f64", _CORRUPT, "padding"
    ),
    "value_fit_poly_more_than_bits": rejected(
        "fit_poly", "Equal values, many more than places.", 2**20, "00808040" + "0000803f" * 2 + "00", _TRUNCATED, "13"
    ),
    "value_fit_dexp_terms": rejected(
        _DEXP, "Three terms.", 4, "0004000000410000803f03" + "0000803f" * 6 + "e4", _CORRUPT, "3 exponentials"
    ),
    "value_fit_dexp_rate": rejected(
        _DEXP, "A rate of -601.", 4, _DEXP_CURVES[:-8] + "004016c4" + "e4", _CORRUPT, "rate"
    ),
    "value_fit_dexp_factor": rejected(
        _DEXP, "A factor that is NaN.", 4, _DEXP_CURVES[:-16] + "0000c07f" + "000000c0e4", _CORRUPT, "coefficient"
    ),
    "value_fit_dexp_ends_in_a_curve": rejected(_DEXP, "Half a rate.", 4, _DEXP_CURVES[:-4], _TRUNCATED, "17 bytes"),
    "value_fit_dexp_without_order": rejected(_DEXP, "No order.", 4, _DEXP_CURVES, _TRUNCATED, "20 are needed"),
    "value_fit_dexp_long": rejected(_DEXP, "A byte too many.", 4, _DEXP_CURVES + "e400", _CORRUPT, "1 are left over"),
    "value_sketch_nothing": rejected("sketch", "No bytes.", 5, "", _TRUNCATED, "0 bytes"),
    "value_sketch_one_bucket_short": rejected("sketch", "Half a mean.", 5, "000000", _TRUNCATED, "5 are needed"),
    "value_sketch_one_bucket_long": rejected(
        "sketch", "A stream where there is one bucket.", 5, "000000803f00", _CORRUPT, "1 are left over"
    ),
    "value_sketch_too_many_buckets": rejected(
        "sketch", "Three buckets of two values.", 2, _SKETCH_HEAD + "211203", _CORRUPT, "3 buckets"
    ),
    "value_sketch_short": rejected("sketch", "A byte is missing.", 5, _SKETCH_HEAD + "2112", _TRUNCATED, "15 bytes"),
    "value_sketch_ends_in_a_value": rejected(
        "sketch", "A longer word where the stream ends.", 12, _SKETCH_HEAD + "2112ff", _TRUNCATED, "within value"
    ),
    "value_sketch_long": rejected(
        "sketch", "A byte too many.", 5, _SKETCH_HEAD + "21120300", _CORRUPT, "1 are left over"
    ),
    "value_sketch_padding": rejected("sketch", "A bit more.", 5, _SKETCH_HEAD + "211283", _CORRUPT, "padding"),
    "value_sketch_no_code": rejected("sketch", "Lengths 2, 2, 2.", 5, _SKETCH_HEAD + "221203", _CORRUPT, "no code"),
    "value_sketch_word_of_none": rejected(
        "sketch", "One bucket with a word, `0`, and a `1`.", 5, _SKETCH_HEAD + "011000", _CORRUPT, "word that is none"
    ),
}
