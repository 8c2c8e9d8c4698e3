"""A time limit where Horovod has none: its own `synchronize` waits for ever for a rank that does not come.

Compressors are asked for a gradient only after that wait, so they can't end it themselves. What does is a thread that
shuts Horovod down when a gather stays incomplete for too long; the waiting call then raises `HorovodInternalError`.
Where Horovod itself hangs, as over MPI when a process is stopped, the process is ended.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import NamedTuple

import horovod.torch as hvd
from horovod.torch import mpi_ops

from hvd_deepreduce.torch.collectives import late_message

_log = logging.getLogger("hvd_deepreduce")
EXIT_CODE = 75  # EX_TEMPFAIL: started anew, the job may succeed
_GRACE_S = 10.0


class _Watched(NamedTuple):
    what: str
    timeout_s: float
    deadline: float


_watched: dict[int, _Watched] = {}
_changed = threading.Condition()
_thread: threading.Thread | None = None


def begin(handle: int, what: str, timeout_s: float) -> None:
    """Watches a gather until `end`."""
    global _thread
    with _changed:
        deadline = time.monotonic() + timeout_s
        earliest = min((one.deadline for one in _watched.values()), default=None)
        _watched[handle] = _Watched(what, timeout_s, deadline)
        if _thread is None:
            _thread = threading.Thread(target=_watch, name="deepreduce watch", daemon=True)
            _thread.start()
        elif earliest is None or deadline < earliest:
            _changed.notify()


def end(handle: int) -> None:
    """The caller waits for the gather by itself from here on."""
    with _changed:
        _watched.pop(handle, None)


def _watch() -> None:
    while True:
        with _changed:
            late = _first_late()
            if late is None:
                earliest = min((one.deadline for one in _watched.values()), default=None)
                _changed.wait(None if earliest is None else max(0.0, earliest - time.monotonic()))
                continue
            _watched.clear()
        _give_up(late)


def _first_late() -> _Watched | None:
    now = time.monotonic()
    for handle, one in list(_watched.items()):
        if one.deadline <= now:
            if not hvd.poll(handle):
                return one
            del _watched[handle]  # all ranks have sent theirs: whatever the caller does now, it waits for nobody
    return None


def _give_up(late: _Watched) -> None:
    rank, size = hvd.rank(), hvd.size()
    message = late_message(late.what, late.timeout_s)
    _log.critical("%s. Shutting Horovod down (rank %d of %d)", message, rank, size)
    # Over MPI, and with a peer that does not even answer, shutting down waits for ever too.
    ending = threading.Timer(_GRACE_S, _exit, [rank])
    ending.daemon = True
    ending.start()
    # Not `hvd.shutdown`: it forgets the handles first, and whoever waits for one gets a ValueError that explains nothing.
    mpi_ops._basics.shutdown()
    ending.cancel()


def _exit(rank: int) -> None:
    _log.critical("Horovod does not shut down within %g s: ending rank %d", _GRACE_S, rank)
    os._exit(EXIT_CODE)
