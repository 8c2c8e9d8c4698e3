"""A time limit on shutting Horovod down, which else waits for ever for a rank that does not answer.

It hangs where a process was stopped, and where two threads ask for it at once. Nothing can end that but the end of the
process, whose exit code then says so. Wings hand in Horovod's `HorovodBasics`, which each framework has its own of.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from types import CodeType
from typing import Any

_log = logging.getLogger("hvd_deepreduce")
EXIT_CODE = 75  # EX_TEMPFAIL: started anew, the job may succeed
_GRACE_S = 10.0
_EVERY_S = 0.2


class Shutdown:
    """Of one framework's Horovod in this process."""

    def __init__(self, basics: Any):
        self._basics = basics
        self._lock = threading.Lock()
        self._guard: threading.Thread | None = None

    def now(self) -> None:
        """Shuts Horovod down, for a thread beside the one that waits in it, and that ends by it."""
        self.limit()
        # The other thread will exit, which shuts Horovod down, too. Horovod's own handler is older, and comes second.
        ended = threading.Event()
        atexit.register(ended.wait)
        # Not `hvd.shutdown`: PyTorch's forgets the handles first, and who waits for one gets a ValueError that explains
        # nothing.
        self._basics.shutdown()
        ended.set()

    def limit(self) -> None:
        """From now on ends the process when shutting down takes too long; for when some rank is known not to answer."""
        with self._lock:
            if self._guard is None:
                code = type(self._basics).shutdown.__code__
                rank = self._basics.rank()
                self._guard = threading.Thread(
                    target=_watch, args=[code, rank], name="deepreduce shutdown", daemon=True
                )
                self._guard.start()

    def place(self) -> str:
        """Which rank this is, for messages."""
        return f"rank {self._basics.rank()} of {self._basics.size()}"


def _watch(shutdown: CodeType, rank: int) -> None:
    began: float | None = None
    while True:
        time.sleep(_EVERY_S)
        if not _under_way(shutdown):
            began = None
        elif began is None:
            began = time.monotonic()
        elif time.monotonic() - began > _GRACE_S:
            _log.critical("Horovod does not shut down within %g s: ending rank %d", _GRACE_S, rank)
            os._exit(EXIT_CODE)


def _under_way(shutdown: CodeType) -> bool:
    """Whether some thread is in it."""
    for top in sys._current_frames().values():
        frame = top
        while frame.f_code is not shutdown:
            if frame.f_back is None:
                break
            frame = frame.f_back
        else:
            return True
    return False
