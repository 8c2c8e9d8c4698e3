"""Two exponentials; FORMAT.md, 5.12."""

import math
import struct
from itertools import combinations, pairwise

from reference import curves
from reference.bits import ByteReader, CorruptError

MOST_RATE, MOST_OWN_RATE, STEEPEST = 600.0, 100.0, 0.9999
SINGULAR = 1e-13
# (factor, rate) of each exponential.
Terms = list[tuple[float, float]]


def exp(z: float) -> float:
    log2e, high, low = (float.fromhex(x) for x in ("1.71547652b82fep+0", "1.62e42feep-1", "1.a39ef35793c76p-33"))
    octaves = round(z * log2e)  # ties to even
    rest = (z - octaves * high) - octaves * low
    total = 1.0
    for j in range(10, 0, -1):
        total = 1 + rest * total / j
    return total * 2.0**octaves


def height(terms: Terms, lowest: float, x: float) -> float:
    if not terms:
        return 1 + (lowest - 1) * x
    total = 0.0
    for factor, rate in terms:
        total += factor * exp(rate * x)
    return total


def abscissas(count: int) -> list[float]:
    return [i / (count - 1) for i in range(count)]


def read(reader: ByteReader, count: int, lowest: float) -> list[float]:
    number = reader.uint(1)
    if number > 2:
        raise CorruptError("fit_dexp: exponentials")
    terms = [(curves.coefficient(reader), curves.coefficient(reader)) for _ in range(number)]
    if any(abs(rate) > MOST_RATE for _, rate in terms):
        raise CorruptError("fit_dexp: a rate beyond the largest")
    return [height(terms, lowest, x) for x in abscissas(count)]


def solve(rows: list[list[float]], right: list[float]) -> list[float] | None:
    """Least squares by Cholesky's decomposition of the sums of products, scaled to a diagonal of ones."""
    size = len(rows[0])
    sums = [[0.0] * size for _ in range(size)]
    with_right = [0.0] * size
    for row, value in zip(rows, right, strict=True):
        for i in range(size):
            for j in range(i + 1):
                sums[i][j] += row[i] * row[j]
            with_right[i] += row[i] * value
    scale = [math.sqrt(sums[i][i]) for i in range(size)]
    if not all(s > 0 for s in scale):
        return None
    lower = [[0.0] * size for _ in range(size)]
    half = []
    for i in range(size):
        for j in range(i + 1):
            total = sums[i][j] / (scale[i] * scale[j])
            for k in range(j):
                total -= lower[i][k] * lower[j][k]
            if i == j and not total > SINGULAR:
                return None
            lower[i][j] = math.sqrt(total) if i == j else total / lower[j][j]
        value = with_right[i] / scale[i]
        for k in range(i):
            value -= lower[i][k] * half[k]
        half.append(value / lower[i][i])
    factors = [0.0] * size
    for i in reversed(range(size)):
        value = half[i]
        for k in range(i + 1, size):
            value -= lower[k][i] * factors[k]
        factors[i] = value / lower[i][i]
    return [factor / s for factor, s in zip(factors, scale, strict=True)]


def integrals(heights: list[float]) -> list[tuple[float, float]]:
    last = float(len(heights) - 1)
    once = twice = 0.0
    out = [(once, twice)]
    for before, here in pairwise(heights):
        more = once + (before + here) / (2 * last)
        twice += (once + more) / (2 * last)
        once = more
        out.append((once, twice))
    return out


def rate_of(rate: float, points: int) -> float:
    half = min(abs(rate) / (2 * (points - 1)), STEEPEST)
    ratio = (1 - half) / (1 + half)
    logarithm = -2 * half
    for _ in range(16):
        logarithm = (logarithm - 1) + ratio * exp(-logarithm)
    size = min(-logarithm * (points - 1), MOST_RATE)
    return curves.single(-size if rate < 0 else min(size, MOST_OWN_RATE))


def with_rates(heights: list[float], rates: list[float]) -> Terms | None:
    if rates != sorted(set(rates)):
        return None
    factors = solve([[exp(rate * x) for rate in rates] for x in abscissas(len(heights))], heights)
    if factors is None or not all(math.isfinite(curves.single(factor)) for factor in factors):
        return None
    return [(curves.single(factor), rate) for factor, rate in zip(factors, rates, strict=True)]


def one(heights: list[float]) -> Terms | None:
    found = solve([[once, 1.0] for once, _ in integrals(heights)], heights)
    return found and with_rates(heights, [rate_of(found[0], len(heights))])


def two(heights: list[float]) -> Terms | None:
    rows = zip(integrals(heights), abscissas(len(heights)), strict=True)
    found = solve([[twice, once, x, 1.0] for (once, twice), x in rows], heights)
    if found is None or found[1] * found[1] + 4 * found[0] < 0:
        return None
    root = math.sqrt(found[1] * found[1] + 4 * found[0])
    return with_rates(heights, [rate_of((found[1] + sign * root) / 2, len(heights)) for sign in (-1, 1)])


def grid(heights: list[float]) -> Terms | None:
    rates = [-MOST_RATE]
    for _ in range(16):
        rates.append(rates[-1] * 0.625)
    products = [[0.0] * 17 for _ in rates]
    right = [0.0] * 17
    start = 0
    while start < len(heights):
        end = min(len(heights), start + 1 + start // 64)
        middle = start + (end - start - 1) // 2
        powers = [exp(rate * (middle / (len(heights) - 1))) for rate in rates]
        for i, power in enumerate(powers):
            weighted = (end - start) * power
            for j in range(i + 1):
                products[i][j] += weighted * powers[j]
            right[i] += weighted * heights[middle]
        start = end
    most, pair = 0.0, None
    for i, j in combinations(range(17), 2):
        both = products[i][i] * products[j][j]
        determinant = both - products[j][i] * products[j][i]
        if determinant > 1e-9 * both:
            first = right[i] * products[j][j] - right[j] * products[j][i]
            second = right[j] * products[i][i] - right[i] * products[j][i]
            explained = (first * right[i] + second * right[j]) / determinant
            if explained > most:
                most, pair = explained, [curves.single(rates[i]), curves.single(rates[j])]
    return pair and with_rates(heights, pair)


def error(heights: list[float], lowest: float, terms: Terms) -> float:
    total = 0.0
    for value, x in zip(heights, abscissas(len(heights)), strict=True):
        off = max(min(height(terms, lowest, x), 1.0), lowest) - value
        total += off * off
    return total


def write(heights: list[float], lowest: float) -> bytes:
    best: Terms = []
    least = error(heights, lowest, best)
    for fit in (one, two, grid):
        terms = fit(heights) if least else None
        if terms and (off := error(heights, lowest, terms)) < least:
            best, least = terms, off
    return bytes([len(best)]) + b"".join(struct.pack("<2f", *term) for term in best)


def encode(values: list[int], width: int, *, permuted: bool = True) -> bytes:
    return curves.encode(values, width, write, permuted=permuted)


def decode(payload: bytes, kept: int, width: int, *, permuted: bool = True) -> list[int]:
    return curves.decode(payload, kept, width, read, permuted=permuted)
