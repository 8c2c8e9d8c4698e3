"""DeepReduce's relative volumes at top-r 10 %, and ours, on captured gradients.

Published (tables 2 and 4, LSTM): Top-r .2033, BF-P0 .1425, Fit-Poly .1039, BF-P0+QSGD .0621. Gradients are those of
`capture_gradients.py`, gradient plus residual with 10 % sent; without a folder of files they are captured on the spot.

Ours takes, in every layer, the error that QSGD with 7 bits has there on the same values, or less; BF-P0+QSGD has that
of its false positives besides.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import floor, sqrt
from pathlib import Path

import numpy as np
from capture_gradients import MODELS, captured

from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.measure import Measurement, measure
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import Values

DENSITY, RATE = 0.1, 0.05
TOP_K = f"topk(density={DENSITY})"
QSGD = f"{TOP_K}+raw+qsgd(bits=7)+residual"
RECIPE_OF = {
    "Top-r": ("top_r", 0.2033),
    "BF-P0": ("deepreduce_bf_p0", 0.1425),
    "Fit-Poly": ("deepreduce_fit_poly", 0.1039),
    "BF-P0 + QSGD": ("deepreduce_bf_p0_qsgd", 0.0621),
    "SKCompress": ("skcompress", None),
}
# The denser the gradient, the fewer false positives a saved bit of the filter costs.
FILTER = ", fpr=0.005"
LEAST_ERROR, MOST_ERROR = 0.001, 0.5


@dataclass
class Sum:
    """Over the layers of a model."""

    numel: float = 0.0
    sent: float = 0.0
    error: float = 0.0
    norm: float = 0.0
    worst: float = field(default=0.0)
    """The largest error of a layer, over that of QSGD on it."""

    def add(self, one: Measurement, norm: float, qsgd: float) -> None:
        self.numel += one.numel
        self.sent += one.relative_volume * one.numel
        self.error += (one.relative_error * norm) ** 2
        self.norm += norm**2
        self.worst = max(self.worst, one.relative_error / qsgd)

    @property
    def cells(self) -> str:
        return f"{self.sent / self.numel:.4f} | {sqrt(self.error / self.norm):.3f} | {self.worst:.2f}"


def exists(recipe: str) -> bool:
    """Whether this version has it and its codecs."""
    try:
        Settings.from_string(recipe)
    except InvalidSettingError:
        return False
    return True


def methods() -> Mapping[str, Callable[[float], str]]:
    """Label -> the stages, for the error that QSGD has."""
    found: dict[str, Callable[[float], str]] = {
        label: lambda _, name=name: f"{name}(density={DENSITY}{FILTER if '_bf_' in name else ''})"
        for label, (name, _) in RECIPE_OF.items()
        if exists(name)
    }
    for index in ("rice", "matrix", "auto"):
        found[f"{index} + quant"] = lambda error, index=index: f"{TOP_K}+{index}+quant(error={error})+residual"
    return found


def layers(folder: Path | None, step: int) -> Iterator[tuple[str, Values]]:
    """Model and gradient."""
    if folder is None:
        for model in MODELS:
            for _, _, array in captured(model, RATE, DENSITY, [step]):
                yield model, np.ascontiguousarray(array)
        return
    for path in sorted(folder.glob("*.npy")):
        name = re.fullmatch(r"(\w+?)_lr[0-9.]+_d([0-9.]+)_step\d+_layer\d+", path.stem)
        if name and float(name[2]) == DENSITY:
            yield name[1], np.ascontiguousarray(np.load(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="files of capture_gradients.py, with --density 0.1")
    parser.add_argument("--step", type=int, default=30, help="of training, at which gradients are captured on the spot")
    options = parser.parse_args()
    sums: dict[str, dict[str, Sum]] = defaultdict(lambda: defaultdict(Sum))
    for model, gradient in layers(options.folder, options.step):
        qsgd = measure(gradient, Settings.from_string(QSGD)).relative_error
        flat = np.sort(np.abs(gradient.ravel().astype(np.float64)))
        norm = float(np.linalg.norm(flat[-max(1, round(DENSITY * gradient.size)) :]))
        error = min(MOST_ERROR, max(LEAST_ERROR, floor(1000 * qsgd) / 1000))
        for label, stages in methods().items():
            one = measure(gradient, Settings.from_string(stages(error)), model)
            for name in (model, "all"):
                sums[name][label].add(one, norm, qsgd)
    missing = [f"{label} ({name})" for label, (name, _) in RECIPE_OF.items() if not exists(name)]
    if missing:
        print("No recipe in this version: " + ", ".join(missing) + "\n")
    print(f"Top-r {DENSITY:.0%}; worst: the largest error of a layer over that of QSGD on it\n")
    print("| gradients | method | published volume (LSTM) | volume | relative error | worst |")
    print("|---|---|---|---|---|---|")
    sums["all"] = sums.pop("all")  # last
    for name, of_model in sums.items():
        for label, total in of_model.items():
            published = RECIPE_OF.get(label, ("", None))[1]
            print(f"| {name} | {label} | {'' if published is None else f'{published:.4f}'} | {total.cells} |")


if __name__ == "__main__":
    main()
