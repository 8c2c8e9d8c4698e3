"""What all ranks must have in common for their collectives to pair up, compared once before the first of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hvd_deepreduce.errors import SettingsMismatchError
from hvd_deepreduce.settings import Agreed
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.bundle import VERSION

_HINT = "start every rank with the same script, settings and package version"


def package_version() -> str:
    """The installed version; a source tree that was never installed has none."""
    try:
        return version("hvd-deepreduce")
    except PackageNotFoundError:
        return "not installed"


def statement(name: str, settings: Agreed, specs: Sequence[TensorSpec], size: int, **shaping: int) -> bytes:
    """One line of JSON; `shaping` are the other settings that shape the collectives."""
    said: dict[str, Any] = {
        "package version": package_version(),
        "wire format version": VERSION,
        "name": name,
        "settings": str(settings),
        "seed": settings.seed,
        **shaping,
        "process set size": size,
        "tensors": _described(specs),
    }
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def identity(
    name: str, settings: Agreed, specs: Sequence[TensorSpec] | None, *, rank: int, size: int, **shaping: int
) -> dict[str, Any]:
    """What a saved state must have in common with the one that takes it; `specs` are None where tensors may differ."""
    return {
        "name": name,
        "settings": str(settings),
        "seed": settings.seed,
        "rank": rank,
        "size": size,
        **shaping,
        **({} if specs is None else {"tensors": _described(specs)}),
    }


def _described(specs: Sequence[TensorSpec]) -> list[list[Any]]:
    return [[spec.name, list(spec.shape), spec.dtype] for spec in specs]


def compare(gathered: bytes, size: int) -> None:
    """Raises `SettingsMismatchError` that names rank, setting and both values where a rank differs from rank 0."""
    lines = gathered.split(b"\n")
    if len(lines) != size + 1:
        raise SettingsMismatchError(f"{len(lines) - 1} statements from {size} ranks: {_HINT}")
    try:
        statements = [json.loads(line) for line in lines[:-1]]
    except ValueError as error:
        raise SettingsMismatchError(f"a rank's statement of settings can't be read ({error}): {_HINT}") from error
    differences = [text for rank in range(1, size) for text in _differences(rank, statements[0], statements[rank])]
    if differences:
        raise SettingsMismatchError(f"{'; '.join(differences)}: {_HINT}")


def _differences(rank: int, first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    found = []
    for key in [*first, *(key for key in other if key not in first)]:
        mine, theirs = first.get(key), other.get(key)
        if mine == theirs:
            continue
        if key == "tensors" and mine is not None and theirs is not None:
            found.append(_tensor_difference(rank, mine, theirs))
        else:
            found.append(f"{key} is {theirs!r} on rank {rank} and {mine!r} on rank 0")
    return found


def _tensor_difference(rank: int, mine: list[Any], theirs: list[Any]) -> str:
    for left, right in zip(mine, theirs, strict=False):
        if left != right:
            return f"tensor {tuple(right)} on rank {rank} is {tuple(left)} on rank 0"
    return f"{len(theirs)} tensors are compressed on rank {rank} and {len(mine)} on rank 0"
