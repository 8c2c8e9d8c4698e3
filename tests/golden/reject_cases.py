"""Bytes that must be refused: with the class of the error and words of its message."""

import zlib

from reference import rice
from reference.bits import varint
from reference.bundle import ERROR, FRAMES, Expected, encode
from reference.fingerprint import fingerprint

from golden.auto_cases import AUTO_REJECTS
from golden.bloom_cases import BLOOM_REJECTS
from golden.curve_cases import CURVE_REJECTS
from golden.matrix_cases import MATRIX_REJECTS
from golden.more_index_rejects import MORE_INDEX_REJECTS, bits_text, index_reject
from golden.pco_cases import PCO_REJECTS
from golden.quant_cases import QUANT_REJECTS
from golden.row_cases import ROW_REJECTS
from golden.value_reject_cases import VALUE_REJECTS
from golden.value_reject_cases import rejected as _value
from golden.vectors import Fields

_CORRUPT, _TRUNCATED, _UNKNOWN = "CorruptPayloadError", "TruncatedPayloadError", "UnknownCodecError"


def _index(codec: str, why: str, shape: int, kept: int, payload: str, error: str, message: str) -> Fields:
    if codec == "ordered":
        return {**index_reject("raw", why, shape, kept, payload, error, message), "kind": "ordered"}
    return index_reject(codec, why, shape, kept, payload, error, message)


def _frame(why: str, frame: str, error: str, message: str, settings: str = "none+bitmap+raw+none") -> Fields:
    return {
        "why": why,
        "kind": "frame",
        "settings": settings,
        "tensor": "fc.weight",
        "rank": "1",
        "shape": "6",
        "frame": frame,
        "error": error,
        "message": message,
    }


_SPELLED_OUT = "topk(density=0.01)+rice+qsgd(bits=7, bucket=512)+residual"
_BODY = bytes.fromhex("0301020108090000803f000000c0")
_SENDER = Expected(fingerprint(_SPELLED_OUT, 7), 0, 5, 300)
_RIGHT = encode(FRAMES, _BODY, _SENDER)


def _bundle(why: str, bundle: bytes, error: str, message: str) -> Fields:
    """What the receiver expects is the bundle `accepts/bundle_frames.txt`."""
    return {
        "why": why,
        "kind": "bundle",
        "settings": "topk",
        "seed": "7",
        "rank": "0",
        "bucket": "5",
        "step": "300",
        "body": _BODY.hex(),
        "bundle": bundle.hex(),
        "error": error,
        "message": message,
    }


def _sealed(bundle: bytes) -> bytes:
    """With a checksum that is right, whatever else is not."""
    return bundle[:12] + zlib.crc32(bundle[:12] + bundle[16:]).to_bytes(4, "little") + bundle[16:]


def _other(**changes: int) -> bytes:
    return encode(FRAMES, _BODY, Expected(**(vars(_SENDER) | changes)))


_ONES = 2**200 - 1
_ESCAPE = rice.stream([*range(23), 119], 160, [3])
_NEEDLESS = rice.stream([*range(23), 118], 160, [3]).bits[: 1 + 23 * 3]
REJECTS: dict[str, Fields] = {
    # --- 4.1 ---
    "index_raw_short": _index("raw", "A byte is missing.", 1000, 2, "03000000040100", _TRUNCATED, "7 bytes"),
    "index_raw_long": _index("raw", "A byte too many.", 1000, 2, "030000000401000000", _CORRUPT, "9 bytes"),
    "index_raw_repeated": _index("raw", "3 is there twice.", 1000, 2, "0300000003000000", _CORRUPT, "3"),
    "index_raw_unsorted": _index("raw", "260 stands before 3.", 1000, 2, "0401000003000000", _CORRUPT, "3"),
    "index_raw_outside": _index("raw", "1000 of 1000.", 1000, 2, "03000000e8030000", _CORRUPT, "1000"),
    "index_raw_32_bits_where_64_are_needed": _index(
        "raw", "numel is 2**32 + 1.", 2**32 + 1, 2, "0300000004010000", _TRUNCATED, "8 bytes"
    ),
    "index_raw_outside_in_64_bits": _index(
        "raw", "2**32 + 1 of as many.", 2**32 + 1, 1, "0100000001000000", _CORRUPT, "4294967297"
    ),
    # --- 4.2 ---
    "index_ordered_short": _index("ordered", "A byte is missing.", 1000, 2, "04010000030000", _TRUNCATED, "7 bytes"),
    "index_ordered_long": _index("ordered", "A byte too many.", 1000, 2, "040100000300000000", _CORRUPT, "9 bytes"),
    "index_ordered_repeated": _index(
        "ordered", "3 comes again after 260.", 1000, 3, "030000000401000003000000", _CORRUPT, "position 3 "
    ),
    "index_ordered_outside": _index(
        "ordered", "1000 of 1000, and not at the end.", 1000, 2, "e803000003000000", _CORRUPT, "position 1000 "
    ),
    # --- 4.3 ---
    "index_bitmap_short": _index("bitmap", "9 bits need two bytes.", 9, 1, "01", _TRUNCATED, "1 byte"),
    "index_bitmap_long": _index("bitmap", "8 bits need one byte.", 8, 1, "0100", _CORRUPT, "2 bytes"),
    "index_bitmap_more_than_kept": _index("bitmap", "Two bits for one kept.", 6, 1, "09", _CORRUPT, "bitmap"),
    "index_bitmap_fewer_than_kept": _index("bitmap", "Two bits for three kept.", 6, 3, "09", _CORRUPT, "bitmap"),
    "index_bitmap_beyond_numel": _index("bitmap", "Bit 6 of 6 is set.", 6, 2, "41", _CORRUPT, "bitmap"),
    # --- 4.4 ---
    "index_rice_empty": _index("rice", "No bytes for one kept.", 1000, 1, "", _TRUNCATED, "rice"),
    "index_rice_short": _index("rice", "The example without its last byte.", 1000, 3, "3000e2", _TRUNCATED, "rice"),
    "index_rice_long": _index("rice", "The example and a byte.", 1000, 3, "3000e20300", _CORRUPT, "rice"),
    "index_rice_padding": _index("rice", "The last padding bit is set.", 1000, 3, "3000e283", _CORRUPT, "rice"),
    "index_rice_outside": _index(
        "rice",
        "Divisor 1, kept 2 of 3: the gaps 0 and 2 lead to position 3.",
        3,
        2,
        bits_text((0, 1), (0, 1), (0b011, 3)),
        _CORRUPT,
        "rice",
    ),
    "index_rice_below_the_table": _index(
        "rice", "From entry 0 to -1.", 2, 1, bits_text((1, 1), (1, 1), (0, 1), (0, 1)), _CORRUPT, "rice"
    ),
    "index_rice_above_the_table": _index(
        "rice", "From entry 0 by 131 to 131.", 2, 1, bits_text((1, 1), (0, 1), (_ONES, 130), (0, 1)), _CORRUPT, "rice"
    ),
    "index_rice_needless_escape": _index(
        "rice",
        "As accepts/index_rice_quotient_23, with an escape for the gap 95, whose quotient is 23.",
        160,
        24,
        bits_text(*((bit, 1) for bit in _NEEDLESS), (2**24 - 1, 24), (95, 8)),
        _CORRUPT,
        "escape",
    ),
    "index_rice_escape_outside": _index(
        "rice",
        "As accepts/index_rice_quotient_24, with an escape to 255, beyond numel 160.",
        160,
        24,
        bits_text(*((bit, 1) for bit in _ESCAPE.bits[:-8]), (255, 8)),
        _CORRUPT,
        "rice",
    ),
    "index_rice_kept_beyond_its_bits": _index(
        "rice", "2**31 kept and one byte: refused before memory is reserved.", 2**33, 2**31, "00", _TRUNCATED, "rice"
    ),
    **MORE_INDEX_REJECTS,
    # --- 4.10 ---
    **MATRIX_REJECTS,
    **BLOOM_REJECTS,
    # --- 5 ---
    "value_raw_short": _value("raw", "A byte is missing.", 2, "0000803f000000", _TRUNCATED, "7 bytes"),
    "value_raw_long": _value("raw", "A byte too many.", 1, "0000803f00", _CORRUPT, "5 bytes"),
    "value_raw_float32_for_float64": _value(
        "raw", "binary32 where the gradient is float64.", 2, "0000803f000000c0", _TRUNCATED, "8 bytes", "float64"
    ),
    "value_fp16_short": _value("fp16", "Half a half.", 2, "003c00", _TRUNCATED, "3 bytes"),
    "value_fp16_long": _value("fp16", "A byte too many.", 1, "003c00", _CORRUPT, "3 bytes"),
    "value_bf16_short": _value("bf16", "Half a value.", 2, "803f00", _TRUNCATED, "3 bytes"),
    "value_bf16_long": _value("bf16", "A byte too many.", 1, "803f00", _CORRUPT, "3 bytes"),
    "value_qsgd_short": _value(
        "qsgd(bits=2, bucket=4)", "The example without its fields.", 4, "00004040", _TRUNCATED, "4 bytes"
    ),
    "value_qsgd_without_a_norm": _value(
        "qsgd(bits=2, bucket=4)", "Five values need two norms.", 5, "000040400400", _TRUNCATED, "6 bytes"
    ),
    "value_qsgd_long": _value("qsgd(bits=2, bucket=4)", "A byte too many.", 4, "000040400400", _CORRUPT, "6 bytes"),
    "value_qsgd_padding": _value(
        "qsgd(bits=2, bucket=4)", "Three fields, and a bit in the padding.", 3, "0000404044", _CORRUPT, "qsgd"
    ),
    **VALUE_REJECTS,
    **QUANT_REJECTS,
    **CURVE_REJECTS,
    **PCO_REJECTS,
    **AUTO_REJECTS,
    # --- 3 ---
    "frame_nothing": _frame("No bytes at all.", "", _TRUNCATED, "index id"),
    "frame_special_unknown": _frame("Only 0 and 1 are special frames.", "0002", _CORRUPT, "special frame of kind 2"),
    "frame_special_short": _frame("Special, but how?", "00", _TRUNCATED, "special"),
    "frame_of_another_index_codec": _frame(
        "`raw` positions under settings with `bitmap`.",
        "0101010404030000000000803f",
        _UNKNOWN,
        "index codec id 1; these settings have 3",
    ),
    "frame_of_rice": _frame(
        "A frame of `rice` under settings with `bitmap`.", "04010101040000000080", _UNKNOWN, "index codec id 4"
    ),
    "frame_of_a_reserved_index_id": _frame(
        "Id 9 is reserved for `bloom`.", "0901010104090000803f", _UNKNOWN, "index codec id 9"
    ),
    "frame_of_another_value_codec": _frame(
        "`fp16` values under settings with `raw`.", "030201010201003c", _UNKNOWN, "value codec id 2"
    ),
    "frame_kept_zero": _frame("Nothing kept is a special frame.", "03010001000000", _CORRUPT, "kept is 0"),
    "frame_kept_beyond_numel": _frame("7 of 6.", "030107011c7f" + "00" * 28, _CORRUPT, "kept is 7"),
    "frame_index_length_beyond": _frame(
        "An index payload of 200 bytes.", "030102c80108090000803f000000c0", _TRUNCATED, "index payload of 200 bytes"
    ),
    "frame_value_length_beyond": _frame(
        "A value payload one byte longer than there is.",
        "0301020109090000803f000000c0",
        _TRUNCATED,
        "value payload of 9 bytes",
    ),
    "frame_lengths_beyond_memory": _frame(
        "A value payload of 2**62 bytes.", "03010201" + varint(2**62).hex() + "09", _TRUNCATED, "value payload of 46116"
    ),
    "frame_varint_not_shortest": _frame(
        "The index id 3 in two bytes.", "830001020108090000803f000000c0", _CORRUPT, "shortest form"
    ),
    "frame_varint_too_long": _frame("Ten bytes of a varint.", "03" + "ff" * 9 + "01", _CORRUPT, "longer than 9 bytes"),
    "frame_varint_short": _frame("The kept count breaks off.", "030180", _TRUNCATED, "kept"),
    "frame_bytes_left_over": _frame(
        "A byte that is not zero after the frame.", _BODY.hex() + "01", _CORRUPT, "padding"
    ),
    "frame_value_payload_short": _frame(
        "Lengths that agree with each other, but not with kept.",
        "0301020107090000803f000000",
        _TRUNCATED,
        "fc.weight",
    ),
    "frame_index_payload_wrong": _frame(
        "Three bits for two kept: the codec's error, told with tensor and rank.",
        "03010201080b0000803f000000c0",
        _CORRUPT,
        "tensor 'fc.weight', rank 1: bitmap",
    ),
    # --- 3.1 ---
    **ROW_REJECTS,
    # --- 4.11 ---
    "frame_shared_with_positions": _frame(
        "A shared support has no payload.",
        "0b01020108090000803f000000c0",
        _CORRUPT,
        "shared support: payload of 1 bytes",
        "randomk(density=0.3)+raw+raw+none",
    ),
    "frame_shared_kept": _frame(
        "3 of 6, where the density says 2.",
        "0b0103000c" + "0000803f" * 3,
        _CORRUPT,
        "kept is 3; these settings keep 2",
        "randomk(density=0.3)+raw+raw+none",
    ),
    "frame_of_randomk": _frame(
        "A shared support under settings with `bitmap`.",
        "0b010200080000803f000000c0",
        _UNKNOWN,
        "index codec id 11",
    ),
    # --- 2 ---
    "bundle_nothing": _bundle("No bytes.", b"", _TRUNCATED, "rank 0"),
    "bundle_short_header": _bundle("The magic, the version and no more.", _RIGHT[:3], _TRUNCATED, "rank 0"),
    "bundle_short": _bundle("A byte is missing.", _RIGHT[:-1], _TRUNCATED, "length"),
    "bundle_magic": _bundle("Another magic.", b"XR" + _RIGHT[2:], _CORRUPT, "4452"),
    "bundle_version": _bundle(
        "Version 2: named before the checksum, which can't be known.",
        _RIGHT[:2] + b"\x02" + _RIGHT[3:],
        "UnsupportedVersionError",
        "version 2",
    ),
    "bundle_kind": _bundle("Kind 2.", encode(2, _BODY, _SENDER), _CORRUPT, "kind 2"),
    "bundle_length_18": _bundle(
        "Less than any bundle has.",
        _sealed(_RIGHT[:4] + (18).to_bytes(4, "little") + _RIGHT[8:]),
        _CORRUPT,
        "length is 18",
    ),
    "bundle_length_beyond": _bundle(
        "A length of 4 GiB.", _sealed(_RIGHT[:4] + b"\xff" * 4 + _RIGHT[8:]), _TRUNCATED, "4294967295"
    ),
    "bundle_damaged_body": _bundle("One bit of the last value.", _RIGHT[:-1] + b"\xc1", _CORRUPT, "checksum"),
    "bundle_damaged_checksum": _bundle(
        "One bit of the checksum.", _RIGHT[:12] + bytes([_RIGHT[12] ^ 1]) + _RIGHT[13:], _CORRUPT, "checksum"
    ),
    "bundle_of_other_settings": _bundle("Another fingerprint.", _other(fingerprint=1), _CORRUPT, "same settings"),
    "bundle_of_another_rank": _bundle("Rank 1 in the place of rank 0.", _other(rank=1), _CORRUPT, "rank 1"),
    "bundle_of_another_bucket": _bundle("Bucket 6.", _other(bucket=6), _CORRUPT, "bucket 6"),
    "bundle_of_another_step": _bundle("The step before.", _other(step=299), _CORRUPT, "step 299"),
    "bundle_step_breaks_off": _bundle(
        "The step's second byte lies beyond the length.",
        _sealed(_RIGHT[:4] + (19).to_bytes(4, "little") + _RIGHT[8:18] + b"\xac"),
        _TRUNCATED,
        "step",
    ),
    "bundle_padding": _bundle(
        "A one among the zeros.", encode(FRAMES, _BODY + b"\0\1\0", _SENDER), _CORRUPT, "padding"
    ),
    "bundle_and_more": _bundle("A byte after the bundle.", _RIGHT + b"\0", _CORRUPT, "after the last bundle"),
    "bundle_message_not_utf8": _bundle(
        "A message in Latin-1.", encode(ERROR, b"\x02\xe9a", _SENDER), _CORRUPT, "UTF-8"
    ),
    "bundle_message_short": _bundle(
        "A message of 9 bytes, 2 of them there.", encode(ERROR, b"\x09no", _SENDER), _TRUNCATED, "message"
    ),
    "bundle_message_padding": _bundle(
        "A message with more behind it.", encode(ERROR, b"\x02no!", _SENDER), _CORRUPT, "padding"
    ),
}
