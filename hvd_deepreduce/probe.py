"""The tiny tensor that Horovod reduces in a gradient's place: it tells what the reduction was.

Horovod divides what `compress` returned, not the gradient, and never says by what. A probe is [1, h(rank), error] with
h a fixed pseudo-random number; a linear reduction of factor f over n ranks makes it [f n, f sum(h), f sum(error)],
which tells f, and tells a linear reduction over these very ranks from any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Final

from hvd_deepreduce.errors import UnsupportedOperationError

PROBE_NUMEL: Final = 3
PROBE_BYTES: Final = 12
_TOLERANCE: Final = 1e-5
_NONLINEAR: Final[tuple[tuple[str, Callable[[Sequence[float]], float]], ...]] = (
    ("Min", min),
    ("Max", max),
    ("Product", prod),
)


def signature(rank: int) -> float:
    """h(rank), in [1, 2), with 16 bits so that float32 sums over thousands of ranks stay accurate.

    >>> signature(0) != signature(1)
    True
    """
    mixed = (rank + 1) * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    return 1 + (mixed >> 48) / 2**16


@dataclass
class Probe:
    """Probes of one process set, as seen by one of its ranks."""

    rank: int
    size: int
    _last: tuple[Sequence[float], float] | None = field(default=None, init=False, repr=False)

    def values(self, failed: bool = False) -> list[float]:
        """What this rank hands to the reduction."""
        return [1.0, signature(self.rank), float(failed)]

    @property
    def sums(self) -> list[float]:
        """What all ranks' probes add up to while none has failed."""
        return [float(self.size), sum(self._signatures), 0.0]

    @cached_property
    def _signatures(self) -> list[float]:
        return [signature(rank) for rank in range(self.size)]

    @cached_property
    def _mean(self) -> float:
        return sum(self._signatures) / self.size

    def factor(self, reduced: Sequence[float]) -> float:
        """By what the sum of all ranks' gradients is to be multiplied; the same number on every rank.

        Probes of one step are mostly equal, so the last answer is kept. Raises `UnsupportedOperationError` for anything
        but a linear reduction over the ranks of this process set.
        """
        if self._last is None or self._last[0] != reduced:
            self._last = reduced, self._factor(reduced)
        return self._last[1]

    def _factor(self, reduced: Sequence[float]) -> float:
        ones, signatures, _ = reduced
        if not (ones > 0 and abs(signatures / ones - self._mean) <= _TOLERANCE * self._mean):
            raise UnsupportedOperationError(self._explain(ones, signatures))
        # Reductions may round differently on different ranks, and the factor must not.
        for exact in (1.0 / self.size, 1.0):
            if abs(ones / self.size - exact) <= _TOLERANCE * exact:
                return exact
        raise UnsupportedOperationError(
            f"Horovod multiplied the sum over {self.size} ranks by {ones / self.size:.6g}; "
            f"allowed are 1 (op=Sum) and 1/{self.size} (op=Average)"
        )

    @staticmethod
    def failed(reduced: Sequence[float]) -> bool:
        """Whether any rank set its error flag; asked before `factor`."""
        return reduced[2] != 0

    def _explain(self, ones: float, signatures: float) -> str:
        for name, operation in _NONLINEAR:
            expected = operation(self._signatures)
            if abs(ones - 1) <= _TOLERANCE and abs(signatures - expected) <= _TOLERANCE * expected:
                return f"op={name} cannot be computed from sparse gradients; allowed are op=Average and op=Sum"
        return (
            f"Horovod's reduction gave {ones:.6g} and {signatures:.6g}, which is no sum or average over the "
            f"{self.size} ranks of DeepReduce's process set: use op=Average or op=Sum, and give DeepReduce the "
            "optimizer's process_set"
        )
