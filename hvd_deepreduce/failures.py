"""How an error on one rank is worded for all of them."""

from __future__ import annotations

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
