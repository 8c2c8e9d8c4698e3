"""Figure 8 of DeepReduce again: volume and time of each method on a convolution of ResNet-20, at top-r 1 %.

Captures the gradient plus residual of a 64 x 64 x 3 x 3 layer (36,864 elements) on the spot. Prints a table; with
`--write`, also puts it into docs/figure8.md and draws docs/images/figure8.svg: `make figure8`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from capture_gradients import captured

from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.measure import Measurement, measure
from hvd_deepreduce.recipes import RECIPES
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import Values

DOCS = Path(__file__).parents[2] / "docs"
SHAPE, DENSITY, RATE = (64, 64, 3, 3), 0.01, 0.05
REPEATS = 5


@dataclass(frozen=True)
class Method:
    """A bar of the figure; `published` is the relative volume in %, where the paper has the method."""

    label: str
    stages: str
    published: float | None = None

    @property
    def exists(self) -> bool:
        """Whether this version has its recipe and codecs, and what these need is installed."""
        try:
            Settings.from_string(self.stages)
        except InvalidSettingError:
            return False
        return True


METHODS = [
    Method("Top-r", "top_r", 2.00),
    Method("Deflate", "deepreduce_deflate", 1.90),
    Method("Huffman", "deepreduce_huffman", 1.62),
    Method("RLE", "deepreduce_rle", 1.59),
    Method("BF-P0", "deepreduce_bf_p0", 1.45),
    Method("BF-P2", "deepreduce_bf_p2"),
    Method("QSGD", "deepreduce_qsgd", 1.25),
    Method("Fit-Poly", "deepreduce_fit_poly", 1.17),
    Method("Fit-DExp", "deepreduce_fit_dexp"),
    Method("BF-P0 + QSGD", "deepreduce_bf_p0_qsgd", 0.70),
    Method("SKCompress", "skcompress", 0.34),
    Method("rice", "topk(density=0.01)+rice+raw+residual"),
    Method("matrix", "topk(density=0.01)+matrix+raw+residual"),
    Method("matrix + pco", "topk(density=0.01)+matrix+pco+residual"),
    Method("quant", "topk(density=0.01)+raw+quant(error=0.1)+residual"),
    Method("default", "default"),
    Method("smallest", "smallest"),
]


@dataclass(frozen=True)
class Row:
    """Volumes in % of the dense gradient, times in milliseconds, the fastest of some medians."""

    method: Method
    support: float
    values: float
    total: float
    error: float
    encode: float
    decode: float

    @classmethod
    def of(cls, method: Method, found: Sequence[Measurement]) -> Row:
        one = found[0]
        percent = 100 * one.kept / (32 * one.numel)
        return cls(
            method,
            percent * one.index_bits,
            percent * one.value_bits,
            100 * one.relative_volume,
            one.relative_error,
            min(each.encode_ms for each in found),
            min(each.decode_ms for each in found),
        )


def gradient(step: int) -> Values:
    """The last layer of that shape: the second convolution of the last block."""
    layers = [array for _, _, array in captured("resnet20", RATE, DENSITY, [step]) if array.shape == SHAPE]
    return np.ascontiguousarray(layers[-1])


def measured(array: Values) -> list[Row]:
    rows = []
    for method in METHODS:
        if not method.exists:
            print(f"{method.label}: no {method.stages} in this version")
            continue
        settings = Settings.from_string(method.stages)
        rows.append(Row.of(method, [measure(array, settings, method.label) for _ in range(REPEATS)]))
    return rows


def table(rows: Sequence[Row]) -> str:
    names = ["method", "stages", "published, %", "here, %", "support, %", "values, %", "relative error", "encode, ms"]
    names += ["decode, ms", "encode / Top-r"]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for row in rows:
        published = "" if row.method.published is None else f"{row.method.published:.2f}"
        stages = RECIPES[row.method.stages].stages if row.method.stages in RECIPES else row.method.stages
        cells = [row.method.label, f"`{stages.removesuffix('+residual')}`", published]
        cells += [f"{percent:.2f}" for percent in (row.total, row.support, row.values)]
        cells += [f"{number:.3f}" for number in (row.error, row.encode, row.decode)]
        lines.append("| " + " | ".join([*cells, f"{row.encode / rows[0].encode:.1f}"]) + " |")
    published = sorted((r for r in rows if r.method.published is not None), key=lambda r: -(r.method.published or 0))
    here = sorted(published, key=lambda r: -r.total)
    lines += [
        "",
        "Largest to smallest, published: " + ", ".join(row.method.label for row in published) + ".  ",
        "Largest to smallest, here: " + ", ".join(row.method.label for row in here) + ".",
    ]
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    with mpl.rc_context({"svg.hashsalt": "figure8", "font.size": 9}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.5), sharey=True)
        labels = [row.method.label for row in rows]
        places = np.arange(len(rows))
        left.barh(places, [row.support for row in rows], label="support", color="C0")
        left.barh(places, [row.values for row in rows], left=[row.support for row in rows], label="values", color="C1")
        known = [(place, row.method.published) for place, row in enumerate(rows) if row.method.published is not None]
        left.plot([value for _, value in known], [place for place, _ in known], "kD", markersize=4, label="published")
        left.set(xlabel="relative volume, %", yticks=places, yticklabels=labels, title="what is sent")
        right.barh(places - 0.2, [row.encode for row in rows], 0.4, label="encode", color="C2")
        right.barh(places + 0.2, [row.decode for row in rows], 0.4, label="decode", color="C3")
        right.set(
            xlabel="ms for 36,864 elements, 1 % kept", xscale="log", title="time, without selection", xlim=(1e-3, None)
        )
        right.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        right.xaxis.set_minor_formatter(NullFormatter())
        left.invert_yaxis()
        for axis in (left, right):
            axis.grid(axis="x", alpha=0.3)
            axis.legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def put(text: str, page: Path) -> None:
    """Between the marks of the page; what people wrote around them stays."""
    begin, end = "<!-- table: begin -->", "<!-- table: end -->"
    whole = page.read_text(encoding="utf-8")
    changed, count = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", whole, flags=re.DOTALL)
    assert count == 1, f"{page}: no place for the table"
    page.write_text(changed, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gradient", type=Path, help="a .npy file of capture_gradients.py instead")
    parser.add_argument("--step", type=int, default=100, help="of training, at which the gradient is captured")
    parser.add_argument("--write", action="store_true", help="into docs/")
    options = parser.parse_args()
    rows = measured(np.load(options.gradient) if options.gradient else gradient(options.step))
    print(table(rows))
    if options.write:
        put(table(rows), DOCS / "figure8.md")
        draw(rows, DOCS / "images" / "figure8.svg")


if __name__ == "__main__":
    main()
