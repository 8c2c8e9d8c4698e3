"""Cases that must be written and read as they stand; `make_golden.py` adds the bytes."""

from reference import rice
from reference.bundle import ERROR, FRAMES, Expected, encode, encode_error
from reference.fingerprint import fingerprint

from golden.auto_cases import AUTO_ACCEPTS
from golden.bloom_cases import BLOOM_ACCEPTS
from golden.curve_cases import CURVE_ACCEPTS
from golden.frame_cases import FRAME_ACCEPTS
from golden.matrix_cases import MATRIX_ACCEPTS
from golden.more_index_accepts import MORE_INDEX_ACCEPTS, positions_text
from golden.pco_cases import PCO_ACCEPTS
from golden.quant_cases import QUANT_ACCEPTS
from golden.row_cases import ROW_ACCEPTS
from golden.value_accept_cases import VALUE_ACCEPTS
from golden.value_accept_cases import floats as _floats
from golden.vectors import Fields

_RAW_DEFAULTS = {"kind": "index", "settings": "raw"}
_BITMAP = {"kind": "index", "settings": "bitmap"}
_RICE = {"kind": "index", "settings": "rice"}
_QSGD = {"kind": "value", "seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}
_PLACE = {"seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}
# How much a bundle is padded is the sender's affair, so what is pinned was made by the reference, without any.
_BUNDLE = {
    "kind": "bundle",
    "written": "no",
    "settings": "topk",
    "seed": "7",
    "rank": "0",
    "bucket": "5",
    "step": "300",
}
_EXAMPLE_BODY = "0301020108090000803f000000c0"
_SPELLED_OUT = "topk(density=0.01)+rice+qsgd(bits=7, bucket=512)+residual"
_SENDER = Expected(fingerprint(_SPELLED_OUT, 7), 0, 5, 300)

ACCEPTS: dict[str, Fields] = {
    # --- 4.1 and 4.2 ---
    "index_raw_example": {
        "why": "The example of FORMAT.md, 4.1.",
        **_RAW_DEFAULTS,
        "shape": "1000",
        "positions": "3 260",
    },
    "index_raw_last_of_32_bits": {
        "why": "2**32 elements are the most that 32 bits are enough for.",
        **_RAW_DEFAULTS,
        "shape": "4294967296",
        "positions": "0 4294967295",
    },
    "index_raw_first_of_64_bits": {
        "why": "One element more than 2**32, and every position takes 64 bits.",
        **_RAW_DEFAULTS,
        "shape": "4294967297",
        "positions": "0 3 4294967296",
    },
    "index_raw_in_value_order": {
        "why": "Positions in the order of values, FORMAT.md, 4.2.",
        "kind": "ordered",
        "settings": "raw",
        "shape": "1000",
        "positions": "260 3 999 0",
    },
    # --- 4.3 ---
    "index_bitmap_example": {"why": "The example of FORMAT.md, 4.3.", **_BITMAP, "shape": "6", "positions": "0 3"},
    "index_bitmap_bit_order": {
        "why": "Position 8 is the lowest bit of the second byte, position 15 its highest.",
        **_BITMAP,
        "shape": "3x6",
        "positions": "0 7 8 15 17",
    },
    "index_bitmap_all_kept": {
        "why": "All of 13: the three bits beyond numel are zero.",
        **_BITMAP,
        "shape": "13",
        "positions": positions_text(range(13)),
    },
    # --- 4.4 ---
    "index_rice_example": {
        "why": "The example of FORMAT.md, 4.4: t = 228, so the block's divisor is entry 26, 7 x 2**5 = 224.",
        **_RICE,
        "shape": "1000",
        "positions": "3 4 260",
        "bits": "0 no change | gap 3: 0 (q = 0), 00 (r = 0, short), 11000 (3) | gap 0: 0, 00, 00000 | "
        "gap 255: 10 (q = 1), 00 (r = 7 mod 7), 11111 (31) | 000000 padding",
    },
    "index_rice_one_element": {
        "why": "The smallest support: entry 0, divisor 1; the gap 0 is one zero bit.",
        **_RICE,
        "shape": "1",
        "positions": "0",
        "bits": "0 no change | gap 0: 0 | 000000 padding",
    },
    "index_rice_all_kept": {
        "why": "All gaps are 0: a bit each, and one for the block.",
        **_RICE,
        "shape": "7x3",
        "positions": positions_text(range(21)),
    },
    "index_rice_quotient_23": {
        "why": "The last quotient in unary: t = 4 for 24 of 160, entry 3, divisor 4, and the gap 95 is 23 x 4 + 3. "
        "A decoder follows any divisors; our encoder would change to divisor 1 here.",
        **_RICE,
        "shape": "160",
        "positions": positions_text(range(23), 118),
        "written": "no",
        "payload": rice.stream([*range(23), 118], 160, [3]).to_bytes().hex(),
    },
    "index_rice_quotient_24": {
        "why": "As before, and the gap 96 is the first to escape: 24 one bits, then 96 in 8 bits (numel-1 = 159).",
        **_RICE,
        "shape": "160",
        "positions": positions_text(range(23), 119),
        "written": "no",
        "payload": rice.stream([*range(23), 119], 160, [3]).to_bytes().hex(),
    },
    "index_rice_escape": {
        "why": "What our encoder makes of it: one block of divisor 1, an escape for the single wide gap.",
        **_RICE,
        "shape": "160",
        "positions": positions_text(range(23), 119),
    },
    "index_rice_escape_of_33_bits": {
        "why": "The widest escape: 64 neighbours and the last of 2**33 elements.",
        **_RICE,
        "shape": "8589934592",
        "positions": positions_text(range(64), 8589934591),
    },
    "index_rice_change_down_and_up": {
        "why": "Three blocks of 128 gaps, close, far and close together: each begins with a change of divisor.",
        **_RICE,
        "shape": "200000",
        "positions": positions_text(range(1, 257, 2), range(1000, 129000, 1000), range(129000, 129300, 3)),
    },
    **{
        f"index_rice_divisor_{divisor}": {
            "why": f"Gaps 0 ... {2 * divisor} where the divisor is near {divisor}: remainders in truncated binary.",
            **_RICE,
            "shape": str(numel),
            "positions": positions_text(*(gap * (gap + 1) // 2 + gap for gap in range(2 * divisor + 1))),
        }
        for divisor, numel in ((2, 15), (3, 35), (5, 100), (7, 180), (12, 430))
    },
    **MORE_INDEX_ACCEPTS,
    # --- 4.10 ---
    **MATRIX_ACCEPTS,
    # --- 4.9, 4.12 ---
    **BLOOM_ACCEPTS,
    # --- 5.1 ---
    "value_raw_example": {
        "why": "The example of FORMAT.md, 5.1.",
        "kind": "value",
        "settings": "raw",
        "input": _floats(1, -2),
    },
    "value_raw_any_bits": {
        "why": "Every bit pattern survives: signalling and negative NaN, infinities, -0.0, subnormals.",
        "kind": "value",
        "settings": "raw",
        "input": "0100807f 010080ff ffffffff 0000807f 000080ff 00000080 01000000 ffff7f80",
    },
    "value_raw_float64": {
        "why": "float64 gradients travel as binary64.",
        "kind": "value",
        "settings": "raw",
        "dtype": "float64",
        "input": _floats(1, -2, 1e300, dtype="<f8"),
    },
    # --- 5.2 ---
    "value_fp16_example": {
        "why": "The example of FORMAT.md, 5.2: the third one saturates.",
        "kind": "value",
        "settings": "fp16",
        "input": _floats(1, -2, 100000),
    },
    "value_fp16_rounding": {
        "why": "Ties to even at 1 + 2**-11 and 1 + 3 x 2**-11; just above a tie; 65519 and 65520 stay finite.",
        "kind": "value",
        "settings": "fp16",
        "input": _floats(1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20, 65519, 65520, -65536),
    },
    "value_fp16_subnormal": {
        "why": "Subnormal halves: the smallest, its half (a tie, to zero), a little more, three halves of it; -0.0.",
        "kind": "value",
        "settings": "fp16",
        "input": _floats(2**-24, 2**-25, 2**-25 * 1.0001, 3 * 2**-25, -(2**-26), -0.0),
    },
    "value_fp16_not_finite": {
        "why": "Infinities stay, every NaN becomes the quiet one with its sign.",
        "kind": "value",
        "settings": "fp16",
        "input": "0000807f 000080ff 0100807f 0100c0ff",
    },
    "value_fp16_float64": {
        "why": "By way of binary32: 1 + 2**-11 + 2**-40 first becomes a tie, then even. 1e300 is finite and stays so.",
        "kind": "value",
        "settings": "fp16",
        "dtype": "float64",
        "input": _floats(1 + 2**-11 + 2**-40, 1e300, -1e300, 1e-300, dtype="<f8"),
    },
    # --- 5.3 ---
    "value_bf16_example": {
        "why": "The example of FORMAT.md, 5.3.",
        "kind": "value",
        "settings": "bf16",
        "input": _floats(1, -2),
    },
    "value_bf16_rounding": {
        "why": "Ties to even at 1 + 2**-8 and 1 + 3 x 2**-8, above a tie; the largest binary32 saturates; subnormal.",
        "kind": "value",
        "settings": "bf16",
        "input": _floats(1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4028234e38, -3.4028234e38, 1e-40, -0.0),
    },
    "value_bf16_not_finite": {
        "why": "Infinities stay; a NaN whose upper half is that of an infinity becomes the quiet one of its sign.",
        "kind": "value",
        "settings": "bf16",
        "input": "0000807f 000080ff 0100807f 010080ff ffffff7f",
    },
    # --- 5.4 ---
    "value_qsgd_example": {
        "why": "The example of FORMAT.md, 5.4.",
        "kind": "value",
        "settings": "qsgd(bits=2, bucket=4)",
        "input": _floats(0, 3, 0, 0),
    },
    "value_qsgd_two_buckets": {
        "why": "Two buckets, the second shorter, fields of 7 bits across bytes; rounded by the draws of this place.",
        **_QSGD,
        "settings": "qsgd(bits=7, bucket=4)",
        "input": _floats(1, -2, 0.25, -0.125, 100, -50),
    },
    "value_qsgd_zero_and_nan": {
        "why": "A bucket of zeros, one with a NaN (it decodes to NaN whole) and one with an infinity.",
        **_QSGD,
        "settings": "qsgd(bits=4, bucket=2)",
        "input": "00000000 00000080 0000803f 0000c07f 0000807f 000080bf",
    },
    "value_qsgd_sixteen_bits": {
        "why": "The widest fields; the sign of a value that rounds to level 0 is kept.",
        **_QSGD,
        "settings": "qsgd(bits=16, bucket=512)",
        "input": _floats(1, -1e-9, 0.5, -0.75, 1e-3),
    },
    "value_qsgd_float64": {
        "why": "Norms are binary32 for float64 too; one that does not fit is the largest, and its values saturate.",
        **_QSGD,
        "settings": "qsgd(bits=7, bucket=2)",
        "dtype": "float64",
        "input": _floats(1, -2 / 3, 1e300, -1e200, 1e-300, 1e-300, dtype="<f8"),
    },
    **VALUE_ACCEPTS,
    # --- 5.10 ---
    **QUANT_ACCEPTS,
    **CURVE_ACCEPTS,
    **PCO_ACCEPTS,
    **AUTO_ACCEPTS,
    # --- 3 ---
    **FRAME_ACCEPTS,
    # --- 3.1 ---
    **ROW_ACCEPTS,
    # --- 2 ---
    "bundle_frames": {
        "why": "One frame, the example of FORMAT.md, 3; a step of two varint bytes.",
        **_BUNDLE,
        "body": _EXAMPLE_BODY,
        "bundle": encode(FRAMES, bytes.fromhex(_EXAMPLE_BODY), _SENDER).hex(),
    },
    "bundle_without_frames": {
        "why": "The shortest bundle there is.",
        **_BUNDLE,
        "step": "0",
        "body": "",
        "bundle": encode(FRAMES, b"", Expected(fingerprint(_SPELLED_OUT, 7), 0, 5, 0)).hex(),
    },
    "bundle_error": {
        "why": "A rank says why it can't go on.",
        **_BUNDLE,
        "message": "tensor 'fc.weight': 80 \u2260 81",
        "bundle": encode_error("tensor 'fc.weight': 80 \u2260 81", _SENDER).hex(),
    },
    "bundle_error_of_another_step": {
        "why": "A rank that failed early may not have opened the bucket for this step: its error counts all the same.",
        **_BUNDLE,
        "message": "no",
        "bundle": encode(ERROR, b"\x02no", Expected(fingerprint(_SPELLED_OUT, 7), 0, 5, 299)).hex(),
    },
    "bundle_error_of_other_settings": {
        "why": "An error counts whatever the fingerprint: different settings may be what it is about.",
        **_BUNDLE,
        "message": "no",
        "bundle": encode(ERROR, b"\x02no", Expected(1, 0, 5, 300)).hex(),
    },
    "bundle_padded": {
        "why": "Zero bytes up to the length, so that Horovod need not negotiate a new size for every step.",
        **_BUNDLE,
        "body": _EXAMPLE_BODY,
        "bundle": encode(FRAMES, bytes.fromhex(_EXAMPLE_BODY), _SENDER, padding=6).hex(),
    },
    # --- 6 and 7 ---
    "fingerprint_defaults": {
        "why": "Every setting spelled out, a newline, the seed.",
        "kind": "fingerprint",
        "settings": "topk",
        "seed": "0",
    },
    "fingerprint_largest_seed": {
        "why": "Seeds have up to 20 digits; settings without parentheses stay without.",
        "kind": "fingerprint",
        "settings": "none+bitmap+raw+none",
        "seed": "18446744073709551615",
    },
    "random_of_a_rank": {"why": "The key of one rank's own draws.", "kind": "random", **_PLACE, "shared": "no"},
    "random_shared": {"why": "The key that all ranks share.", "kind": "random", **_PLACE, "shared": "yes"},
    "random_of_a_name": {
        "why": "Names are hashed as UTF-8.",
        "kind": "random",
        "tensor": "\u03b2.weight",
        "seed": "0",
        "step": "0",
        "rank": "0",
        "shared": "no",
    },
}
