"""Frames out, frames in, for one bucket. Knows no framework and starts no collective: wings carry the bytes.

A bucket is filled by one frame per member, sent as a bundle, received as one bundle per rank, and its frames are taken
out again; then the next step begins. What a wing asks in another order is a mistake of its caller and named as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec, Values
from hvd_deepreduce.wire.bundle import BundleHeader, require_padding, split_bundles
from hvd_deepreduce.wire.frame import EMPTY_FRAME, Frame, Special


class _Phase(Enum):
    FILLING = auto()
    SENT = auto()
    RECEIVED = auto()


class Bucket:
    """The tensors of one collective over the steps of training, as rank `rank` of `size` sees them."""

    def __init__(self, number: int, specs: Sequence[TensorSpec], pipeline: Pipeline, rank: int, size: int):
        self.number = number
        self.specs = list(specs)
        self.pipeline = pipeline
        self.rank = rank
        self.size = size
        self.step = 0
        self._phase = _Phase.FILLING
        self._frames: list[bytes | None] = [None] * len(specs)
        self._received: list[list[Frame | Special]] = []

    def draw(self, member: int, rank: int | None = None) -> Draw:
        """The randomness of a member's frame at this step."""
        seed = self.pipeline.settings.seed
        return Draw(seed, self.specs[member].name, self.step, self.rank if rank is None else rank)

    def open(self, member: int) -> None:
        """Makes room for a member's next frame; begins the next step when this one's frames were received."""
        if self._phase is _Phase.RECEIVED:
            self.step += 1
            self._phase = _Phase.FILLING
            self._frames = [None] * len(self.specs)
            self._received = []
        if self._phase is _Phase.SENT or self._frames[member] is not None:
            raise DeepReduceError(
                f"tensor {self.specs[member].name!r}: compressed twice before its gradient of step {self.step} was "
                "fetched; models that share parameters or names need a DeepReduce of their own each (name=...)"
            )

    def put(self, member: int, frame: bytes) -> None:
        """Takes a member's frame; call `open` before."""
        self._frames[member] = frame

    @property
    def full(self) -> bool:
        return None not in self._frames

    @property
    def waiting_to_be_sent(self) -> bool:
        """Whether a frame was put and not sent."""
        return self._phase is _Phase.FILLING and any(frame is not None for frame in self._frames)

    @property
    def sent(self) -> bool:
        return self._phase is _Phase.SENT

    @property
    def received(self) -> bool:
        return self._phase is _Phase.RECEIVED

    def bundle(self) -> bytes:
        """All frames of this step; members without one, which no rank compressed in this step, count as empty."""
        self._phase = _Phase.SENT
        return self._header().frames(b"".join(EMPTY_FRAME if frame is None else frame for frame in self._frames))

    def error_bundle(self, message: str) -> bytes:
        """Goes in the place of the frames when this rank can't go on."""
        self._phase = _Phase.SENT
        return self._header().error(message)

    def receive(self, gathered: bytes) -> None:
        """Takes the bundles of all ranks; raises what `split_bundles` and `read_frame` raise."""
        readers = split_bundles(gathered, self._header(), self.size)
        received = []
        for reader in readers:
            received.append([self.pipeline.read(reader, spec) for spec in self.specs])
            require_padding(reader)
        self._received = received
        self._phase = _Phase.RECEIVED

    def add_into(self, dense: Values, member: int, factor: float) -> bool:
        """Adds all ranks' gradients of a member, in rank order; False when one of them was not finite."""
        spec = self.specs[member]
        for rank, frames in enumerate(self._received):
            if not self.pipeline.add_into(dense, frames[member], spec, self.draw(member, rank), factor):
                return False
        return True

    def _header(self) -> BundleHeader:
        return BundleHeader(self.pipeline.settings.fingerprint, self.rank, self.number, self.step)
