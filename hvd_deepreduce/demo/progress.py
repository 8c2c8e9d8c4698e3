"""Shows how far training is, and reads what another process showed: a live bar, or plain lines where nobody watches."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import SupportsFloat

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hvd_deepreduce.console import PlainConsole

_LINE = re.compile(r"step (?P<step>\d+)/(?P<steps>\d+) {2}loss (?P<loss>\S+)")
_LINES_OF = {"lines": 10, "steps": 100}


@dataclass(frozen=True)
class Standing:
    """How far a job is."""

    step: int
    steps: int
    loss: float

    def line(self) -> str:
        """As one line of text.

        >>> Standing.read(Standing(120, 1200, 0.5).line())
        Standing(step=120, steps=1200, loss=0.5)
        """
        return f"step {self.step}/{self.steps}  loss {self.loss:.4f}"

    @classmethod
    def read(cls, text: str) -> "Standing | None":
        """Finds such a line behind whatever a launcher put before it."""
        found = _LINE.search(text)
        return cls(int(found["step"]), int(found["steps"]), float(found["loss"])) if found else None


def new_progress(console: Console) -> Progress:
    """Bars with description, steps, loss and time."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=4,
    )


def terminal_watched() -> bool:
    """Whether the output goes straight to a terminal."""
    # Open MPI gives its processes a terminal of their own, whatever becomes of their output.
    return sys.stdout.isatty() and "OMPI_COMM_WORLD_RANK" not in os.environ


def result_console(width: int) -> PlainConsole:
    """For the tables at the end: plain text of this width, but for a terminal that somebody watches."""
    if terminal_watched():
        return PlainConsole()
    return PlainConsole(width=width, no_color=True, force_terminal=False)


@contextmanager
def training_progress(style: str, what: str, steps: int, shown: bool) -> Iterator[Callable[[int, SupportsFloat], None]]:
    """Gives a function to call with (step, loss) after each step; it does nothing unless `shown`."""
    if not shown:
        yield lambda step, loss: None
        return
    if style == "auto":
        style = "bar" if terminal_watched() else "lines"
    if style == "bar":
        with new_progress(PlainConsole(force_terminal=True)) as progress:
            task = progress.add_task(what, total=steps, note="")
            yield lambda step, loss: progress.update(task, completed=step, note=f"loss {float(loss):.3f}")
        return
    every = max(1, steps // _LINES_OF[style])
    start = time.perf_counter()

    def show(step: int, loss: SupportsFloat) -> None:
        if step % every == 0 or step == steps:
            rate = step / (time.perf_counter() - start)
            print(f"{Standing(step, steps, float(loss)).line()}  {rate:.1f} steps/s", flush=True)

    yield show
