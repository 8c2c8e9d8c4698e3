"""Gradients out, gradients in, for one bucket. Knows no framework and starts no collective: wings carry the bytes.

A bucket is given one gradient per member, which are encoded all at once or as they come, sent as a bundle, received as
one bundle per rank, and decoded; then the next step begins. What a wing asks in another order is a mistake of its
caller and named as such. `encode`, `bundle` and `error_bundle` may run on another thread than the rest, one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

from hvd_deepreduce.batch import Batch, DecodedGradient, EncodeJob, Gradient
from hvd_deepreduce.errors import CorruptPayloadError, DeepReduceError
from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Agreed
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.bundle import BundleHeader, split_bundles
from hvd_deepreduce.wire.frame import EMPTY_FRAME

# MPI counts the bytes of a gather in a signed 32-bit integer.
_LARGEST_GATHER = 2**31


Jobs = dict[int, EncodeJob]


class _Phase(Enum):
    FILLING = auto()
    SENT = auto()
    DECODED = auto()


class Bucket:
    """The tensors of one collective over the steps of training, as rank `rank` of `size` sees them."""

    def __init__(self, number: int, specs: Sequence[TensorSpec], settings: Agreed, batch: Batch, rank: int, size: int):
        self.number = number
        self.specs = list(specs)
        self.rank = rank
        self.size = size
        self.step = 0
        self.encoded: dict[int, EncodedGradient] = {}
        """What was sent in this step, by member."""
        self.encoding: str | None = None
        """The tensor that `encode` is at: the one to blame for what it raises."""
        self._settings = settings
        self._batch = batch
        self._phase = _Phase.FILLING
        self._previous_length = 0
        self._given: set[int] = set()
        self._waiting: Jobs = {}
        self.numel_waiting = 0
        """Elements of the gradients that `take` would give."""

    def put(self, member: int, gradient: Gradient, slots: Mapping[str, Any]) -> None:
        """Takes a member's gradient, flat, in its value dtype; it must stay as it is until it is encoded.

        Begins the next step when this one was decoded.
        """
        self.require_new(member)
        if self._phase is _Phase.DECODED:
            self.step += 1
            self._phase = _Phase.FILLING
            self.encoded = {}
        spec = self.specs[member]
        self._given.add(member)
        self._waiting[member] = EncodeJob(gradient, spec, slots, self._draw(self.rank, member))
        self.numel_waiting += spec.numel

    def require_new(self, member: int) -> None:
        """Raises for a member whose gradient is under way."""
        if self._phase is _Phase.SENT or member in self._given:
            raise DeepReduceError(
                f"tensor {self.specs[member].name!r}: compressed twice before its gradient of step {self.step} was "
                "fetched; models that share parameters or names need a DeepReduce of their own each (name=...)"
            )

    def take(self) -> Jobs:
        """The gradients put since the last time, for `encode`, which may run on another thread meanwhile."""
        jobs, self._waiting = self._waiting, {}
        self.numel_waiting = 0
        return jobs

    def close(self) -> Jobs:
        """The same, for the last time in this step."""
        self._phase = _Phase.SENT
        return self.take()

    @property
    def full(self) -> bool:
        return len(self._given) == len(self.specs)

    @property
    def sent(self) -> bool:
        return self._phase is _Phase.SENT

    @property
    def decoded(self) -> bool:
        return self._phase is _Phase.DECODED

    @property
    def steps_done(self) -> int:
        """How many steps were decoded."""
        return self.step + (self._phase is _Phase.DECODED)

    def encode(self, jobs: Jobs) -> None:
        """Encodes gradients and brings their slots up to date; the frames wait for `bundle`."""
        members = sorted(jobs)
        frames = self._batch.encode([jobs[member] for member in members])
        for member in members:
            self.encoding = self.specs[member].name
            self.encoded[member] = next(frames)
        self.encoding = None

    def bundle(self) -> bytes:
        """All frames of this step; members that no rank compressed in it count as empty."""
        frames = (
            self.encoded[member].frame if member in self.encoded else EMPTY_FRAME for member in range(len(self.specs))
        )
        bundle = self._header().frames(b"".join(frames), self._previous_length)
        self._previous_length = len(bundle)
        if len(bundle) * self.size >= _LARGEST_GATHER:
            raise DeepReduceError(
                f"bucket {self.number}: {self.size} bundles of about {len(bundle)} bytes; a gather holds less than "
                f"{_LARGEST_GATHER}: choose a lower density or smaller bucket_bytes"
            )
        return bundle

    def error_bundle(self, message: str) -> bytes:
        """Goes in the place of the frames when this rank can't go on."""
        self.encoded = {}
        return self._header().error(message)

    def take_back(self) -> list[tuple[int, bytes, Draw]]:
        """What this rank sent in the step just decoded, by member, for `Pipeline.restore`; once."""
        frames = self.sent_frames()
        self.encoded = {}
        return frames

    def sent_frames(self) -> list[tuple[int, bytes, Draw]]:
        """What this rank sent in the last step, by member, as long as nobody took it back."""
        return [(member, one.frame, self._draw(self.rank, member)) for member, one in self.encoded.items()]

    def resume(self, steps_done: int) -> None:
        """Makes the next step the one after so many."""
        self.step = steps_done
        self._phase = _Phase.FILLING
        self.encoded = {}

    def decode(self, gathered: bytes, outputs: Sequence[Gradient | None], factor: float) -> list[DecodedGradient]:
        """Overwrites each member's output from all ranks' bundles; raises what `split_bundles` and `Batch` raise."""
        try:
            readers = split_bundles(gathered, self._header(), self.size)
        except CorruptPayloadError as error:
            more = f" and {len(self.specs) - 1} more" if len(self.specs) > 1 else ""
            raise type(error)(f"{error} (tensor {self.specs[0].name!r}{more})") from error
        decoded = self._batch.decode(readers, self.specs, outputs, self._draw, factor)
        self._phase = _Phase.DECODED
        self._given.clear()
        return decoded

    def _draw(self, rank: int, member: int) -> Draw:
        return Draw(self._settings.seed, self.specs[member].name, self.step, rank)

    def _header(self) -> BundleHeader:
        return BundleHeader(self._settings.fingerprint, self.rank, self.number, self.step)
