"""Pictures of what `bench` measured; needs matplotlib."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.measure import Measurement


def draw(found: Sequence[Measurement], path: Path) -> None:
    """Volume against error, and time against volume, one mark per combination: means over the gradients."""
    try:
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot as plt
    except ImportError as missing:
        raise InvalidSettingError("--plot needs matplotlib: pip install matplotlib") from missing
    groups: dict[str, list[Measurement]] = defaultdict(list)
    for one in found:
        groups[one.recipe or f"{one.sparsifier}+{one.index}+{one.value}"].append(one)
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6))
    for number, (name, ones) in enumerate(groups.items()):
        volume = sum(one.relative_volume for one in ones) / len(ones)
        error = sum(one.relative_error for one in ones) / len(ones)
        time = sum(one.encode_ms + one.decode_ms for one in ones)
        mark = {"marker": "osD^vP*X"[number % 8], "color": f"C{number % 10}"}
        left.plot(error, volume, linestyle="none", label=name, **mark)
        right.plot(volume, time, linestyle="none", **mark)
    left.set(xlabel="relative L2 error", ylabel="relative volume", yscale="log", title="volume against error")
    right.set(
        xlabel="relative volume",
        ylabel="encode + decode, ms",
        xscale="log",
        yscale="log",
        title="time against volume",
    )
    for axis in (left, right):
        axis.grid(visible=True, alpha=0.3)
    figure.legend(loc="lower center", ncol=2, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, min(0.45, 0.05 + 0.02 * len(groups)), 1, 1))
    try:
        figure.savefig(path)
    except ValueError as error:
        raise InvalidSettingError(f"--plot {path}: {error}") from error
    finally:
        plt.close(figure)
