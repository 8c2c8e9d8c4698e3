"""Where a command writes: never over what it reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hvd_deepreduce.errors import InvalidSettingError


def require_no_input(option: str, output: Path, inputs: Iterable[Path]) -> None:
    """Raises where the output is one of the inputs, by whatever name or link."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise InvalidSettingError(
                f"{output} would be overwritten, and is what is read: give another file by {option}"
            )
