"""CUDA streams for the coding thread: its work on a device runs beside the backward pass, after what it depends on.

Nothing here waits for a whole device. On other devices than CUDA's there are no streams, and nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch


class Marker:
    """A point in the caller's stream after which a tensor is complete."""

    def __init__(self, tensor: torch.Tensor):
        self._tensor = tensor
        self._event = torch.cuda.Event() if tensor.is_cuda else None  # type: ignore[no-untyped-call]
        if self._event is not None:
            self._event.record(torch.cuda.current_stream(tensor.device))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Queues what the body does on the tensor's device behind this point, in the coding stream."""
        if self._event is None:
            yield
            return
        stream = _coding_stream(self._tensor.device)
        stream.wait_event(self._event)
        with torch.cuda.stream(stream):
            yield
        self._tensor.record_stream(stream)


def join(device: torch.device) -> None:
    """Lets the caller's stream wait for all that was queued in the coding stream of a device."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).wait_stream(_coding_stream(device))


@cache
def _coding_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
