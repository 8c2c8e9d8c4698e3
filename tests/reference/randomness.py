"""Keys and draws; FORMAT.md, 6."""

import hashlib
from fractions import Fraction

ALL_RANKS = 2**64 - 1
_MODULUS = 2**64


def key(seed: int, step: int, rank: int, tensor: str) -> int:
    text = b"".join(number.to_bytes(8, "little") for number in (seed, step, rank)) + tensor.encode("utf-8")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def draw(key: int, index: int) -> int:
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) % _MODULUS
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _MODULUS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _MODULUS
    return z ^ (z >> 31)


def uniform(key: int, index: int) -> Fraction:
    return Fraction(draw(key, index) >> 11, 2**53)
