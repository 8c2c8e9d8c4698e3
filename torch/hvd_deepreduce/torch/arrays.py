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


def to_values(gradient: torch.Tensor, spec: TensorSpec) -> Values:
    """The elements in row-major order and the value dtype; may share the gradient's memory, so not for writing."""
    flat: Values = gradient.detach().reshape(-1).to("cpu", value_dtype(spec)).numpy()
    return flat


def writable(gradient: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """A flat tensor of the value dtype on the CPU, to be filled and handed to `write_back`."""
    gradient = gradient.detach()
    if gradient.is_contiguous() and gradient.device.type == "cpu" and gradient.dtype == value_dtype(spec):
        return gradient.view(-1)
    return torch.empty(spec.numel, dtype=value_dtype(spec))


def write_back(flat: torch.Tensor, gradient: torch.Tensor) -> None:
    """Puts what was written into `writable`'s tensor into the gradient's own storage."""
    gradient = gradient.detach()
    if flat.data_ptr() != gradient.data_ptr():
        gradient.copy_(flat.view(gradient.shape))
