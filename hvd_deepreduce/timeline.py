"""What happened when in a step, for a look at what hides behind what; chrome://tracing and Perfetto show the files."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any


class Timeline:
    """Spans of time by thread. Keeps all of them in memory: a few steps, not a whole training.

    >>> timeline = Timeline()
    >>> with timeline.span("backward", step=3):
    ...     pass
    >>> [event["name"] for event in timeline.events]
    ['backward']
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        """Complete events of the Trace Event Format: `ts` and `dur` in microseconds, `tid` a thread's name."""

    @contextmanager
    def span(self, name: str, **arguments: Any) -> Iterator[None]:
        """Records how long the body took; `arguments` are shown beside it."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.events.append(
                {
                    "name": name,
                    "ph": "X",
                    "ts": 1e6 * start,
                    "dur": 1e6 * (time.perf_counter() - start),
                    "pid": 0,
                    "tid": threading.current_thread().name,
                    "args": arguments,
                }
            )

    def save(self, path: str | Path, rank: int = 0) -> None:
        """Writes a file of the Trace Event Format, in which this process is the one of `rank`."""
        events = [event | {"pid": rank} for event in self.events]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")


def span(timeline: Timeline | None, name: str, **arguments: Any) -> AbstractContextManager[None]:
    """A span of `timeline`, if there is one."""
    return nullcontext() if timeline is None else timeline.span(name, **arguments)
