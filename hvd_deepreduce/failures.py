"""How an error on one rank is worded for all of them, and how it is raised on each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from hvd_deepreduce.errors import DeepReduceError


def failure_of(error: Exception, rank: int, tensor: str | None = None) -> DeepReduceError:
    """What a rank that can't go on raises, and sends the others: an error that names rank, tensor and cause."""
    cause = str(error) if isinstance(error, DeepReduceError) else f"{type(error).__name__}: {error}"
    where = f"tensor {tensor!r}: " if tensor is not None and repr(tensor) not in cause else ""
    kind = type(error) if isinstance(error, DeepReduceError) else DeepReduceError
    failure = kind(f"rank {rank}: {where}{cause}")
    failure.__cause__ = error
    return failure


def without_rank(failure: DeepReduceError) -> str:
    """What goes into an error bundle: its receivers know the rank from its header."""
    return str(failure).partition(": ")[2]


def leave(error: DeepReduceError, rank: int, size: int, farewell: Callable[[], object] | None) -> NoReturn:
    """Raises, once every rank is known to be about to do the same: the first to exit takes the job down with it.

    `farewell` waits for the other ranks; None where that was done before.
    """
    error.add_note(f"(raised by rank {rank} of {size})")
    if farewell is not None:
        try:
            farewell()
        except Exception as unheard:  # the error at hand matters more than who else heard of it
            error.add_note(f"(not every rank answered: {unheard})")
    raise error
