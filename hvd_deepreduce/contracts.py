"""What each kind of stage promises. Traits are declared on the class and proved by `tests/conformance/`.

Every stage is a frozen dataclass whose fields are its settings, refused in `__post_init__` when they are not allowed.
Stages have no mutable state: what lasts from step to step is in the arrays a memory's slots name, and what is random
comes from a `Draw`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Order, Positions, SparseGradient, Support, Values


class Stage(ABC):
    """What all four kinds have in common."""

    name: ClassVar[str]
    """As users write it."""
    package: ClassVar[str | None] = None
    """What has to be installed besides, if anything; `Settings` refuses the stage where it is not."""


class Memory(Stage):
    """Owns what is not sent.

    The wing allocates one zeroed array of the value dtype and numel elements per tensor for each name in `slots`, and
    those that the sparsifier asks for; the stages compute on them in place.
    """

    slots: ClassVar[tuple[str, ...]]

    @abstractmethod
    def compensate(self, gradient: Values, slots: Mapping[str, Values]) -> Values | None:
        """What the sparsifier chooses from: one-dimensional, `gradient`'s dtype.

        May be `gradient` itself or one of the slots. Returns None, with every slot as it was, when the gradient or what
        it is compensated to holds a NaN or an infinity.
        """

    @abstractmethod
    def update(self, compensated: Values, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        """Takes note of what the receivers decode, so that slots hold the rest: compensated = sent + kept back."""

    @abstractmethod
    def restore(self, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        """Takes back what `update` counted as sent, when the step it was sent in came to nothing."""


class Sparsifier(Stage):
    """Chooses which elements to keep.

    One that remembers something from step to step does so in slots, as memories do, but of sizes of its own.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    """Slots of the memory that it looks at; settings without such a memory are refused."""
    shared: ClassVar[bool] = False
    """All ranks choose the same support, which `shared_support` tells the receivers: a frame then carries none."""

    def shared_support(self, view: MatrixView, draw: Draw) -> Support:
        """What `sparsify` returns for this draw on any rank, whatever the gradient."""
        raise NotImplementedError

    def slot_sizes(self, numel: int) -> Mapping[str, int]:
        """Elements of each slot that a tensor of `numel` elements needs; mostly there are none."""
        return {}

    def begin_step(self, tensors: Sequence[tuple[int, Mapping[str, Values]]]) -> None:
        """Called with numel and slots of all tensors of a compressor before the first gradient of a step."""

    @abstractmethod
    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        """Positions to keep, possibly none; `compensated` is finite, one-dimensional, and left as it is."""


class OrderedIndexCodec(ABC):
    """The form of an index codec that ships positions in any order, so that values may be sorted (FORMAT.md, 4.2).

    An order is a permutation of 0 ... kept-1: value i of the payload belongs to `support.positions[order[i]]`.
    """

    wire_id: ClassVar[int]

    @abstractmethod
    def encode(self, support: Support, order: Order) -> bytes:
        """The positions in that order."""

    @abstractmethod
    def decode(self, payload: bytes, kept: int, view: MatrixView) -> tuple[Support, Order]:
        """The support and the order it was sent in. Raises `CorruptPayloadError`."""


class OrderedValueCodec(ABC):
    """The form of a value codec that reorders values and leaves it to the index codec to say how."""

    wire_id: ClassVar[int]

    @abstractmethod
    def encode(self, values: Values, draw: Draw) -> tuple[bytes, Order]:
        """The payload, and the order in which it holds the values."""

    @abstractmethod
    def decode(self, payload: bytes, kept: int, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        """The values in the order of the payload. Raises `CorruptPayloadError`."""


class IndexCodec(Stage):
    """Support <-> bytes."""

    @property
    @abstractmethod
    def wire_id(self) -> int:
        """Of the bytes that `encode` writes. A class variable, but where settings choose it."""

    wire_ids: ClassVar[tuple[int, ...]] = ()
    """All that settings choose from, where they do."""
    exact: ClassVar[bool]
    """Decoding returns the very support that was encoded."""
    deterministic: ClassVar[bool] = True
    """Equal support and settings give equal bytes, whatever the draw."""
    portable: ClassVar[bool] = True
    """Equal support, settings and draw give equal bytes on every machine; else only what they decode to is equal."""
    ordered: ClassVar[OrderedIndexCodec | None] = None
    """Its form that ships positions in the order of their values, where it has one."""

    @abstractmethod
    def encode(self, support: Support, draw: Draw) -> bytes:
        """The index payload. Raises `InvalidSettingError` for positions that are not a support."""

    @abstractmethod
    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        """The support the receivers work with; lossy codecs may return more or other positions than were encoded.

        Raises `CorruptPayloadError`; never reserves memory before kept and the payload's length have been held against
        `view.numel` and each other.
        """

    @abstractmethod
    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        """Upper bound of the payload in bytes."""

    def value_positions(self, encoded: Support, decoded: Support) -> Positions:
        """Where the values are read that go with `decoded`, one for each of its positions.

        An exact codec reads where it decodes. A Bloom filter does too, so that false positives carry their true values;
        only a codec that assigns the values of `encoded` to `decoded` in turn says otherwise.
        """
        return decoded.positions


class ValueCodec(Stage):
    """Values <-> bytes."""

    wire_id: ClassVar[int]
    exact: ClassVar[bool]
    """Decoding returns the very bits that were encoded."""
    deterministic: ClassVar[bool] = True
    """Equal values and settings give equal bytes, whatever the draw."""
    portable: ClassVar[bool] = True
    """Equal values, settings and draws give equal bytes on every machine; else only what they decode to is equal."""
    order_preserving: ClassVar[bool] = True
    """The payload holds values in the order of positions. A codec that sorts ships its permutation in its payload."""
    ordered: ClassVar[OrderedValueCodec | None] = None
    """Its form without a permutation, if any; the pipeline takes it when the index codec has an ordered form too. A
    class variable, but where settings shape it."""

    @abstractmethod
    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        """The value payload of `values`, one for each position of `support`, in their order."""

    @abstractmethod
    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        """One value of `dtype` for each position of `support`; a new array. Raises `CorruptPayloadError`."""

    @abstractmethod
    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        """Upper bound of the payload in bytes; `itemsize` is that of the value dtype."""

    @abstractmethod
    def error_bound(self, values: Values) -> Values:
        """For each value, how far the decoded one may lie from it; 0 where exact, infinite where it may be anything."""
