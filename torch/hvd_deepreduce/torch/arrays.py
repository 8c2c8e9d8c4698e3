"""PyTorch tensors <-> flat NumPy arrays in row-major order."""

from __future__ import annotations

import torch

from hvd_deepreduce.sparse import TensorSpec, Values

_DTYPE_NAMES = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}
_VALUE_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def dtype_name(tensor: torch.Tensor) -> str | None:
    """The core's name of a tensor's dtype; None for dtypes that are not compressed."""
    return _DTYPE_NAMES.get(tensor.dtype)


def value_dtype(spec: TensorSpec) -> torch.dtype:
    """What residuals of this tensor are kept in."""
    return _VALUE_DTYPES[spec.value_dtype.name]


def overlaps_itself(gradient: torch.Tensor) -> bool:
    """Whether elements share storage, as those of an expanded tensor do: then nothing can be written there."""
    return 0 in gradient.stride() and not gradient.is_contiguous()


def shares_memory(gradient: torch.Tensor, dtype: torch.dtype, scale: float) -> bool:
    """Whether `to_values` is a view of the gradient, so that what is written there is written to the gradient."""
    return scale == 1 and gradient.dtype is dtype and gradient.is_cpu and gradient.is_contiguous()


def to_values(gradient: torch.Tensor, dtype: torch.dtype, scale: float) -> Values:
    """gradient / scale as a flat array in row-major order and a value dtype; the gradient requires none itself."""
    if shares_memory(gradient, dtype, scale):
        values: Values = gradient.numpy().reshape(-1)
        return values
    flat = gradient.to("cpu", dtype).reshape(-1).contiguous()
    copied: Values = (flat if scale == 1 else flat / scale).numpy()
    return copied


def write_back(values: Values, gradient: torch.Tensor, dtype: torch.dtype, scale: float) -> None:
    """Copies values x scale into the gradient's own storage, unless they lie there already; see `to_values`."""
    if not shares_memory(gradient, dtype, scale):
        flat = torch.from_numpy(values)
        gradient.copy_((flat if scale == 1 else flat * scale).view(gradient.shape))
