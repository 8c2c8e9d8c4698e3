"""Why this rank can't go on, if so; kept for functions that TensorFlow runs on threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NoReturn

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.failures import failure_of, leave


class Failure:
    """The first error counts; `farewell` waits for the other ranks, and is called by the first who leaves."""

    def __init__(self, farewell: Callable[[], None]):
        self.error: DeepReduceError | None = None
        self._farewell = farewell
        self._left = False
        self._lock = threading.Lock()

    def note(self, error: Exception, rank: int, tensor: str | None = None) -> None:
        """Takes note that this rank can't go on: in place of its bundles it sends what went wrong from now on."""
        with self._lock:
            if self.error is None:
                self.error = failure_of(error, rank, tensor)

    def leave(self, error: DeepReduceError, rank: int, size: int) -> NoReturn:
        """Raises, once every rank is known to be about to do the same."""
        with self._lock:
            first, self._left = not self._left, True
            self.error = self.error or error
        leave(error, rank, size, self._farewell if first else None)
