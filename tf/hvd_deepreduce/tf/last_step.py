"""Which buckets belong to the last step, as functions within a graph see it: they are told of no step's beginning."""

from __future__ import annotations


class LastStep:
    """All buckets of a step are encoded before any of them is decoded; callers hold a lock."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        self._over = False
        """Some were decoded: so the next to be encoded begins another step."""

    def encoding(self, number: int) -> None:
        """A bucket is about to be encoded."""
        if self._over:
            self._numbers.clear()
        self._over = False
        self._numbers.add(number)

    def decoding(self) -> None:
        """Some bucket is about to be decoded."""
        self._over = True

    def forget(self) -> None:
        """What was sent belongs to the last step no more."""
        self._numbers.clear()

    @property
    def numbers(self) -> list[int]:
        """Of its buckets."""
        return sorted(self._numbers)
