"""Statistics over the steps of a training: to a file of JSON lines, or to TensorBoard."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, SupportsFloat

from hvd_deepreduce.checks import quoted
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.records import Errors, Stats, continues, make_header, make_record, to_line


class StatisticsWriter(ABC):
    """Writes what `stats()` of a compressor has counted since the last write; a context manager.

    Statistics of another compressor than the last ones begin anew instead of being subtracted from them.
    """

    def __init__(self) -> None:
        self._last: Stats | None = None

    def write(self, stats: Stats, errors: Errors | None = None, **extra: SupportsFloat) -> None:
        """Takes `compression.stats()`, and numbers of the caller's to go with them: `loss=loss.item()`.

        `errors` are `compression.errors()`, for those who want the relative error of each tensor's last step, too.
        """
        numbers = {name: _number(name, value) for name, value in extra.items()}
        last = self._last if self._last is not None and continues(stats, self._last) else None
        if last is None:
            self._put_header(make_header(stats))
        self._put_record(make_record(stats, last, numbers, errors))
        self._last = stats

    @abstractmethod
    def close(self) -> None:
        """Ends writing; what was written is safe without it, too."""

    @abstractmethod
    def _put_header(self, header: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def _put_record(self, record: Mapping[str, Any]) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class JsonLinesWriter(StatisticsWriter):
    """To a file that `read_json_lines` reads back; one process, one file.

    Every line is on its way to the disk when `write` returns, so a job that is killed leaves whole lines behind.

    Args:
        path: the file.
        append: keeps what the file holds, for a job that goes on from a checkpoint; else it is overwritten.
    """

    def __init__(self, path: str | os.PathLike[str], *, append: bool = False) -> None:
        super().__init__()
        self._file = Path(path).open("a" if append else "w", encoding="utf-8")  # noqa: SIM115 (closed by close())
        if self._file.tell():
            # The last line may have broken off.
            self._file.write("\n")

    def close(self) -> None:
        self._file.close()

    def _put_header(self, header: Mapping[str, Any]) -> None:
        self._put_record(header)

    def _put_record(self, record: Mapping[str, Any]) -> None:
        self._file.write(to_line(record))
        self._file.flush()


class ScalarWriter(Protocol):
    """What `torch.utils.tensorboard.SummaryWriter` is, among others."""

    def add_scalar(self, tag: str, value: float, step: int, /) -> Any: ...


class TensorBoardWriter(StatisticsWriter):
    """To TensorBoard, as means per step: `deepreduce/sent_bytes` in all, `deepreduce.sent_bytes/TENSOR` of a tensor.

    Args:
        writer: a `SummaryWriter`, which stays the caller's to close, or a folder for a new event file; that needs the
            package tensorboard.
    """

    def __init__(self, writer: ScalarWriter | str | os.PathLike[str]) -> None:
        super().__init__()
        self._own = _open_event_file(writer) if isinstance(writer, str | os.PathLike) else None
        self._writer: ScalarWriter = self._own or writer  # type: ignore[assignment]
        if not callable(getattr(self._writer, "add_scalar", None)):
            raise InvalidSettingError(
                f"TensorBoardWriter: {quoted(writer)}; needed is a path, or an object with add_scalar(tag, value, step)"
            )

    def close(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    def _put_header(self, header: Mapping[str, Any]) -> None:
        """TensorBoard has no place for one."""

    def _put_record(self, record: Mapping[str, Any]) -> None:
        step = record["step"]
        for name, value in record["extra"].items():
            self._writer.add_scalar(name, value, step)
        for name, value in _per_step(record["total"], record["steps"]).items():
            self._writer.add_scalar(f"deepreduce/{name}", value, step)
        for row in record["tensors"]:
            for name, value in _per_step(row, row["steps"]).items():
                self._writer.add_scalar(f"deepreduce.{name}/{row['name']}", value, step)
        if self._own is not None:
            self._own.flush()


_RATIOS = ("relative_volume", "bits_per_kept", "relative_error")
_MEANS = ("kept", "not_finite", "sent_bytes", "encode_ms", "decode_ms", "wait_ms")


def _per_step(row: Mapping[str, Any], steps: int) -> dict[str, float]:
    """Nothing where no step was taken, and no ratio where nothing was kept."""
    if not steps:
        return {}
    found = {key: row[key] for key in _RATIOS if row.get(key) is not None}
    return found | {key: row[key] / steps for key in _MEANS}


def _open_event_file(folder: str | os.PathLike[str]) -> Any:
    try:
        from tensorboard.summary import Writer
    except ImportError as error:
        raise ImportError(
            f"TensorBoardWriter({os.fspath(folder)!r}) needs TensorBoard: pip install tensorboard; or give it a "
            "SummaryWriter that you have"
        ) from error
    return Writer(os.fspath(folder))


def _number(name: str, value: SupportsFloat) -> int | float:
    if isinstance(value, int):
        return int(value)
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidSettingError(f"write(): {name}={quoted(value)}; needed is a number") from error
