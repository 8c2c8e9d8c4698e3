"""The list of toys that are wrong in one way each, and what they share."""

from collections.abc import Callable

import numpy as np

from conformance.stage_checks import Check
from hvd_deepreduce.contracts import Stage
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError

WRONG: list[tuple[Check, Stage]] = []
"""Each check with the toys that it must catch; filled by the modules of toys when they are imported."""


def caught_by(*checks: Check) -> Callable[[type[Stage]], type[Stage]]:
    def add(toy: type[Stage]) -> type[Stage]:
        WRONG.extend((check, toy()) for check in checks)
        return toy

    return add


def require_size(payload: bytes, expected: int) -> None:
    if len(payload) < expected:
        raise TruncatedPayloadError("toy: too short")
    if len(payload) > expected:
        raise CorruptPayloadError("toy: too long")


def increasing(positions: np.ndarray, numel: int) -> bool:
    return bool((positions[1:] > positions[:-1]).all()) and (not len(positions) or int(positions[-1]) < numel)
