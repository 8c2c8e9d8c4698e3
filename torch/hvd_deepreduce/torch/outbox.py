"""What leaves a rank: gradients are coded and their gathers started, while the backward pass goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.exchange import Bucket, Jobs
from hvd_deepreduce.failures import failure_of, without_rank
from hvd_deepreduce.timeline import Timeline, span
from hvd_deepreduce.torch.collectives import start_gather
from hvd_deepreduce.torch.watch import watch

_T = TypeVar("_T")


class Sent(NamedTuple):
    """A gather under way."""

    handle: int
    length: int
    """Bytes of this rank's bundle."""


class Outbox:
    """Holds what is on its way to the other ranks, and why this rank can't go on, if so.

    All is done in the order asked for: on the caller's thread, or on one beside it after `overlap`.
    """

    def __init__(self, name: str, process_set: Any, *, timeout_s: float, timeline: Timeline | None):
        self.failure: DeepReduceError | None = None
        self._name = name
        self._process_set = process_set
        self._timeout_s = timeout_s
        self._timeline = timeline
        self._coder: Executor = _Caller()
        self._last: Future[Any] | None = None
        self._sending: dict[int, Future[Sent]] = {}

    def overlap(self) -> None:
        """From now on codes on a thread of its own."""
        self._coder = ThreadPoolExecutor(1, f"{self._name} coding")

    @property
    def overlaps(self) -> bool:
        """Whether it does."""
        return not isinstance(self._coder, _Caller)

    def code(self, bucket: Bucket) -> None:
        """Codes what was put into a bucket so far."""
        self._last = self._coder.submit(self._encode, bucket, bucket.take())

    def send(self, bucket: Bucket) -> None:
        """Codes the rest of a bucket and starts its gather."""
        self._last = self._sending[bucket.number] = self._coder.submit(self._send, bucket, bucket.close())

    def finish(self, number: int) -> Sent:
        """Waits until a bucket's bundle is under way."""
        sent = self._sending.pop(number).result()
        watch.end(sent.handle)
        return sent

    def abandon(self) -> None:
        """Waits until all that was asked for is under way, and leaves it to its fate."""
        if self._last is not None:
            self._last.exception()
        for future in self._sending.values():
            if future.exception() is None:
                watch.end(future.result().handle)

    @property
    def numbers(self) -> list[int]:
        """The buckets that were sent and not finished."""
        return sorted(self._sending)

    def fail(self, tensor: str | None, error: Exception) -> None:
        """Takes note that this rank can't go on: in place of its bundles it sends what went wrong from now on."""
        if self.failure is None:
            self.failure = failure_of(error, self._process_set.rank(), tensor)

    def _encode(self, bucket: Bucket, jobs: Jobs) -> None:
        if self.failure is not None:
            return
        try:
            with span(self._timeline, "encode", bucket=bucket.number, tensors=len(jobs)):
                bucket.encode(jobs)
        except Exception as error:  # the wing's edge: an error on one rank must reach all
            self.fail(bucket.encoding, error)

    def _send(self, bucket: Bucket, jobs: Jobs) -> Sent:
        self._encode(bucket, jobs)
        bundle = b""
        if self.failure is None:
            try:
                bundle = bucket.bundle()
            except Exception as error:  # as above
                self.fail(None, error)
        if self.failure is not None:
            bundle = bucket.error_bundle(without_rank(self.failure))
        handle = start_gather(bundle, f"{self._name}.bucket.{bucket.number}", self._process_set)
        watch.begin(handle, f"DeepReduce {self._name!r}, bucket {bucket.number} of step {bucket.step}", self._timeout_s)
        return Sent(handle, len(bundle))


class _Caller(Executor):
    """Does everything at once, on the caller's thread."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
