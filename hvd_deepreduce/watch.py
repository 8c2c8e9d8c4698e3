"""A time limit where Horovod has none: whoever waits in it waits for ever for a rank that does not come.

Compressors are not asked while Horovod waits, so they can't end it themselves. What does is a thread that shuts Horovod
down when a gather stays incomplete for too long; the waiting call then raises. Where Horovod itself hangs, as when a
process was stopped, the process is ended (`shutdown`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from hvd_deepreduce.shutdown import Shutdown

_log = logging.getLogger("hvd_deepreduce")
# The first rank to shut Horovod down ends the others' waits: by then they should have said what they waited for.
_ASIDE_S = 1.0


class _Watched(NamedTuple):
    what: str
    timeout_s: float
    deadline: float


class Watch:
    """Of one framework's Horovod in this process."""

    def __init__(self, shutdown: Shutdown, complete: Callable[[int], bool], late: Callable[[str, float], str]):
        """`complete` tells of a handle whether all ranks have sent theirs, `late` words what is said if not."""
        self._shutdown = shutdown
        self._complete = complete
        self._late = late
        self._watched: dict[int, _Watched] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, handle: int, what: str, timeout_s: float) -> None:
        """Watches a gather until `end`."""
        with self._changed:
            deadline = time.monotonic() + timeout_s
            earliest = min((one.deadline for one in self._watched.values()), default=None)
            self._watched[handle] = _Watched(what, timeout_s, deadline)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deepreduce watch", daemon=True)
                self._thread.start()
            elif earliest is None or deadline < earliest:
                self._changed.notify()

    def end(self, handle: int) -> None:
        """The caller has the gather, or waits for it by itself, from here on."""
        with self._changed:
            self._watched.pop(handle, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                late = self._first_late()
                if late is None:
                    earliest = min((one.deadline for one in self._watched.values()), default=None)
                    self._changed.wait(None if earliest is None else max(0.0, earliest - time.monotonic()))
                    continue
                watched = self._watched[late]
                self._watched.clear()
            self.give_up(watched.what, watched.timeout_s, partial(self._complete, late))

    def _first_late(self) -> int | None:
        now = time.monotonic()
        for handle, one in list(self._watched.items()):
            if one.deadline <= now:
                if not self._complete(handle):
                    return handle
                # All ranks have sent theirs: whatever the caller does now, it waits for nobody.
                del self._watched[handle]
        return None

    def give_up(self, what: str, timeout_s: float, complete: Callable[[], bool]) -> None:
        """Says what is late, and shuts Horovod down unless it is complete after all."""
        _log.critical("%s. Shutting Horovod down (%s)", self._late(what, timeout_s), self._shutdown.place())
        self._shutdown.limit()
        time.sleep(_ASIDE_S)
        # Another rank may have shut all down by now, and this one be about to exit: see `shutdown` on doing it twice.
        if not complete():
            self._shutdown.now()
