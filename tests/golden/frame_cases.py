"""Whole frames that must be written and read as they stand; FORMAT.md, 3."""

from golden.value_accept_cases import floats as _floats
from golden.value_accept_cases import gradient as _gradient
from golden.vectors import Fields

_PLACE = {"seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}

FRAME_ACCEPTS: dict[str, Fields] = {
    "frame_example": {
        "why": "The example of FORMAT.md, 3.",
        "kind": "frame",
        "settings": "none+bitmap+raw+none",
        "shape": "6",
        "input": _floats(1, 0, 0, -2, 0, 0),
    },
    "frame_defaults": {
        "why": "What a user gets who sets nothing: the largest of 64 elements, its 1 % rounded up to one.",
        "kind": "frame",
        "settings": "topk+rice+qsgd+residual",
        **_PLACE,
        "shape": "4x16",
        "input": _gradient(64),
    },
    "frame_ties": {
        "why": "Of equal magnitudes the lower position is kept.",
        "kind": "frame",
        "settings": "topk(density=0.5)+raw+raw+none",
        "shape": "6",
        "input": _floats(1, -2, 2, -2, 1, -1),
    },
    "frame_rice_qsgd": {
        "why": "A quarter of a matrix in the codecs of the demo.",
        "kind": "frame",
        "settings": "topk(density=0.25)+rice+qsgd(bits=7, bucket=512)+none",
        **_PLACE,
        "shape": "5x8",
        "input": _gradient(40),
    },
    "frame_quant_signs_by_place": {
        "why": "Half of a matrix of few columns: signs by row and column, most of them those of a product.",
        "kind": "frame",
        "settings": "topk(density=0.5)+raw+quant(error=0.1)+none",
        "shape": "12x8",
        "input": _floats(
            *(
                ((37 * i) % 101 + 1)
                / 64
                * (-1 if (i // 8) % 3 == 0 else 1)
                * (-1 if i % 8 in (1, 4, 5, i // 11) else 1)
                for i in range(96)
            )
        ),
    },
    "frame_raw_fp16_of_float64": {
        "why": "A float64 gradient; its values go as halves.",
        "kind": "frame",
        "settings": "threshold(value=0.5)+raw+fp16+none",
        "dtype": "float64",
        "shape": "12",
        "input": _gradient(12, "<f8"),
    },
    "frame_randomk": {
        "why": "Positions follow from the key that ranks share, and are not sent.",
        "kind": "frame",
        "settings": "randomk(density=0.25)+rice+raw+none",
        **_PLACE,
        "shape": "3x7",
        "input": _gradient(21),
    },
    "frame_randomk_most": {
        "why": "Where more than half are kept, those that are not are drawn.",
        "kind": "frame",
        "settings": "randomk(density=0.9)+rice+fp16+none",
        **_PLACE,
        "shape": "2x5",
        "input": _gradient(10),
    },
    "frame_of_bfloat16": {
        "why": "A bfloat16 gradient is computed with, and sent by `raw`, as binary32.",
        "kind": "frame",
        "settings": "none+bitmap+raw+none",
        "dtype": "bfloat16",
        "shape": "4",
        "input": _floats(0.5, 0, -1.5, 0),
    },
    "frame_empty": {
        "why": "Nothing above the threshold.",
        "kind": "frame",
        "settings": "threshold(value=9)+rice+qsgd+residual",
        "shape": "3",
        "input": _floats(1, -2, 3),
    },
    "frame_not_finite": {
        "why": "A NaN is told to all ranks instead of anything else.",
        "kind": "frame",
        "settings": "topk+rice+qsgd+residual",
        "shape": "3",
        "input": "0000803f 0000c07f 0000803f",
    },
}
