"""Whether all ranks came to the same model."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray


def identical_on_all_ranks(parameters: Iterable[NDArray[Any]], allgather_object: Callable[..., list[str]]) -> bool:
    """Whether all ranks hold the same parameters, bit for bit; `allgather_object` is Horovod's for the framework."""
    digest = hashlib.sha256()
    for parameter in parameters:
        digest.update(parameter.tobytes())
    return len(set(allgather_object(digest.hexdigest(), name="digest"))) == 1
