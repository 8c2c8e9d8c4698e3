"""A time limit on shutting Horovod down, which else waits for ever for a rank that does not answer.

It hangs where a process was stopped, and where two threads ask for it at once. Nothing can end that but the end of the
process, whose exit code then says so.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time

import horovod.torch as hvd
from horovod.common.basics import HorovodBasics
from horovod.torch import mpi_ops

_log = logging.getLogger("hvd_deepreduce")
EXIT_CODE = 75  # EX_TEMPFAIL: started anew, the job may succeed
_GRACE_S = 10.0
_EVERY_S = 0.2

_lock = threading.Lock()
_guard: threading.Thread | None = None


def shut_down() -> None:
    """Shuts Horovod down, for a thread beside the one that waits in it, and that ends by it."""
    limit()
    # The other thread will exit, which shuts Horovod down, too. Horovod's own handler is older, and so comes second.
    ended = threading.Event()
    atexit.register(ended.wait)
    # Not `hvd.shutdown`: it forgets the handles first, and who waits for one gets a ValueError that explains nothing.
    mpi_ops._basics.shutdown()
    ended.set()


def limit() -> None:
    """From now on ends the process when shutting down takes too long; for when some rank is known not to answer."""
    global _guard
    with _lock:
        if _guard is None:
            _guard = threading.Thread(target=_watch, args=[hvd.rank()], name="deepreduce shutdown", daemon=True)
            _guard.start()


def _watch(rank: int) -> None:
    began: float | None = None
    while True:
        time.sleep(_EVERY_S)
        if not _under_way():
            began = None
        elif began is None:
            began = time.monotonic()
        elif time.monotonic() - began > _GRACE_S:
            _log.critical("Horovod does not shut down within %g s: ending rank %d", _GRACE_S, rank)
            os._exit(EXIT_CODE)


def _under_way() -> bool:
    """Whether some thread is in it."""
    for top in sys._current_frames().values():
        frame = top
        while frame.f_code is not HorovodBasics.shutdown.__code__:
            if frame.f_back is None:
                break
            frame = frame.f_back
        else:
            return True
    return False
