"""Named allgathers of bytes over Horovod, with a time limit."""

from __future__ import annotations

import time
from typing import Any

import horovod.torch as hvd
import torch
from horovod.common.exceptions import HorovodInternalError

from hvd_deepreduce.errors import CollectiveTimeoutError, RemoteRankError
from hvd_deepreduce.torch.shutdown import shutdown

_YIELD_S = 5e-3
_SHORTEST_SLEEP_S = 20e-6
_LONGEST_SLEEP_S = 2e-4
_CAUSES = "another rank is slow, has stopped, or has another name= or process_set=, or no DeepReduce at all"


class HorovodStoppedError(RemoteRankError, HorovodInternalError):  # type: ignore[misc]
    """Horovod was shut down while a collective was under way; also of the class that `hvd.elastic.run` looks for."""


def start_gather(data: bytes, name: str, process_set: Any) -> int:
    """Starts an allgather and returns its handle. `data` is not empty: empty contributions have hung backends."""
    tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    handle: int = hvd.allgather_async(tensor, name=name, process_set=process_set)
    return handle


def finish_gather(handle: int, what: str, timeout_s: float) -> bytes:
    """The contributions of all ranks, in rank order; raises `CollectiveTimeoutError` when some don't come in time."""
    start = time.monotonic()
    sleep_s = _SHORTEST_SLEEP_S
    while not hvd.poll(handle):
        waited_s = time.monotonic() - start
        if waited_s < _YIELD_S:
            time.sleep(0)  # most gathers end at once, and waking up from a real sleep takes longer than they do
            continue
        if waited_s > timeout_s:
            shutdown.limit()
            raise CollectiveTimeoutError(late_message(what, timeout_s))
        time.sleep(sleep_s)
        sleep_s = min(2 * sleep_s, _LONGEST_SLEEP_S)
    try:
        gathered: bytes = hvd.synchronize(handle).numpy().tobytes()
    except HorovodInternalError as error:
        raise HorovodStoppedError(f"{what}: {_CAUSES}. Horovod says: {error}") from error
    return gathered


def late_message(what: str, timeout_s: float) -> str:
    """What to say of a gather that some rank did not take part in."""
    return f"{what}: not every rank took part within {timeout_s:g} s (timeout=): {_CAUSES}"
