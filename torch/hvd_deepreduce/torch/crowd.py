"""Ranks that share a machine share its cores, and PyTorch does not know it: by default each takes all of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

import horovod.torch as hvd
import torch

_log = logging.getLogger("hvd_deepreduce")


def warn_of_crowd(parameters: Iterable[torch.Tensor]) -> None:
    """Says so, once a machine, where ranks that compute on the CPU have more threads together than there are cores.

    OpenMP's threads spin while they wait for one another, so that a step may take ten times as long.
    """
    ranks, threads, cores = hvd.local_size(), torch.get_num_threads(), len(os.sched_getaffinity(0))
    crowded = ranks > 1 and threads > 1 and ranks * threads > cores
    if crowded and hvd.local_rank() == 0 and all(parameter.device.type == "cpu" for parameter in parameters):
        _log.warning(
            "%d ranks compute on this machine's %d cores with %d threads each, and get in each other's way: "
            "start the job with OMP_NUM_THREADS=%d",
            ranks,
            cores,
            threads,
            max(1, cores // ranks),
        )
