"""Payloads of index codecs in sections 4.5 to 4.8 of FORMAT.md that must be refused, and how such a case is made."""

from reference import huffman
from reference.bits import BitWriter

from golden.vectors import Fields

_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"
_BYTES, _GAPS = "huffman(of='bytes')", "huffman(of='gaps')"


def index_reject(settings: str, why: str, shape: int, kept: int, payload: str, error: str, message: str) -> Fields:
    return {
        "why": why,
        "kind": "index",
        "settings": settings,
        "shape": str(shape),
        "kept": str(kept),
        "payload": payload,
        "error": error,
        "message": message,
    }


def bits_text(*fields: tuple[int, int]) -> str:
    """A bit stream of (value, bits) fields, in hex."""
    out = BitWriter()
    for value, count in fields:
        out.field(value, count)
    return out.to_bytes().hex()


def _code(a: int, *lengths: int, rest: int = 0) -> str:
    """What stands before the gaps, and as many zero bits."""
    return bits_text((1, 1), (a, 2), (len(lengths) - 1, 8), *((length, 4) for length in lengths), (0, rest))


MORE_INDEX_REJECTS: dict[str, Fields] = {
    # --- 4.5 ---
    "index_rle_empty": index_reject("rle", "No runs for one kept.", 1000, 1, "", _TRUNCATED, "rle"),
    "index_rle_short": index_reject("rle", "The example without its last run.", 1000, 3, "0301fe01", _TRUNCATED, "rle"),
    "index_rle_breaks_off": index_reject(
        "rle", "The example breaks off in a run.", 1000, 3, "0301fe", _TRUNCATED, "rle"
    ),
    "index_rle_long": index_reject("rle", "The example and a byte.", 1000, 3, "0301fe010000", _CORRUPT, "left over"),
    "index_rle_not_shortest": index_reject(
        "rle", "Three zeros in two bytes.", 1000, 2, "830001", _CORRUPT, "shortest form"
    ),
    "index_rle_too_long": index_reject(
        "rle", "Six bytes of a varint.", 2**33, 1, "80808080800100", _CORRUPT, "longer than"
    ),
    "index_rle_more_than_kept": index_reject("rle", "Two ones for one kept.", 1000, 1, "0301", _CORRUPT, "kept is 1"),
    "index_rle_outside": index_reject(
        "rle", "Ones from 998 to 1000 of 1000.", 1000, 3, "e60702", _CORRUPT, "numel 1000"
    ),
    "index_rle_zeros_outside": index_reject(
        "rle", "A second run that begins beyond numel.", 6, 2, "00000500", _CORRUPT, "outside numel 6"
    ),
    "index_rle_kept_beyond_its_runs": index_reject(
        "rle",
        "2**32 kept, and 100 ones: refused before memory is reserved.",
        2**33,
        2**32,
        "0063",
        _TRUNCATED,
        "rle",
    ),
    # --- 4.6 ---
    "index_huffman_bytes_empty": index_reject(_BYTES, "No bytes for one kept.", 6, 1, "", _TRUNCATED, "huffman"),
    "index_huffman_bytes_short": index_reject(
        _BYTES, "The example without its last byte.", 6, 2, "10", _TRUNCATED, "within position 1 of 2"
    ),
    "index_huffman_bytes_long": index_reject(_BYTES, "The example and a byte.", 6, 2, "100000", _CORRUPT, "left over"),
    "index_huffman_bytes_padding": index_reject(
        _BYTES, "The last padding bit is set.", 6, 2, "1080", _CORRUPT, "padding"
    ),
    "index_huffman_bytes_no_word": index_reject(
        _BYTES, "numel 1: no byte has the word 1.", 1, 1, "04", _CORRUPT, "a word that is none"
    ),
    "index_huffman_bytes_repeated": index_reject(
        _BYTES, "Position 0 twice.", 6, 2, "00", _CORRUPT, "0 at index 1 is not above 0"
    ),
    "index_huffman_bytes_unsorted": index_reject(
        _BYTES,
        "Positions 3, 0.",
        6,
        2,
        huffman.bytes_encode([3, 0], 6).hex(),
        _CORRUPT,
        "0 at index 1 is not above 3",
    ),
    "index_huffman_bytes_outside": index_reject(
        _BYTES,
        "3 x 256 of 6.",
        6,
        1,
        huffman.bytes_encode([768], 6).hex(),
        _CORRUPT,
        "768 at index 0 is outside numel 6",
    ),
    "index_huffman_bytes_kept_beyond_its_bits": index_reject(
        _BYTES,
        "2**31 kept and one byte: refused before memory is reserved.",
        2**33,
        2**31,
        "00",
        _TRUNCATED,
        "huffman",
    ),
    # --- 4.7 ---
    "index_huffman_gaps_empty": index_reject(_GAPS, "No bytes for one kept.", 6, 1, "", _TRUNCATED, "huffman"),
    "index_huffman_gaps_stored_short": index_reject(
        _GAPS,
        "accepts/index_huffman_gaps_stored without its last byte.",
        1000,
        3,
        "0600e0",
        _TRUNCATED,
        "huffman",
    ),
    "index_huffman_gaps_stored_long": index_reject(
        _GAPS, "accepts/index_huffman_gaps_stored and a byte.", 1000, 3, "0600e01f00", _CORRUPT, "left over"
    ),
    "index_huffman_gaps_stored_padding": index_reject(
        _GAPS,
        "accepts/index_huffman_gaps_stored, its last bit set.",
        1000,
        3,
        "0600e09f",
        _CORRUPT,
        "padding",
    ),
    "index_huffman_gaps_stored_outside": index_reject(
        _GAPS, "Gap 1000 of 1000.", 1000, 1, bits_text((0, 1), (1000, 10)), _CORRUPT, "position 1000"
    ),
    "index_huffman_gaps_short": index_reject(
        _GAPS, "The example without its last byte.", 20, 10, "1908806030", _TRUNCATED, "within gap 9 of 10"
    ),
    "index_huffman_gaps_long": index_reject(
        _GAPS, "The example and a byte.", 20, 10, "19088060300000", _CORRUPT, "left over"
    ),
    "index_huffman_gaps_padding": index_reject(
        _GAPS, "The example, its last bit set.", 20, 10, "190880603080", _CORRUPT, "padding"
    ),
    "index_huffman_gaps_outside": index_reject(
        _GAPS, "The example in 19.", 19, 10, "190880603000", _CORRUPT, "position 19"
    ),
    "index_huffman_gaps_short_code": index_reject(
        _GAPS, "256 classes announced, and no lengths.", 2**33, 1, "ff07", _TRUNCATED, "lengths of the code"
    ),
    "index_huffman_gaps_too_many_classes": index_reject(
        _GAPS,
        "Gaps below 2 have the classes 0 and 1.",
        2,
        1,
        _code(0, 1, 2, 2, rest=8),
        _CORRUPT,
        "3 classes",
    ),
    "index_huffman_gaps_last_class_unused": index_reject(
        _GAPS, "n is one too many.", 20, 1, _code(0, 1, 1, 0, rest=1), _CORRUPT, "the last of 3 classes"
    ),
    "index_huffman_gaps_oversubscribed": index_reject(
        _GAPS, "Three words of one bit.", 20, 1, _code(0, 1, 1, 1, rest=1), _CORRUPT, "no code"
    ),
    "index_huffman_gaps_undersubscribed": index_reject(
        _GAPS, "Two words of 1 and 2 bits.", 20, 1, _code(0, 1, 2, rest=1), _CORRUPT, "no code"
    ),
    "index_huffman_gaps_half_subscribed": index_reject(
        _GAPS,
        "Two words of 2 bits share half: right for a class that is alone only.",
        20,
        1,
        _code(0, 2, 2, rest=2),
        _CORRUPT,
        "no code",
    ),
    "index_huffman_gaps_alone_with_two_bits": index_reject(
        _GAPS, "A class that is alone has one bit.", 20, 1, _code(0, 2, rest=2), _CORRUPT, "no code"
    ),
    "index_huffman_gaps_no_word": index_reject(
        _GAPS,
        "The word 1 where a class is alone.",
        20,
        1,
        bits_text((1, 1), (0, 2), (0, 8), (1, 4), (1, 1)),
        _CORRUPT,
        "a word that is none",
    ),
    "index_huffman_gaps_kept_beyond_its_bits": index_reject(
        _GAPS,
        "2**31 kept and one byte: refused before memory is reserved.",
        2**33,
        2**31,
        "00",
        _TRUNCATED,
        "huffman",
    ),
    # --- 4.8 ---
    "index_delta_empty": index_reject("delta", "No bytes for one kept.", 1000, 1, "", _TRUNCATED, "delta"),
    "index_delta_short": index_reject(
        "delta", "The example without its last byte.", 1000, 3, "0300ff", _TRUNCATED, "delta"
    ),
    "index_delta_long": index_reject("delta", "The example and a byte.", 1000, 3, "0300ff0100", _CORRUPT, "left over"),
    "index_delta_not_shortest": index_reject(
        "delta", "Gap 3 in two bytes.", 1000, 1, "8300", _CORRUPT, "shortest form"
    ),
    "index_delta_too_long": index_reject(
        "delta", "Six bytes of a varint.", 2**33, 1, "808080808001", _CORRUPT, "longer than"
    ),
    "index_delta_outside": index_reject(
        "delta", "Gaps 3 and 996 of 1000.", 1000, 2, "03e407", _CORRUPT, "position 1000"
    ),
    "index_delta_kept_beyond_its_bytes": index_reject(
        "delta", "2**31 kept and one byte: refused before memory is reserved.", 2**33, 2**31, "00", _TRUNCATED, "delta"
    ),
}
