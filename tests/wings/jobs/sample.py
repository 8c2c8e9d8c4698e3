"""Which combinations of stages to try: every two stages meet in at least one, as trying all would take hours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def pairwise(*kinds: Sequence[str]) -> list[tuple[str, ...]]:
    """Rows with one of each kind, in which every pair of two kinds occurs; greedy, and the same every time."""
    pairs = {
        ((i, a), (j, b))
        for (i, first), (j, second) in itertools.combinations(enumerate(kinds), 2)
        for a in first
        for b in second
    }
    rows = []
    while pairs:
        row: list[tuple[int, str]] = list(min(pairs))
        for place in (place for place in range(len(kinds)) if place not in dict(row)):
            new = {one: sum(pair in pairs for pair in _with(row, (place, one))) for one in kinds[place]}
            row.append((place, max(kinds[place], key=lambda one, new=new: new[one])))
        pairs -= set(itertools.combinations(sorted(row), 2))
        rows.append(tuple(one for _, one in sorted(row)))
    return rows


def _with(row: list[tuple[int, str]], new: tuple[int, str]) -> list[tuple[tuple[int, str], tuple[int, str]]]:
    return [(min(old, new), max(old, new)) for old in row]
