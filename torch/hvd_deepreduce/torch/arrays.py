"""PyTorch tensors <-> flat ones in row-major order, of the dtype that residuals are kept in."""

from __future__ import annotations

from typing import Any

import torch

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.rows.merge import Rows, table_of
from hvd_deepreduce.sparse import TensorSpec

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


def to_flat(gradient: torch.Tensor, dtype: torch.dtype, scale: float) -> torch.Tensor:
    """gradient / scale as a flat tensor in row-major order and a value dtype; a view where that can be."""
    flat = gradient.reshape(-1).contiguous()
    if flat.dtype is not dtype:
        flat = flat.to(dtype)
    return flat if scale == 1 else flat / scale


def write_back(flat: torch.Tensor, gradient: torch.Tensor, scale: float) -> None:
    """Copies flat x scale into the gradient's own storage, unless it lies there already; see `to_flat`."""
    if flat.data_ptr() != gradient.data_ptr() or flat.dtype is not gradient.dtype:
        gradient.copy_((flat if scale == 1 else flat * scale).view(gradient.shape))


def copy_of(slot: Any) -> torch.Tensor:
    """A slot's content as a tensor of its own on the host; slots are arrays or tensors."""
    return torch.as_tensor(slot).detach().to("cpu", copy=True)


def fill(slot: Any, content: torch.Tensor) -> None:
    """Overwrites a slot, wherever it lies."""
    torch.as_tensor(slot).copy_(content)


def merged_rows(gradient: torch.Tensor, spec: TensorSpec, scale: float) -> Rows:
    """The rows of a sparse gradient / scale on the host, each once, in a value dtype; they may share its memory."""
    if gradient.layout is not torch.sparse_coo or gradient.sparse_dim() != 1 or tuple(gradient.shape) != spec.shape:
        raise DeepReduceError(
            f"tensor {spec.name!r}: a sparse gradient of layout {gradient.layout} and shape {tuple(gradient.shape)}; "
            f"needed are rows of {spec.shape}, as nn.Embedding(sparse=True) makes them"
        )
    table = table_of(spec)
    values = gradient._values().reshape(gradient._nnz(), table.columns).to(value_dtype(spec))
    # On the gradient's own device; rows that are there twice are summed in the order they stand in.
    merged = torch.sparse_coo_tensor(
        gradient._indices(),
        values,
        (table.rows, table.columns),
        check_invariants=False,
        is_coalesced=gradient.is_coalesced(),
    ).coalesce()
    values = merged.values() if scale == 1 else merged.values() / scale
    return Rows(merged.indices()[0].cpu().numpy(), values.cpu().numpy())


def sparse_like(rows: Rows, gradient: torch.Tensor, scale: float) -> torch.Tensor:
    """Merged rows x scale as a sparse gradient of the dtype, shape and device of another one."""
    values = torch.from_numpy(rows.values) if scale == 1 else torch.from_numpy(rows.values) * scale
    return torch.sparse_coo_tensor(
        torch.from_numpy(rows.numbers)[None],
        values.view(len(rows.numbers), *gradient.shape[1:]).to(gradient.dtype),
        gradient.shape,
        device=gradient.device,
        check_invariants=False,
        is_coalesced=True,
    )
