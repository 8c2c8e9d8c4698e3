"""A Bloom filter of the positions; FORMAT.md, 4.9, and with `engine="pybloom"` 4.12."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from hvd_deepreduce import _native, pybloom
from hvd_deepreduce.checks import quoted, require_number, varint_size
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Positions, Support

_ALL, _FIRST, _MIDDLE, _LAST, _RANDOM, _CONFLICTS = range(6)
_POLICIES: Final = {
    "naive": _FIRST,
    "p0": _ALL,
    "p1": _RANDOM,
    "leftmost": _FIRST,
    "middle": _MIDDLE,
    "rightmost": _LAST,
    "p2": _CONFLICTS,
}
_WIRE_IDS: Final = {"native": 9, "pybloom": 12}
_LOWEST_FPR, _HIGHEST_FPR = 1e-9, 0.6
_LEAST_BYTES = 8
_KEY_BYTES = 8


@dataclass(frozen=True)
class Bloom(IndexCodec):
    """DeepReduce's index codec (section 4): a filter that reports the kept positions, and others at the rate `fpr`.

    The receiver tests all positions. `policy` says with which of those reported, the members, it goes on, and so where
    values are read: "p0" takes them all. The others take as many as were kept: "p1" at random, "leftmost", "middle" and
    "rightmost" neighbours in order, "p2" those that are likely to have been kept (Algorithm 1). "naive" takes the
    leftmost but gives them the values of the kept positions in turn, so that all are shifted after the first false
    positive; it is there to compare with. What is missed or wrong ends in the residual, up to the largest finite
    value.

    A filter takes 1.44 log2(1/fpr) bits per kept element. `engine="pybloom"` makes and tests it with pybloom-live: some
    microseconds for each position, for comparison.
    """

    policy: str = "p0"
    fpr: float = 0.001
    engine: str = "native"

    name: ClassVar[str] = "bloom"
    wire_ids: ClassVar[tuple[int, ...]] = tuple(_WIRE_IDS.values())
    exact: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for setting, value, allowed in (("policy", self.policy, _POLICIES), ("engine", self.engine, _WIRE_IDS)):
            if value not in tuple(allowed):
                raise InvalidSettingError(
                    f"bloom: {setting}={quoted(value)}; allowed are {', '.join(map(repr, allowed))}"
                )
        require_number("bloom", "fpr", self.fpr, minimum=_LOWEST_FPR, maximum=_HIGHEST_FPR)
        if self.engine == "pybloom" and importlib.util.find_spec("pybloom_live") is None:
            raise InvalidSettingError('bloom: engine="pybloom" needs pybloom-live: pip install hvd-deepreduce[bloom]')

    @property
    def wire_id(self) -> int:
        return _WIRE_IDS[self.engine]

    @property
    def hashes(self) -> int:
        """The least integer that is not below -log2(fpr)."""
        return 1 - math.frexp(self.fpr)[1]

    def size(self, kept: int) -> int:
        """Bytes of a filter that reports others at no more than the rate `fpr` (native engine).

        DeepReduce's m = -kept ln(fpr) / ln(2)^2 bits hold for a number of hashes that need not be an integer; this many
        hold for the one that is: (1 - e^(-hashes kept / m))^hashes = fpr.
        """
        bits = -self.hashes * kept / math.log1p(-(self.fpr ** (1 / self.hashes)))
        return max(_LEAST_BYTES, math.ceil(bits / 8))

    def encode(self, support: Support, draw: Draw) -> bytes:
        numel, hashes = support.view.numel, self.hashes
        _native.check_positions(support.positions, numel)
        if support.kept == 0:
            return b""
        if self.engine == "native":
            size = self.size(support.kept)
            bits = _native.bloom_insert(support.positions, numel, hashes, size)
        else:
            hashes, size, bits = pybloom.insert(support.positions, self.fpr)
        return _native.bloom_head(_POLICIES[self.policy], hashes, size, draw.key()) + bits

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        if kept == 0 and not payload:
            return Support(np.empty(0, view.position_dtype), view)
        sliced = self.engine == "pybloom"
        policy, hashes, size, key, bits = _native.bloom_read(payload, kept, view.numel, sliced)
        if sliced:
            members = pybloom.members(bits, hashes, size, view)
        else:
            members = _native.bloom_members(bits, hashes, view.numel)
        extra = len(members) - kept
        if extra < 0:
            raise CorruptPayloadError(f"bloom: the filter reports {len(members)} positions; kept is {kept}")
        if policy == _ALL or extra == 0:
            return Support(members, view)
        if policy == _CONFLICTS:
            places = (
                pybloom.places(members, hashes, size)
                if sliced
                else _native.bloom_places(members, view.numel, hashes, size)
            )
            return Support(members[_native.bloom_conflicts(places, hashes, 8 * len(bits), kept, key)], view)
        if policy == _RANDOM:
            return Support(members[_native.random_support(key, len(members), kept)], view)
        skipped = {_FIRST: 0, _MIDDLE: extra // 2, _LAST: extra}[policy]
        return Support(members[skipped : skipped + kept].copy(), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        if kept == 0:
            return 0
        # The slices of the other engine are rounded up each.
        size = self.size(kept) + self.hashes
        return 1 + varint_size(8 * size) + _KEY_BYTES + size

    def value_positions(self, encoded: Support, decoded: Support) -> Positions:
        return encoded.positions if self.policy == "naive" else decoded.positions
