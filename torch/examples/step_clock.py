"""Where the time of a training step goes: computing, coding, communicating."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from horovod.torch.compression import Compressor

from hvd_deepreduce.demo.job_result import Times


class StepClock:
    """Runs from its making to `stop`; the caller marks what happens in `optimizer.synchronize()`.

    Gradients are encoded on a thread beside the backward pass, mostly, and decoded within `synchronize`. Communication
    is what `synchronize` takes but for decoding, waiting for the slowest rank included; computing is all the rest. So
    the three add up to more than a step by what is encoded beside the others. Where cores are scarce, what Horovod's
    threads do during the backward pass shows as computing.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._synchronize_s = 0.0

    @contextmanager
    def synchronizing(self) -> Iterator[None]:
        """Around `optimizer.synchronize()`."""
        start = time.perf_counter()
        yield
        self._synchronize_s += time.perf_counter() - start

    def stop(self, steps: int, compression: Any) -> Times:
        """Means per step on this rank. `compression` has `stats()` like DeepReduce's, or costs nothing."""
        total_ms = 1e3 * (time.perf_counter() - self._start) / steps
        coding = compression.stats()["total"] if hasattr(compression, "stats") else {"encode_ms": 0.0, "decode_ms": 0.0}
        encode_ms, decode_ms = coding["encode_ms"] / steps, coding["decode_ms"] / steps
        synchronize_ms = 1e3 * self._synchronize_s / steps
        return Times(
            step_ms=total_ms,
            compute_ms=total_ms - synchronize_ms,
            coding_ms=encode_ms + decode_ms,
            communication_ms=synchronize_ms - decode_ms,
        )


class TimedCast:
    """One of Horovod's own compressors, with the time it takes told as DeepReduce tells its own."""

    def __init__(self, compressor: type[Compressor]) -> None:
        self._compressor = compressor
        self._total = {"encode_ms": 0.0, "decode_ms": 0.0}

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """See `horovod.torch.compression.Compressor`."""
        start = time.perf_counter()
        compressed: tuple[torch.Tensor, Any] = self._compressor.compress(tensor)
        self._total["encode_ms"] += 1e3 * (time.perf_counter() - start)
        return compressed

    def decompress(self, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """See `horovod.torch.compression.Compressor`."""
        start = time.perf_counter()
        decompressed: torch.Tensor = self._compressor.decompress(tensor, ctx)
        self._total["decode_ms"] += 1e3 * (time.perf_counter() - start)
        return decompressed

    def stats(self) -> dict[str, Any]:
        """The times, under the names they have in `DeepReduce.stats()`."""
        return {"total": self._total}
