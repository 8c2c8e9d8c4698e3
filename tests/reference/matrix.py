"""Index codec `matrix`; FORMAT.md, 4.10."""

from bisect import bisect_left
from collections.abc import Iterator
from math import isqrt

from reference import rice
from reference.bits import ByteReader, CorruptError, TruncatedError, varint
from reference.matrix_code import (
    HIGHEST_CLASS,
    LOGARITHMS,
    OCTAVE,
    REACH,
    STEEPEST,
    TOTAL,
    ClassModel,
    RangeReader,
    RangeWriter,
    put_classes,
    scale_of,
    survival,
    take_classes,
)


class Field:
    """Hazard over the matrix: of row r from its start to column c, rates[r] * sums(c)."""

    def __init__(self, scale: int, rows: list[int] | None, columns: list[int] | None, width: int):
        self.scale, self.rows, self.width = scale, rows, width
        self.sums: range | list[int] = range(width + 1)
        if columns is not None:
            self.sums = [0]
            for line_class in columns:
                self.sums.append(self.sums[-1] + line_class**2)

    def rate(self, row: int) -> int:
        return self.scale * (1 if self.rows is None else self.rows[row] ** 2)


def encode_positions(coder: RangeWriter, field: Field, positions: list[int]) -> None:
    row, at, passed = 0, 0, 0
    for position in positions:
        target, column = divmod(position, field.width)
        while True:
            place = field.sums[column if row == target else field.width]
            hazard = passed + field.rate(row) * (place - at)
            if hazard >= REACH:
                far = field.sums[bisect_left(field.sums, at - (passed - REACH) // field.rate(row))]
                rest = survival(passed + field.rate(row) * (far - at))
                coder.put(TOTAL - rest, rest)
                at, passed = far, 0
            elif row < target:
                row, at, passed = row + 1, 0, hazard
            else:
                break
        start = survival(hazard)
        end = survival(hazard + field.rate(row) * (field.sums[column + 1] - place))
        coder.put(TOTAL - start, start - end)
        at, passed = field.sums[column + 1], 0


def decode_positions(coder: RangeReader, field: Field, rows: int, kept: int) -> list[int]:
    positions: list[int] = []
    row, at, passed = 0, 0, 0
    while len(positions) < kept:
        left = TOTAL - coder.value()
        if left <= 0:
            raise CorruptError("matrix: a value of no symbol")
        rate = field.rate(row)
        row_end = passed + rate * (field.sums[field.width] - at)
        if row_end < REACH and survival(row_end) >= left:
            row, at, passed = row + 1, 0, row_end
            if row == rows:
                raise CorruptError("matrix: a position outside the matrix")
            continue
        if row_end >= REACH:
            far = field.sums[bisect_left(field.sums, at - (passed - REACH) // rate)]
            rest = survival(passed + rate * (far - at))
            if left <= rest:
                coder.take(TOTAL - rest, rest)
                at, passed = far, 0
                continue
        here = bisect_left(field.sums, at)
        low, high = here, field.width - 1
        while low < high:
            middle = (low + high) // 2
            end = passed + rate * (field.sums[middle + 1] - at)
            if end < REACH + STEEPEST + OCTAVE and survival(end) >= left:
                low = middle + 1
            else:
                high = middle
        start, end = (survival(passed + rate * (field.sums[low + i] - at)) for i in (0, 1))
        coder.take(TOTAL - start, start - end)
        positions.append(row * field.width + low)
        at, passed = field.sums[low + 1], 0
    return positions


def near_logarithm(value: int) -> int:
    dropped = max(0, value.bit_length() - 9)
    return (dropped << 16) + LOGARITHMS[value >> dropped]


def classes_of(counts: list[int]) -> list[int]:
    width = max(3, 4 * max(counts) // (2 * HIGHEST_CLASS + 1) ** 2 + 1)
    # The largest j with width * (2j - 1)**2 <= 4 * count.
    return [max(1, (isqrt(4 * count // width) + 1) // 2) if count else 0 for count in counts]


def cost(classes: list[int], context: bool) -> int:
    total = 0
    model = ClassModel(context)
    for line_class in classes:
        bits = iter([1] * line_class + [0])

        def count(seen: list[int], bits: Iterator[int] = bits) -> int:
            nonlocal total
            bit = next(bits)
            total += LOGARITHMS[2 * (sum(seen) + 1)] - LOGARITHMS[2 * seen[bit] + 1]
            return bit

        model.walk(count)
    return total


def choose(counts: list[int] | None) -> tuple[int, bool, list[int] | None]:
    """Group, context and classes."""
    best: tuple[int, int, bool, list[int] | None] = (0, 0, False, None)
    for group in (1, 4, 9, 16):
        if counts is None or len(counts) % group or len(counts) // group < 2:
            continue
        grouped = [sum(counts[start : start + group]) for start in range(0, len(counts), group)]
        classes = classes_of(grouped)
        weights = group * sum(line_class**2 for line_class in classes)
        saved = sum(2 * n * LOGARITHMS[j] for n, j in zip(grouped, classes, strict=True))
        saved -= sum(grouped) * (near_logarithm(weights) - near_logarithm(len(counts)))
        for context in (False, True):
            net = saved - cost(classes, context)
            if net > best[0]:
                best = (net, group, context, classes)
    return best[1:]


def lines_of(classes: list[int] | None, group: int, count: int) -> dict[int, int]:
    if classes is None:
        return {1: count}
    return {j: classes.count(j) * group for j in set(classes) - {0}}


def fit(rows: dict[int, int], columns: dict[int, int], kept: int) -> int | None:
    def fits(code: int) -> bool:
        scale = scale_of(code)
        if scale * max(rows) ** 2 * max(columns) ** 2 > STEEPEST:
            return False
        cells = ((m * n, scale * r**2 * c**2) for r, m in rows.items() for c, n in columns.items())
        return sum(count * ((TOTAL - survival(hazard)) >> 16) for count, hazard in cells) <= kept << 16

    if not fits(0):
        return None
    code = 0
    for bit in reversed(range(16)):
        if fits(code | 1 << bit):
            code |= 1 << bit
    return code


def model_payload(positions: list[int], rows: int, columns: int) -> bytes | None:
    most = 2**16 + 64 * len(positions)
    if not positions or rows > most:
        return None
    of_rows = [0] * rows if rows > 1 else None
    of_columns = [0] * columns if 1 < columns <= min(most, 2**20) else None
    for position in positions:
        row, column = divmod(position, columns)
        if of_rows is not None:
            of_rows[row] += 1
        if of_columns is not None:
            of_columns[column] += 1
    row_group, row_context, row_classes = choose(of_rows)
    column_group, column_context, column_classes = choose(of_columns)
    code = fit(lines_of(row_classes, row_group, rows), lines_of(column_classes, column_group, columns), len(positions))
    if code is None:
        return None
    coder = RangeWriter()
    put_classes(coder, row_classes or [], row_context)
    put_classes(coder, column_classes or [], column_context)
    encode_positions(coder, field_of(code, row_classes, row_group, column_classes, column_group, columns), positions)
    stream = coder.to_bytes()
    form = 1 + row_context + 2 * column_context
    head = bytes([form]) + code.to_bytes(2, "little") + bytes([row_group, column_group])
    return head + varint(len(stream)) + stream


def field_of(
    code: int, rows: list[int] | None, row_group: int, columns: list[int] | None, column_group: int, width: int
) -> Field:
    def each(classes: list[int] | None, group: int) -> list[int] | None:
        return None if classes is None else [line_class for line_class in classes for _ in range(group)]

    wide = each(columns, column_group)
    return Field(scale_of(code), each(rows, row_group), None if wide is None else wide[:width], width)


def may_be_even(kept: int, numel: int) -> bool:
    return kept > 0 and numel <= min(8 * kept, 2**31)


def even_payload(positions: list[int], numel: int) -> bytes:
    coder = RangeWriter()
    kept = set(positions)
    left = len(positions)
    for cell in range(numel):
        if left in (0, numel - cell):
            break
        share = left * TOTAL // (numel - cell)
        coder.put(*((0, share) if cell in kept else (share, TOTAL - share)))
        left -= cell in kept
    code = coder.to_bytes()
    return b"\5" + varint(len(code)) + code


def decode_even(coder: RangeReader, kept: int, numel: int) -> list[int]:
    positions: list[int] = []
    for cell in range(numel):
        left = kept - len(positions)
        here = left == numel - cell
        if 0 < left < numel - cell:
            value, share = coder.value(), left * TOTAL // (numel - cell)
            if value >= TOTAL:
                raise CorruptError("matrix: a value of no symbol")
            here = value < share
            coder.take(*((0, share) if here else (share, TOTAL - share)))
        if here:
            positions.append(cell)
    return positions


def encode(positions: list[int], rows: int, columns: int) -> bytes:
    kept, numel = len(positions), rows * columns
    payloads = [b"\0" + rice.encode(positions, numel)]
    if all(a < b for a, b in zip([-1, *positions], [*positions, numel], strict=True)):
        near = 32 * (numel - kept) < numel or numel <= (2**20 if 4 * kept >= numel else 2**16)
        if may_be_even(kept, numel) and near:
            payloads.append(even_payload(positions, numel))
        model = model_payload(positions, rows, columns)
        if model is not None:
            payloads.append(model)
    return min(payloads, key=len)


def decode(payload: bytes, kept: int, rows: int, columns: int) -> list[int]:
    reader = ByteReader(payload)
    form = reader.uint(1)
    if form == 0:
        return rice.decode(payload[1:], kept, rows * columns)
    if form > 5:
        raise CorruptError("matrix: a form that is not known")
    if form == 5:
        if not may_be_even(kept, rows * columns):
            raise CorruptError("matrix: too few positions for an even code")
        length = reader.varint()
        coder = RangeReader(reader.take(length))
        reader.end()
        return ended(coder, decode_even(coder, kept, rows * columns))
    code, row_group, column_group = reader.uint(2), reader.uint(1), reader.uint(1)
    length = reader.varint()
    stream = reader.take(length)
    reader.end()
    most = 2**16 + 64 * kept
    if rows > most or (column_group and columns > min(most, 2**20)):
        raise CorruptError("matrix: too many rows or columns for what was kept")
    if (row_group and row_group >= rows) or (column_group and column_group >= columns):
        raise CorruptError("matrix: a group that is no part")
    if kept > 352 * (length + 8):
        raise TruncatedError("matrix: so many positions are not in so few bytes")
    coder = RangeReader(stream)
    row_classes = take_classes(coder, -(-rows // row_group), form in (2, 4)) if row_group else None
    column_classes = take_classes(coder, -(-columns // column_group), form in (3, 4)) if column_group else None
    steepest = scale_of(code) * max(row_classes or [1]) ** 2 * max(column_classes or [1]) ** 2
    if not 0 < steepest <= STEEPEST:
        raise CorruptError("matrix: a scale that is not for these classes")
    field = field_of(code, row_classes, row_group, column_classes, column_group, columns)
    return ended(coder, decode_positions(coder, field, rows, kept))


def ended(coder: RangeReader, positions: list[int]) -> list[int]:
    if coder.read - len(coder.code) not in (6, 7):
        raise CorruptError("matrix: the code does not end with the positions")
    return positions
