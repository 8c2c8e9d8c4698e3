"""Pieces of polynomials; FORMAT.md, 5.11."""

import math
import struct
from functools import partial

from reference import curves
from reference.bits import ByteReader, CorruptError, varint

MOST_OWN_SEGMENTS = 32


def betas(points: int, terms: int) -> list[float]:
    last, count = float(points - 1), float(points)
    return [
        float(k * k) * (count * count - k * k) / ((4.0 * (k * k) - 1) * (last * last)) if k else 0.0
        for k in range(terms)
    ]


def basis(points: int, terms: int, place: int) -> list[float]:
    """The polynomials at a point."""
    last = float(points - 1)
    x = (2.0 * place - last) / last if points > 1 else 0.0
    before, here = 0.0, 1.0
    row = []
    for beta in betas(points, terms):
        row.append(here)
        before, here = here, x * here - beta * before
    return row


def read(degree: int, reader: ByteReader, count: int, lowest: float) -> list[float]:
    pieces = reader.varint()
    if not 1 <= pieces <= count:
        raise CorruptError("fit_poly: the number of pieces")
    heights = []
    for piece in range(pieces):
        points, left = reader.varint() + 1, count - len(heights)
        if points > left or (piece == pieces - 1) != (points == left):
            raise CorruptError("fit_poly: the values of a piece")
        factors = [curves.coefficient(reader) for _ in range(min(degree + 1, points))]
        for place in range(points):
            height, *rest = (c * p for c, p in zip(factors, basis(points, len(factors), place), strict=True))
            for product in rest:
                height += product
            heights.append(height)
    return heights


def farthest(heights: list[float]) -> tuple[float, int]:
    """From the chord: the distance, and the first place that has it."""
    last = len(heights) - 1
    if last < 2:
        return 0.0, 0
    slope = (heights[last] - heights[0]) / last
    distances = [abs(heights[i] - (heights[0] + slope * i)) for i in range(1, last)]
    return max(distances), 1 + distances.index(max(distances))


def own_segments(heights: list[float], terms: int) -> int:
    bend = abs((heights[0] - heights[1]) - (heights[-2] - heights[-1]))
    pieces = math.ceil(2 * math.sqrt(bend * (len(heights) - 1)))
    return max(min(pieces, MOST_OWN_SEGMENTS, len(heights) // (32 * terms)), 1)


def cut(heights: list[float], segments: int, terms: int) -> list[list[float]]:
    pieces = [heights]
    while len(pieces) < segments:
        bends = [farthest(piece) if len(piece) > terms else (0.0, 0) for piece in pieces]
        most = max(range(len(pieces)), key=lambda i: bends[i][0])
        distance, place = bends[most]
        if distance == 0:
            break
        pieces[most : most + 1] = [pieces[most][:place], pieces[most][place:]]
    return pieces


def write(degree: int, segments: int, heights: list[float], lowest: float) -> bytes:
    pieces = cut(heights, segments or own_segments(heights, degree + 1), degree + 1)
    out = varint(len(pieces))
    for piece in pieces:
        terms = min(degree + 1, len(piece))
        out += varint(len(piece) - 1)
        products = [0.0] * terms
        for place, height in enumerate(piece):
            for k, p in enumerate(basis(len(piece), terms, place)):
                products[k] += height * p
        norm = float(len(piece))
        for k, beta in enumerate(betas(len(piece), terms)):
            norm = norm * beta if k else norm
            out += struct.pack("<f", products[k] / norm)
    return out


def encode(values: list[int], width: int, degree: int, segments: int, *, permuted: bool = True) -> bytes:
    return curves.encode(values, width, partial(write, degree, segments), permuted=permuted)


def decode(payload: bytes, kept: int, width: int, degree: int, *, permuted: bool = True) -> list[int]:
    return curves.decode(payload, kept, width, partial(read, degree), permuted=permuted)
