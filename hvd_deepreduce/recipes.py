"""Published methods, and ours, by name: each stands for all stages in the one-string form.

A recipe's name goes wherever that form does, with settings of its stages to change if need be:
`Settings.from_string("gradient_dropping(rate=0.999)")`. `dgc` is a sparsifier, too: alone it is the recipe, which has
the memory that the method needs, and before a `+` the sparsifier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Recipe:
    """The stages, in the one-string form; where the method is from; and in which way it is not quite that, if any."""

    stages: str
    source: str
    differs: str = ""


RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {
        "default": Recipe("topk(density=0.01)+rice+qsgd(bits=7)+residual", "what `DeepReduce(params)` does"),
        "smallest": Recipe("topk(density=0.01)+matrix+quant(error=0.1)+residual", "ours, in the fewest bits"),
        "top_r": Recipe("topk(density=0.01)+raw+raw+residual", "Top-r in DeepReduce, figure 8 (arXiv 2102.03112)"),
        "gradient_dropping": Recipe(
            "dropping(rate=0.99)+raw+raw+residual", "Aji and Heafield 2017, algorithm 1 (arXiv 1704.05021)"
        ),
        "gradient_dropping_onebit": Recipe(
            "dropping(rate=0.99)+raw+onebit(centroid='mean')+residual",
            "gradient dropping with the 1-bit quantisation of Seide et al. 2014",
        ),
        "gradient_dropping_twobit": Recipe(
            "dropping(rate=0.99)+raw+twobit(centroid='mean')+residual", "gradient dropping with two bits a value"
        ),
        "dgc": Recipe(
            "dgc(density=0.001)+raw+raw+dgc(momentum=0.9)",
            "DGC: Lin et al. 2018 (arXiv 1712.01887)",
            "no warm-up: set `warmup`, in steps",
        ),
        "strom": Recipe(
            "threshold(value=0.001)+rice+onebit(centroid='min')+residual",
            "Strom 2015 (Interspeech): signs above a threshold, gaps in Golomb code",
            "a kept element counts as the smallest magnitude kept, not as the threshold",
        ),
        "deepreduce_huffman": Recipe(
            "topk(density=0.01)+huffman(of='bytes')+raw+residual", "Huffman in DeepReduce, figure 8"
        ),
        "deepreduce_rle": Recipe("topk(density=0.01)+rle+raw+residual", "RLE in DeepReduce, figure 8"),
        "deepreduce_deflate": Recipe("topk(density=0.01)+raw+deflate+residual", "Deflate in DeepReduce, figure 8"),
        "deepreduce_qsgd": Recipe("topk(density=0.01)+raw+qsgd(bits=7)+residual", "QSGD in DeepReduce, figure 8"),
        "deepreduce_bf_p0": Recipe(
            "topk(density=0.01)+bloom(policy='p0', fpr=0.001)+raw+residual", "BF-P0 in DeepReduce, figure 8"
        ),
        "deepreduce_bf_p1": Recipe(
            "topk(density=0.01)+bloom(policy='p1', fpr=0.001)+raw+residual", "BF-P1 in DeepReduce"
        ),
        "deepreduce_bf_p2": Recipe(
            "topk(density=0.01)+bloom(policy='p2', fpr=0.001)+raw+residual", "BF-P2 in DeepReduce"
        ),
        "deepreduce_fit_poly": Recipe("topk(density=0.01)+raw+fit_poly+residual", "Fit-Poly in DeepReduce, figure 8"),
        "deepreduce_fit_dexp": Recipe("topk(density=0.01)+raw+fit_dexp+residual", "Fit-DExp in DeepReduce"),
        "deepreduce_bf_p0_qsgd": Recipe(
            "topk(density=0.01)+bloom(policy='p0', fpr=0.001)+qsgd(bits=7)+residual",
            "BF-P0 with QSGD in DeepReduce, figure 8, tables 2, 4 and 5",
        ),
        "deepreduce_bf_p2_fit_poly": Recipe(
            "topk(density=0.01)+bloom(policy='p2', fpr=0.001)+fit_poly+residual", "BF-P2 with Fit-Poly in DeepReduce"
        ),
        "skcompress": Recipe(
            "topk(density=0.01)+huffman(of='gaps')+sketch+residual",
            "SKCompress in DeepReduce, figure 8 and table 6",
            "without MinMaxSketch, and quantiles of the sum of squares: `of='values'` has the paper's",
        ),
        "three_lc": Recipe(
            "topk(density=0.01)+rle+onebit(centroid='mean')+residual",
            "3LC: Lim et al. 2018 (arXiv 1802.07389)",
            "3LC keeps what rounds to the largest magnitude, up to a factor, and counts it as that; here a fixed "
            "share is kept and counts as its mean magnitude. 3LC packs five of -1, 0, 1 in a byte and shortens "
            "runs of zero bytes; here runs are of elements, and a sign takes a bit",
        ),
        "onebit_sgd": Recipe(
            "none+auto+onebit(centroid='column')+residual",
            "Seide et al. 2014 (Interspeech)",
            "one magnitude for both signs of a column, where the paper has one for each",
        ),
        "qsgd": Recipe("none+auto+qsgd(bits=4, bucket=512)+none", "Alistarh et al. 2017 (arXiv 1610.02132)"),
        "terngrad": Recipe("none+auto+terngrad+none", "Wen et al. 2017 (arXiv 1705.07878)", "no clipping"),
        "natural": Recipe("none+auto+natural+none", "Horvath et al. 2019 (arXiv 1905.10988)"),
    }
)
