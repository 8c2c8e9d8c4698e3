"""What tells whose state a checkpoint holds: residuals and step counters are each rank's own.

The variables themselves are saved and restored by `tf.train.Checkpoint`, which takes any variable of the right place
and shape. So one more of them is text that says rank, settings and tensors, and is compared in every step.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec


def identity_of(
    name: str, settings: Settings, specs: Sequence[TensorSpec], *, rank: int, size: int, **shaping: int
) -> str:
    """What a saved state must have in common with the session it is restored into."""
    said: dict[str, Any] = {
        "name": name,
        "settings": str(settings),
        "seed": settings.seed,
        "rank": rank,
        "size": size,
        **shaping,
        "tensors": [[spec.name, list(spec.shape), spec.dtype] for spec in specs],
    }
    return json.dumps(said)


def require_own(found: bytes, own: str) -> None:
    """Raises `StateMismatchError` for the state of another rank, model or setting."""
    if found == own.encode():
        return
    try:
        saved = json.loads(found)
        differing = [key for key, right in json.loads(own).items() if saved.get(key) != right]
    except (ValueError, AttributeError):
        differing = []
    if not differing:
        raise StateMismatchError("the checkpoint that was restored is no state of this version of DeepReduce")
    key = differing[0]
    hint = "; each rank saves and restores its own checkpoint" if key in ("rank", "size") else ""
    raise StateMismatchError(
        f"the checkpoint that was restored is of {key} {saved.get(key)!r}, here it is {json.loads(own)[key]!r}{hint}"
    )
