"""The comparison of settings at first use: what ranks tell one another before any gradient travels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hvd_deepreduce import agreement
from hvd_deepreduce.settings import Agreed
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.tf.collectives import gather_now


def introduce(
    name: str, settings: Agreed, specs: Sequence[TensorSpec], process_set: Any, timeout_s: float, **shaping: int
) -> None:
    """Waits for the statements of all ranks and compares them.

    Raises `SettingsMismatchError` alike on all ranks, and `CollectiveTimeoutError` when some do not come.
    """
    size = process_set.size()
    statement = agreement.statement(name, settings, specs, size, **shaping)
    what = f"DeepReduce {name!r}, comparing settings"
    gathered = gather_now(statement, f"{name}.settings", what, process_set, timeout_s)
    agreement.compare(gathered, size)
