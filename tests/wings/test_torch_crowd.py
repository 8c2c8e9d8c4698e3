"""The warning where ranks of one machine have more threads than it has cores."""

from __future__ import annotations

import os

import horovod.torch as hvd
import pytest
import torch

from hvd_deepreduce.torch.crowd import warn_of_crowd

ON_CPU = torch.zeros(1)
ELSEWHERE = torch.zeros(1, device="meta")


@pytest.mark.parametrize(
    ("ranks", "threads", "cores", "rank", "parameter", "advice"),
    [
        (2, 2, 2, 0, ON_CPU, "OMP_NUM_THREADS=1"),
        (2, 16, 16, 0, ON_CPU, "2 ranks compute on this machine's 16 cores with 16 threads each"),
        (2, 16, 16, 0, ON_CPU, "OMP_NUM_THREADS=8"),
        (8, 4, 4, 0, ON_CPU, "OMP_NUM_THREADS=1"),
        (2, 2, 2, 1, ON_CPU, None),
        (1, 16, 2, 0, ON_CPU, None),
        (2, 8, 16, 0, ON_CPU, None),
        (4, 1, 2, 0, ON_CPU, None),
        (2, 2, 2, 0, ELSEWHERE, None),
    ],
)
def test_who_is_warned(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ranks: int,
    threads: int,
    cores: int,
    rank: int,
    parameter: torch.Tensor,
    advice: str | None,
) -> None:
    monkeypatch.setattr(hvd, "local_size", lambda: ranks)
    monkeypatch.setattr(hvd, "local_rank", lambda: rank)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    warn_of_crowd([parameter])
    assert (advice in caplog.text) if advice else not caplog.text
