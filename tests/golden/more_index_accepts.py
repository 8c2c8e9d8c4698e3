"""Cases of index codecs in sections 4.5 to 4.8 of FORMAT.md that must be written and read as they stand."""

from reference import huffman

from golden.vectors import Fields

_RLE = {"kind": "index", "settings": "rle"}
_BYTES = {"kind": "index", "settings": "huffman(of='bytes')"}
_GAPS = {"kind": "index", "settings": "huffman(of='gaps')"}
_DELTA = {"kind": "index", "settings": "delta"}


def positions_text(*parts: range | int) -> str:
    return " ".join(str(p) for part in parts for p in ([part] if isinstance(part, int) else part))


MORE_INDEX_ACCEPTS: dict[str, Fields] = {
    # --- 4.5 ---
    "index_rle_example": {"why": "The example of FORMAT.md, 4.5.", **_RLE, "shape": "1000", "positions": "3 4 260"},
    "index_rle_from_the_first": {
        "why": "The run of zeros before position 0 is the only one that may be empty; single ones, single zeros.",
        **_RLE,
        "shape": "6",
        "positions": "0 2 4",
    },
    "index_rle_all_kept": {
        "why": "Two runs tell any number of positions: 200 ones are stored as 199, two bytes.",
        **_RLE,
        "shape": "200",
        "positions": positions_text(range(200)),
    },
    "index_rle_longest_run": {
        "why": "All zeros but the last of 2**33: a varint of five bytes.",
        **_RLE,
        "shape": "8589934592",
        "positions": "8589934591",
    },
    # --- 4.6 ---
    "index_huffman_bytes_example": {
        "why": "The example of FORMAT.md, 4.6.",
        **_BYTES,
        "shape": "6",
        "positions": "0 3",
        "bits": "0 0 0 0 (position 0) | 100 0 0 0 (position 3) | 000000 padding",
    },
    "index_huffman_bytes_one_element": {
        "why": "Byte 0 is alone and has a word of one bit.",
        **_BYTES,
        "shape": "1",
        "positions": "0",
        "bits": "0 0 0 0 (position 0) | 0000 padding",
    },
    "index_huffman_bytes_of_a_convolution": {
        "why": "64 x 576, the layer of DeepReduce's figure 8a: bytes of three places in one code.",
        **_BYTES,
        "shape": "64x64x3x3",
        "positions": "0 1 255 256 4095 16384 36000 36863",
    },
    "index_huffman_bytes_last_of_32_bits": {
        "why": "All bytes occur equally often and have words of eight bits: `raw`, the bits of every byte reversed.",
        **_BYTES,
        "shape": "4294967296",
        "positions": "0 4294967295",
    },
    "index_huffman_bytes_first_of_64_bits": {
        "why": "One element more, and a position has eight bytes, most of them 0.",
        **_BYTES,
        "shape": "4294967297",
        "positions": "0 3 4294967296",
    },
    # --- 4.7 ---
    "index_huffman_gaps_example": {
        "why": "The example of FORMAT.md, 4.7.",
        **_GAPS,
        "shape": "20",
        "positions": "0 1 7 8 9 10 11 17 18 19",
        "bits": "1 00 (coded, a = 0) | 11000000 (n - 1 = 3) | 1000 0000 0000 1000 lengths | "
        "0 0 1 10 (gaps 0, 0, 5) | 0 0 0 0 1 10 (gaps 0, 0, 0, 0, 5) | 0 0 (gaps 0, 0) | 0000000 padding",
    },
    "index_huffman_gaps_stored": {
        "why": "Too few for a table: three gaps of 10 bits.",
        **_GAPS,
        "shape": "1000",
        "positions": "3 4 260",
        "bits": "0 stored | 1100000000 (3) | 0000000000 (0) | 1111111100 (255) | 0 padding",
    },
    "index_huffman_gaps_stored_at_33_bits": {
        "why": "The widest gap there is.",
        **_GAPS,
        "shape": "8589934592",
        "positions": "8589934591",
    },
    "index_huffman_gaps_all_kept": {
        "why": "One class alone has a word of one bit. a = 0.",
        **_GAPS,
        "shape": "7x9",
        "positions": positions_text(range(63)),
    },
    "index_huffman_gaps_many_classes": {
        "why": "Gaps of a few sizes, most of them small: our encoder takes a = 2.",
        **_GAPS,
        "shape": "2000",
        "positions": positions_text(range(0, 200, 2), range(200, 1000, 5), range(1000, 1999, 40)),
    },
    "index_huffman_gaps_finest_classes": {
        "why": "a = 3 and the class 15 + 8 of the gap 31, and classes that no gap has: a decoder follows any code.",
        **_GAPS,
        "shape": "64",
        "positions": "0 1 33",
        "written": "no",
        "payload": huffman.coded_stream([0, 0, 31], 3, {0: 1, 5: 2, 23: 2}).to_bytes().hex(),
    },
    "index_huffman_gaps_words_of_15_bits": {
        "why": "The longest words: lengths 1, 2, ..., 14, 15, 15.",
        **_GAPS,
        "shape": "64",
        "positions": "0 15 31",
        "written": "no",
        "payload": huffman.coded_stream([0, 14, 15], 3, {s: min(s + 1, 15) for s in range(16)}).to_bytes().hex(),
    },
    # --- 4.8 ---
    "index_delta_example": {"why": "The example of FORMAT.md, 4.8.", **_DELTA, "shape": "1000", "positions": "3 4 260"},
    "index_delta_sizes": {
        "why": "Gaps at the edges of one, two, three, four and five bytes.",
        **_DELTA,
        "shape": "8589934592",
        "positions": "127 256 16640 33025 2130178 4227331 272662788 541098245 8589934591",
    },
}
