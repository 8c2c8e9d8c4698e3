"""How a rank that can't go on leaves: by raising, once every rank is known to be about to do the same."""

from __future__ import annotations

from typing import Any, NoReturn

import horovod.torch as hvd

from hvd_deepreduce import failures
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.torch.collectives import finish_gather, start_gather

FAREWELL_S = 10.0


def leave(error: DeepReduceError, name: str, process_set: Any, timeout_s: float) -> NoReturn:
    """Raises `error`; waits for the other ranks first, as the first to exit takes the job down with it."""

    def farewell() -> None:
        handle = start_gather(b"\n", f"{name}.farewell", process_set)
        finish_gather(handle, "farewell", min(timeout_s, FAREWELL_S))

    failures.leave(error, hvd.rank(), hvd.size(), farewell)
