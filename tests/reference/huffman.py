"""Huffman codes of the bytes of positions, and of gaps; FORMAT.md, 4.6 and 4.7."""

from functools import cache

from reference.bits import BitReader, BitWriter, CorruptError

LONGEST = 15


def lengths_of(weights: dict[int, int]) -> dict[int, int]:
    nodes = [(weight, symbol, [symbol]) for symbol, weight in sorted(weights.items()) if weight]
    lengths = dict.fromkeys((symbol for _, symbol, _ in nodes), 0)
    if len(nodes) == 1:
        return dict.fromkeys(lengths, 1)
    number = 1000  # merged nodes stand behind all symbols
    while len(nodes) > 1:
        nodes.sort()
        (first, _, left), (second, _, right) = nodes[:2]
        for symbol in left + right:
            lengths[symbol] += 1
        nodes = [*nodes[2:], (first + second, number, left + right)]
        number += 1
    if max(lengths.values()) > LONGEST:
        return lengths_of({symbol: (weight + 1) // 2 for symbol, weight in weights.items()})
    return lengths


def words_of(lengths: dict[int, int]) -> dict[int, str]:
    """Words as they enter the stream, in the digits 0 and 1."""
    words = {}
    word, before = -1, 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items() if length):
        word = (word + 1) << (length - before)
        before = length
        words[symbol] = f"{word:0{length}b}"
    return words


def put_word(out: BitWriter, word: str) -> None:
    for bit in word:
        out.field(int(bit), 1)


def take_symbol(bits: BitReader, symbols: dict[str, int]) -> int:
    word = ""
    while word not in symbols:
        if len(word) == LONGEST:
            raise CorruptError("huffman: a word that is none")
        word += str(bits.bit())
        if len(symbols) == 1 and word == "1":
            raise CorruptError("huffman: a word that is none")
    return symbols[word]


# --- of bytes ---


def bytes_of_position(numel: int) -> int:
    return 4 if numel <= 2**32 else 8


def weights_of(numel: int) -> dict[int, int]:
    return {
        byte: sum(
            numel // (256 * unit) * unit + min(unit, max(0, numel % (256 * unit) - byte * unit))
            for unit in (256**place for place in range(bytes_of_position(numel)))
        )
        for byte in range(256)
    }


@cache
def words_of_bytes(numel: int) -> dict[int, str]:
    return words_of(lengths_of(weights_of(numel)))


def bits_per_position(numel: int) -> float:
    """The mean over all positions below numel."""
    words = words_of_bytes(numel)
    return sum(weight * len(words.get(byte, "")) for byte, weight in weights_of(numel).items()) / numel


def bytes_encode(positions: list[int], numel: int) -> bytes:
    out = BitWriter()
    # A position outside numel may have a byte that no position below it has.
    words = words_of_bytes(numel)
    for position in positions:
        for byte in position.to_bytes(bytes_of_position(numel), "little"):
            put_word(out, words.get(byte, "1" * 16))
    return out.to_bytes()


def bytes_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    bits = BitReader(payload)
    positions: list[int] = []
    symbols = {word: byte for byte, word in words_of_bytes(numel).items()} if kept else {}
    for _ in range(kept):
        raw = bytes(take_symbol(bits, symbols) for _ in range(bytes_of_position(numel)))
        position = int.from_bytes(raw, "little")
        if position >= numel:
            raise CorruptError("huffman: a position outside numel")
        if positions and position <= positions[-1]:
            raise CorruptError("huffman: a position below the one before it")
        positions.append(position)
    bits.end()
    return positions


# --- of gaps ---


def gaps_of(positions: list[int]) -> list[int]:
    return [here - before - 1 for before, here in zip([-1, *positions], positions, strict=False)]


def width_of(numel: int) -> int:
    return max(1, (numel - 1).bit_length())


def class_of(gap: int, a: int) -> tuple[int, int]:
    """The class, and e."""
    e = max(0, gap.bit_length() - 1 - a)
    return e * 2**a + gap // 2**e, e


def stored_stream(gaps: list[int], numel: int) -> BitWriter:
    out = BitWriter()
    out.field(0, 1)
    for gap in gaps:
        out.field(gap, width_of(numel))
    return out


def coded_stream(gaps: list[int], a: int, lengths: dict[int, int], n: int | None = None) -> BitWriter:
    n = max(lengths) + 1 if n is None else n
    words = words_of(lengths)
    out = BitWriter()
    out.field(1, 1)
    out.field(a, 2)
    out.field(n - 1, 8)
    for symbol in range(n):
        out.field(lengths.get(symbol, 0), 4)
    for gap in gaps:
        symbol, e = class_of(gap, a)
        put_word(out, words[symbol])
        out.field(gap % 2**e, e)
    return out


def lengths_of_gaps(gaps: list[int], a: int) -> dict[int, int]:
    classes = [class_of(gap, a)[0] for gap in gaps]
    return lengths_of({symbol: classes.count(symbol) for symbol in set(classes)})


def gaps_encode(positions: list[int], numel: int) -> bytes:
    gaps = gaps_of(positions)
    if not gaps:
        return b""
    streams = [stored_stream(gaps, numel)]
    if min(gaps) >= 0:  # what is no support has no classes
        streams += [coded_stream(gaps, a, lengths_of_gaps(gaps, a)) for a in range(4)]
    return min(streams, key=lambda stream: len(stream.bits)).to_bytes()


def _take_code(bits: BitReader, a: int, numel: int) -> dict[str, int]:
    n = bits.field(8) + 1
    lengths = {symbol: bits.field(4) for symbol in range(n)}
    if n > class_of(numel - 1, a)[0] + 1:
        raise CorruptError("huffman: more classes than gaps below numel have")
    if lengths[n - 1] == 0:
        raise CorruptError("huffman: the last class has no word")
    used = [length for length in lengths.values() if length]
    if sum(2 ** (LONGEST - length) for length in used) != 2**LONGEST and used != [1]:
        raise CorruptError("huffman: lengths of no code")
    return {word: symbol for symbol, word in words_of(lengths).items()}


def gaps_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    bits = BitReader(payload)
    positions: list[int] = []
    a, symbols = 0, None
    if kept and bits.bit():
        a = bits.field(2)
        symbols = _take_code(bits, a, numel)
    for _ in range(kept):
        if symbols is None:
            gap = bits.field(width_of(numel))
        else:
            symbol = take_symbol(bits, symbols)
            e = max(0, symbol // 2**a - 1)
            gap = (symbol - e * 2**a) * 2**e + bits.field(e)
        positions.append((positions[-1] if positions else -1) + 1 + gap)
        if positions[-1] >= numel:
            raise CorruptError("huffman: a position outside numel")
    bits.end()
    return positions
