"""Golomb codes of gaps with a divisor per block; FORMAT.md, 4.4."""

from reference.bits import BitReader, BitWriter, CorruptError

BLOCK = 128
ESCAPE = 24
ENTRIES = [(1, 0), (2, 0), (3, 0)] + [(4 + (d - 3) % 4, (d - 3) // 4) for d in range(3, 131)]


def divisor(entry: int) -> int:
    m, s = ENTRIES[entry]
    return m * 2**s


def first_entry(kept: int, numel: int) -> int:
    t = max(1, (11 * (numel - kept) + 8 * kept) // (16 * kept))
    return max(entry for entry in range(len(ENTRIES)) if divisor(entry) <= t)


def escape_width(numel: int) -> int:
    return max(1, (numel - 1).bit_length())


def put_change(out: BitWriter, change: int) -> None:
    if change == 0:
        out.field(0, 1)
        return
    out.field(1, 1)
    out.field(1 if change < 0 else 0, 1)
    for _ in range(abs(change) - 1):
        out.field(1, 1)
    out.field(0, 1)


def put_gap(out: BitWriter, gap: int, entry: int, numel: int) -> None:
    m, s = ENTRIES[entry]
    quotient = gap // (m * 2**s)
    if quotient >= ESCAPE:
        for _ in range(ESCAPE):
            out.field(1, 1)
        out.field(gap, escape_width(numel))
        return
    for _ in range(quotient):
        out.field(1, 1)
    out.field(0, 1)
    remainder = gap // 2**s % m
    if m > 1:
        b = (m - 1).bit_length()
        c = 2**b - m
        if remainder < c:
            out.field(remainder, b - 1)
        else:
            out.field((remainder + c) // 2, b - 1)
            out.field((remainder + c) % 2, 1)
    out.field(gap % 2**s, s)


def gap_bits(gap: int, entry: int, numel: int) -> int:
    """Length of what `put_gap` writes."""
    m, s = ENTRIES[entry]
    quotient = gap // (m * 2**s)
    if quotient >= ESCAPE:
        return ESCAPE + escape_width(numel)
    b = (m - 1).bit_length()
    short = gap // 2**s % m < 2**b - m
    return quotient + 1 + s + (0 if m == 1 else b - 1 if short else b)


def change_bits(change: int) -> int:
    return 1 if change == 0 else 2 + abs(change)


def gaps_of(positions: list[int]) -> list[int]:
    return [here - before - 1 for before, here in zip([-1, *positions], positions, strict=False)]


def best_entry(block: list[int], previous: int, numel: int) -> int:
    """The fewest bits; ties: the smaller change, then the smaller entry."""
    costs = [
        (
            change_bits(entry - previous) + sum(gap_bits(gap, entry, numel) for gap in block),
            abs(entry - previous),
            entry,
        )
        for entry in range(len(ENTRIES))
    ]
    return min(costs)[2]


def stream(positions: list[int], numel: int, entries: list[int] | None = None) -> BitWriter:
    """The bit stream before padding; `entries`, one for each block, take the place of the encoder's own choice."""
    out = BitWriter()
    if not positions:
        return out
    gaps = gaps_of(positions)
    entry = first_entry(len(positions), numel)
    for number, start in enumerate(range(0, len(gaps), BLOCK)):
        block = gaps[start : start + BLOCK]
        previous = entry
        entry = best_entry(block, previous, numel) if entries is None else entries[number]
        put_change(out, entry - previous)
        for gap in block:
            put_gap(out, gap, entry, numel)
    return out


def encode(positions: list[int], numel: int) -> bytes:
    return stream(positions, numel).to_bytes()


def _gap(bits: BitReader, entry: int, numel: int) -> int:
    m, s = ENTRIES[entry]
    quotient = 0
    while quotient < ESCAPE and bits.bit():
        quotient += 1
    if quotient == ESCAPE:
        gap = bits.field(escape_width(numel))
        if gap // (m * 2**s) < ESCAPE:
            raise CorruptError(f"rice: an escape for the gap {gap}, which needs none")
        return gap
    remainder = 0
    if m > 1:
        b = (m - 1).bit_length()
        c = 2**b - m
        remainder = bits.field(b - 1)
        if remainder >= c:
            remainder = 2 * remainder + bits.bit() - c
    return (quotient * m + remainder) * 2**s + bits.field(s)


def decode(payload: bytes, kept: int, numel: int) -> list[int]:
    bits = BitReader(payload)
    positions: list[int] = []
    entry = first_entry(kept, numel) if kept else 0
    position = -1
    for index in range(kept):
        if index % BLOCK == 0 and bits.bit():
            smaller = bits.bit()
            amount = 1
            while bits.bit():
                amount += 1
                if amount > len(ENTRIES):
                    raise CorruptError("rice: a change that leaves the table")
            entry += -amount if smaller else amount
            if not 0 <= entry < len(ENTRIES):
                raise CorruptError("rice: a change that leaves the table")
        position += 1 + _gap(bits, entry, numel)
        if position >= numel:
            raise CorruptError(f"rice: position {position} is outside numel {numel}")
        positions.append(position)
    bits.end()
    return positions
