"""The two pictures: accuracy against steps, and against bytes sent."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from curves.train import Curve

mpl.use("svg")
from matplotlib import pyplot

# Equal data give equal files.
mpl.rcParams["svg.hashsalt"] = "curves"


def draw(curves: dict[str, list[Curve]], folder: Path) -> None:
    """Writes `curves_steps.svg` and `curves_bytes.svg`: the mean of the seeds."""
    colours = pyplot.get_cmap("tab20")
    for name, label in (("steps", "optimizer steps"), ("bytes", "bytes sent by a rank")):
        figure, axes = pyplot.subplots(figsize=(9, 5.5), layout="constrained")
        for number, (method, runs) in enumerate(curves.items()):
            across = runs[0].steps if name == "steps" else np.mean([run.sent_bytes for run in runs], axis=0)
            accuracy = 100 * np.mean([run.accuracy for run in runs], axis=0)
            style = "--" if "no residual" in method else "-"
            axes.plot(across, accuracy, style, color=colours(number % 20), label=method, linewidth=1.4)
        axes.set_xlabel(label)
        axes.set_ylabel("accuracy on 2,000 test images, %")
        axes.set_ylim(bottom=60)
        if name == "bytes":
            axes.set_xscale("log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, ncols=2, loc="lower right" if name == "steps" else "best")
        figure.savefig(folder / f"curves_{name}.svg", metadata={"Date": None})
        pyplot.close(figure)
