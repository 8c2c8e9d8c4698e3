"""Counter-based randomness: every draw is a function of seed, tensor, step, rank and place (FORMAT.md, 6).

No generator of the user's is ever touched, and a draw does not depend on how many were made before it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

_ALL_RANKS = 2**64 - 1


class Draw(NamedTuple):
    """Where in training a stochastic stage stands; kernels take one of its keys."""

    seed: int = 0
    tensor: str = ""
    step: int = 0
    rank: int = 0

    def key(self) -> int:
        """A 64-bit key of this rank's own."""
        return self._key(self.rank)

    def shared_key(self) -> int:
        """A 64-bit key that is the same on all ranks."""
        return self._key(_ALL_RANKS)

    def _key(self, rank: int) -> int:
        text = struct.pack("<QQQ", self.seed, self.step, rank) + self.tensor.encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
