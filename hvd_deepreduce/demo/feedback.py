"""Implicit feedback, generated or read from MovieLens: which user took which item, and what to test a ranking with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

USERS: Final = 20_000
ITEMS: Final = 8_000
EXPONENT: Final = 1.3
TEST_NEGATIVES: Final = 99
BEST: Final = 10
_CATEGORIES = 50
_FAVOURITES = 3
_DRAWS = 64
_BY_TASTE = 0.7


class DataError(Exception):
    """A file of ratings is missing or malformed; the message says which and why."""


@dataclass(frozen=True)
class Feedback:
    """Who took what, as numbers from 0 up. One item of every user is held out, with items that the user never took."""

    name: str
    users: int
    items: int
    train_users: Numbers
    train_items: Numbers
    """As long as `train_users`; every pair is there once."""
    test_users: Numbers
    test_items: Numbers
    """Shape (test users, 1 + 99): the item held out first."""


class Batch(NamedTuple):
    """Pairs with label 1 where the user took the item: positives first, then the same users with items drawn."""

    users: Numbers
    items: Numbers
    labels: NDArray[np.float32]


def generate(users: int = USERS, items: int = ITEMS, exponent: float = EXPONENT, seed: int = 0) -> Feedback:
    """Items are drawn with probability 1 / rank ** exponent (Zipf), by most users mostly from categories they like."""
    generator = np.random.default_rng(seed)
    popularity = generator.permutation(np.arange(1, items + 1) ** -exponent)
    category = generator.integers(0, _CATEGORIES, items)
    takers = np.repeat(np.arange(users), _DRAWS)
    taken = _draw(generator, np.arange(items), popularity, len(takers))
    favourites = generator.integers(0, _CATEGORIES, (users, _FAVOURITES))
    liked = np.where(
        generator.random(len(takers)) < _BY_TASTE,
        favourites[takers, generator.integers(0, _FAVOURITES, len(takers))],
        -1,
    )
    for one in range(_CATEGORIES):
        of_category, wanted = np.flatnonzero(category == one), np.flatnonzero(liked == one)
        if len(of_category):
            taken[wanted] = _draw(generator, of_category, popularity[of_category], len(wanted))
    pairs = np.unique(takers * items + taken)
    # Without times, the one to hold out is any.
    pairs = generator.permutation(pairs)
    name = f"generated: {users:,} users, {items:,} items, Zipf exponent {exponent:g}, seed {seed}"
    return _split(name, users, items, pairs // items, pairs % items, generator)


def load(path: Path, seed: int = 0) -> Feedback:
    """Reads MovieLens's `u.data`, `ratings.dat` or `ratings.csv`: every rating counts, and the latest is held out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    separator = next((one for one in ("::", "\t", ",") if lines and one in lines[0]), None)
    rows = lines[1:] if lines and lines[0].startswith("userId") else lines
    try:
        fields = [line.split(separator) for line in rows if line]
        table = np.array([(int(user), int(item), int(time)) for user, item, _, time in fields], np.int64)
    except ValueError as error:
        raise DataError(f"{path}: lines of user, item, rating and time are needed ({error})") from error
    if separator is None or not len(table):
        raise DataError(f"{path}: no ratings separated by tabs, commas or ::")
    table = table[np.argsort(table[:, 2], kind="stable")]
    user_names, of_user = np.unique(table[:, 0], return_inverse=True)
    item_names, of_item = np.unique(table[:, 1], return_inverse=True)
    users, items = len(user_names), len(item_names)
    if items <= TEST_NEGATIVES:
        raise DataError(f"{path}: {items} items; more than {TEST_NEGATIVES} are needed for the test")
    pairs = of_user.reshape(-1) * items + of_item.reshape(-1)
    # The first of equal pairs, read backwards: the latest.
    latest = len(pairs) - 1 - np.sort(np.unique(pairs[::-1], return_index=True)[1])[::-1]
    pairs = pairs[latest]
    return _split(str(path), users, items, pairs // items, pairs % items, np.random.default_rng(seed))


def batches(feedback: Feedback, positives: int, negatives: int, rank: int, size: int, seed: int) -> Iterator[Batch]:
    """Endless batches of one rank: its share of every epoch's pairs, each with `negatives` items drawn uniformly."""
    draws = np.random.default_rng([seed, rank])
    share = len(feedback.train_users) // size
    if share < positives:
        raise DataError(f"a batch of {positives:,} is more than the {share:,} pairs of a rank")
    for epoch in count():
        order = np.random.default_rng([seed, size, epoch]).permutation(len(feedback.train_users))[rank::size]
        for start in range(0, share - positives + 1, positives):
            chosen = order[start : start + positives]
            users = np.tile(feedback.train_users[chosen], 1 + negatives)
            drawn = draws.integers(0, feedback.items, positives * negatives)
            items = np.concatenate([feedback.train_items[chosen], drawn])
            labels = np.zeros(len(users), np.float32)
            labels[:positives] = 1
            yield Batch(users, items, labels)


def hits(scores: NDArray[np.floating[Any]]) -> int:
    """How many of these users have the item held out among the best 10; scores are those of `test_items`."""
    return int(((scores[:, 1:] >= scores[:, :1]).sum(1) < BEST).sum())


def _draw(generator: np.random.Generator, of: Numbers, weights: NDArray[np.float64], number: int) -> Numbers:
    edges = np.cumsum(weights)
    places = np.searchsorted(edges, generator.random(number) * edges[-1], side="right")
    drawn: Numbers = of[places.clip(max=len(of) - 1)]
    return drawn


def _split(
    name: str, users: int, items: int, takers: Numbers, taken: Numbers, generator: np.random.Generator
) -> Feedback:
    """Holds out the last item of every user with two or more."""
    last = np.full(users, -1)
    last[takers] = np.arange(len(takers))
    numbers = np.bincount(takers, minlength=users)
    test_users = np.flatnonzero((numbers >= 2) & (items - numbers > TEST_NEGATIVES))
    kept = np.ones(len(takers), bool)
    kept[last[test_users]] = False
    known = np.unique(takers * items + taken)
    others = _never_taken(generator, test_users, items, known)
    test_items = np.concatenate([taken[last[test_users]][:, None], others], axis=1)
    return Feedback(name, users, items, takers[kept], taken[kept], test_users, test_items)


def _never_taken(generator: np.random.Generator, users: Numbers, items: int, known: Numbers) -> Numbers:
    """99 items for each user, drawn until none is one that the user took."""
    drawn = generator.integers(0, items, (len(users), TEST_NEGATIVES))
    while True:
        pairs = users[:, None] * items + drawn
        wrong = known[np.searchsorted(known, pairs).clip(max=len(known) - 1)] == pairs
        if not wrong.any():
            return drawn
        drawn[wrong] = generator.integers(0, items, int(wrong.sum()))
