"""A time limit where Horovod has none: its own `synchronize` waits for ever for a rank that does not come.

Compressors are asked for a gradient only after that wait, so they can't end it themselves. What does is a thread that
shuts Horovod down when a gather stays incomplete for too long; the waiting call then raises `HorovodInternalError`.
Where Horovod itself hangs, as when a process was stopped, the process is ended (`shutdown`).
"""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

import horovod.torch as hvd

from hvd_deepreduce.torch import shutdown
from hvd_deepreduce.torch.collectives import late_message

_log = logging.getLogger("hvd_deepreduce")
# The first rank to shut Horovod down ends the others' waits: by then they should have said what they waited for.
_ASIDE_S = 1.0


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
            watched = _watched[late]
            _watched.clear()
        _give_up(late, watched)


def _first_late() -> int | None:
    now = time.monotonic()
    for handle, one in list(_watched.items()):
        if one.deadline <= now:
            if not _complete(handle):
                return handle
            del _watched[handle]  # all ranks have sent theirs: whatever the caller does now, it waits for nobody
    return None


def _complete(handle: int) -> bool:
    try:
        return bool(hvd.poll(handle))
    except ValueError:  # Horovod was shut down meanwhile, and has forgotten it
        return True


def _give_up(handle: int, late: _Watched) -> None:
    rank, size = hvd.rank(), hvd.size()
    _log.critical("%s. Shutting Horovod down (rank %d of %d)", late_message(late.what, late.timeout_s), rank, size)
    shutdown.limit()
    time.sleep(_ASIDE_S)
    # Another rank may have shut all down by now, and this one be about to exit: see `shutdown` on doing it twice.
    if not _complete(handle):
        shutdown.shut_down()
