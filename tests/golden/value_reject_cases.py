"""Cases of the value codecs of FORMAT.md, 5.5 to 5.9, that must be refused."""

import zlib

from golden.value_accept_cases import DEFLATE_EXAMPLE
from golden.vectors import Fields

_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"


def rejected(
    settings: str, why: str, kept: int, payload: str, error: str, message: str, dtype: str = "float32", **more: str
) -> Fields:
    return {
        "why": why,
        "kind": "value",
        "settings": settings,
        "dtype": dtype,
        "kept": str(kept),
        **more,
        "payload": payload,
        "error": error,
        "message": message,
    }


_BOMB = zlib.compress(bytes(2**20), 9).hex()
_SHUFFLED = "deflate(shuffle=True)"
_TWO_FLOATS = "0000000080003fc0"

VALUE_REJECTS: dict[str, Fields] = {
    "value_deflate_no_zlib": rejected(_SHUFFLED, "No zlib header.", 2, "ff" + DEFLATE_EXAMPLE[2:], _CORRUPT, "deflate"),
    "value_deflate_checksum": rejected(
        _SHUFFLED, "The last bit of the Adler-32.", 2, DEFLATE_EXAMPLE[:-2] + "81", _CORRUPT, "deflate"
    ),
    "value_deflate_short": rejected(
        _SHUFFLED, "A byte of the Adler-32 is missing.", 2, DEFLATE_EXAMPLE[:-2], _TRUNCATED, "goes on"
    ),
    "value_deflate_long": rejected(
        _SHUFFLED, "A byte behind the stream.", 2, DEFLATE_EXAMPLE + "00", _CORRUPT, "1 bytes are left over"
    ),
    "value_deflate_fewer": rejected(
        _SHUFFLED, "A whole stream of 8 bytes for three values.", 3, DEFLATE_EXAMPLE, _CORRUPT, "8 bytes in the stream"
    ),
    "value_deflate_more": rejected(
        _SHUFFLED, "A whole stream of 8 bytes for one value.", 1, DEFLATE_EXAMPLE, _CORRUPT, "more than the 4 bytes"
    ),
    "value_deflate_bomb": rejected(
        _SHUFFLED, "A stream of 2**20 bytes for two values.", 2, _BOMB, _CORRUPT, "more than the 8 bytes"
    ),
    "value_deflate_nothing_like_enough": rejected(
        _SHUFFLED, "More values than so few bytes can stand for.", 2**20, DEFLATE_EXAMPLE, _TRUNCATED, "never in so few"
    ),
    "value_deflate_dictionary": rejected(
        _SHUFFLED, "A preset dictionary is asked for.", 2, "78200000000163000000", _CORRUPT, "deflate"
    ),
    "value_onebit_short": rejected(
        "onebit(centroid='mean')", "No signs.", 3, "00000040", _TRUNCATED, "4 bytes; 5 are needed"
    ),
    "value_onebit_long": rejected(
        "onebit(centroid='mean')", "A byte too many.", 3, "000000400200", _CORRUPT, "1 are left over"
    ),
    "value_onebit_padding": rejected(
        "onebit(centroid='mean')", "Three signs, and a bit in the padding.", 3, "000000400a", _CORRUPT, "padding"
    ),
    "value_onebit_a_centroid_less": rejected(
        "onebit(centroid='column')",
        "Two centroids for three columns.",
        4,
        "000000400000804002",
        _TRUNCATED,
        "9 bytes; 13 are needed",
        shape="2x3",
        positions="0 2 3 4",
    ),
    "value_twobit_short": rejected(
        "twobit(centroid='mean')", "One centroid.", 4, "0000004048", _TRUNCATED, "5 bytes; 9 are needed"
    ),
    "value_twobit_padding": rejected(
        "twobit(centroid='mean')", "Three fields, and one in the padding.", 3, "000000400000c04048", _CORRUPT, "padding"
    ),
    "value_terngrad_short": rejected("terngrad", "Six values in a byte.", 6, "0000004007", _TRUNCATED, "6 are needed"),
    "value_terngrad_long": rejected("terngrad", "A byte too many.", 5, "000000400707", _CORRUPT, "1 are left over"),
    "value_terngrad_byte": rejected("terngrad", "243 is 3**5.", 5, "00000040f3", _CORRUPT, "byte 4 is 243"),
    "value_terngrad_padding": rejected(
        "terngrad", "Three digits, and a fourth that is 1.", 3, "000000401b", _CORRUPT, "byte 4 is 27"
    ),
    "value_natural_head": rejected("natural", "Half a head.", 4, "027e", _TRUNCATED, "2 bytes; 4 are needed"),
    "value_natural_short": rejected(
        "natural", "A byte is missing.", 4, "027e003a", _TRUNCATED, "4 bytes; 5 are needed"
    ),
    "value_natural_long": rejected("natural", "A byte too many.", 4, "027e003a0200", _CORRUPT, "1 are left over"),
    "value_natural_padding": rejected(
        "natural", "Four fields of three bits, and one in the padding.", 4, "027e003a12", _CORRUPT, "padding"
    ),
    "value_natural_bits": rejected("natural", "Nine bits.", 1, "0901000000", _CORRUPT, "exponents of 9 bits"),
    "value_natural_lowest_zero": rejected(
        "natural", "Exponent 0 has the field 0 already.", 4, "0200003a02", _CORRUPT, "lowest exponent 0"
    ),
    "value_natural_lowest_beyond": rejected(
        "natural", "256 is no exponent of a binary32.", 4, "0200013a02", _CORRUPT, "lowest exponent 256"
    ),
    "value_natural_lowest_without_bits": rejected(
        "natural", "A lowest exponent, but no bits to tell it.", 1, "007e0000", _CORRUPT, "lowest exponent 126"
    ),
    "value_natural_exponent_beyond": rejected(
        "natural", "Exponent 254 + 2.", 1, "02fe0003", _CORRUPT, "exponent 256; at most 255"
    ),
}
