"""`DistributedOptimizer`: Horovod's own, with sparse gradients merged and coded instead of sent as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import horovod.torch as hvd
import torch
from torch import nn

from hvd_deepreduce.checks import require_number
from hvd_deepreduce.contracts import Memory
from hvd_deepreduce.errors import InvalidSettingError, UnsupportedOperationError
from hvd_deepreduce.rows.settings import DEFAULT_ROWS, RowSettings
from hvd_deepreduce.settings import DEFAULT_TIMEOUT_S
from hvd_deepreduce.torch.compressor import DeepReduce
from hvd_deepreduce.torch.row_exchange import RowExchange

_HOOKS = ("_allreduce_grad_async", "_sparse_allreduce_grad_async")


def sparse_parameters(model: nn.Module) -> list[str]:
    """Names of the parameters that `nn.Embedding(sparse=True)` and `nn.EmbeddingBag(sparse=True)` hold in a model."""
    embeddings = (nn.Embedding, nn.EmbeddingBag)
    return [
        f"{name}.weight" if name else "weight"
        for name, module in model.named_modules()
        if isinstance(module, embeddings) and module.sparse
    ]


def DistributedOptimizer(  # noqa: N802 (as Horovod's)
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: Any = hvd.Compression.none,
    *,
    op: Any = hvd.Average,
    groups: Any = None,
    process_set: Any = hvd.global_process_set,
    rows: str | RowSettings | None = None,
    sparse: Iterable[str] = (),
    name: str | None = None,
    timeout: float | None = None,
    **others: Any,
) -> Any:
    """`horovod.torch.DistributedOptimizer` with sparse gradients merged by row, coded, and gathered.

    All else is Horovod's: dense gradients, `compression` of these, and every argument that is not named here.

    Args:
        optimizer: see Horovod.
        named_parameters: see Horovod.
        compression: see Horovod; a `DeepReduce` made without `named_parameters` gets all of these but `sparse`.
        op: `hvd.Average` or `hvd.Sum`.
        groups: refused, as Horovod can't reduce sparse gradients in groups.
        process_set: see Horovod.
        rows: how rows are coded, `rice+qsgd(bits=7, bucket=64)+residual` for instance. By default with the index codec,
            the value codec and the memory of a `DeepReduce`, and else without loss, `rice+raw`.
        sparse: names of parameters with sparse gradients (`sparse_parameters(model)`): needed where one may have no
            gradient on some rank before it ever had one there. Others are found when they come.
        name: tells optimizers in one process apart; by default that of the `DeepReduce`.
        timeout: seconds to wait for the other ranks before an error; by default that of the `DeepReduce`, or 300.

    The optimizer has an attribute `rows` more, a `RowExchange` with `stats()`, `report()`, `state_dict()`,
    `load_state_dict()` and `rollback()`. With one process there is nothing to exchange, and nothing is compressed.
    """
    if op not in (hvd.Average, hvd.Sum):
        raise UnsupportedOperationError("DistributedOptimizer: gathered rows allow op=Average and op=Sum only")
    if groups is not None:
        raise InvalidSettingError(
            "DistributedOptimizer: groups= takes no sparse gradients; use hvd.DistributedOptimizer where there are none"
        )
    named = None if named_parameters is None else list(named_parameters)
    declared = list(sparse)
    deep = compression if isinstance(compression, DeepReduce) else None
    if deep is not None and not deep.attached:
        if named is None:
            raise InvalidSettingError("DistributedOptimizer: give named_parameters, or make DeepReduce with them")
        deep.attach([(name, parameter) for name, parameter in named if name not in declared], process_set)
    settings = _row_settings(rows, deep)
    wrapped = hvd.DistributedOptimizer(optimizer, named, compression, op=op, process_set=process_set, **others)
    if not all(hasattr(wrapped, hook) for hook in (*_HOOKS, "_parameter_names")):
        raise InvalidSettingError(
            "DistributedOptimizer: this Horovod hands over sparse gradients in another way; needed is 0.28"
        )
    names: dict[torch.Tensor, str] = dict(wrapped._parameter_names)
    unknown = set(declared) - set(names.values())
    if unknown:
        raise InvalidSettingError(f"DistributedOptimizer: sparse={sorted(unknown)}: no parameters of these names")
    exchange = RowExchange(
        name or (deep.options["name"] if deep else "deepreduce"),
        settings,
        [(name, parameter) for parameter, name in names.items() if parameter.requires_grad],
        average=op == hvd.Average,
        process_set=process_set,
        timeout_s=_timeout(timeout, deep),
        sparse=declared,
        scale=deep.current_scale if deep else lambda: 1.0,
        flush=deep.flush if deep else lambda: None,
    )
    wrapped.rows = exchange
    _take_over(wrapped, exchange, names, compression)
    return wrapped


def _take_over(optimizer: Any, exchange: RowExchange, names: dict[torch.Tensor, str], compression: Any) -> None:
    """Horovod's optimizers ask a method of their own to exchange a sparse gradient; this one asks `exchange`."""
    stock: Callable[[torch.Tensor], Any] = optimizer._allreduce_grad_async

    def sparse_allreduce(parameter: torch.Tensor, name: str) -> tuple[Callable[[], torch.Tensor], Any]:
        assert parameter.grad is not None
        # As Horovod does, but for its own fp16, which fails on sparse gradients unless it is told the dtype.
        context = parameter.grad.dtype if compression is hvd.Compression.fp16 else None
        return exchange.start(name, parameter.grad, parameter), context

    def allreduce(parameter: torch.Tensor) -> Any:
        if parameter.grad is None and exchange.knows(names[parameter]) and not optimizer.sparse_as_dense:
            # Horovod would reduce dense zeros, and wait for ever for the ranks that gather rows.
            parameter.grad = _no_rows(parameter)
        return stock(parameter)

    optimizer._sparse_allreduce_grad_async = sparse_allreduce
    optimizer._allreduce_grad_async = allreduce


def _no_rows(parameter: torch.Tensor) -> torch.Tensor:
    return torch.sparse_coo_tensor(
        torch.empty((1, 0), dtype=torch.int64, device=parameter.device),
        torch.empty((0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device),
        parameter.shape,
        check_invariants=False,
        is_coalesced=True,
    )


def _row_settings(rows: str | RowSettings | None, deep: DeepReduce | None) -> RowSettings:
    seed = deep.settings.seed if deep else 0
    if isinstance(rows, RowSettings):
        return rows
    if rows is not None:
        return RowSettings.from_string(rows, seed)
    if deep is None:
        return RowSettings.from_string(DEFAULT_ROWS, seed)
    try:
        memory: Memory = deep.settings.memory
        return RowSettings(deep.settings.index, deep.settings.value, memory, seed)
    except InvalidSettingError as error:
        raise InvalidSettingError(
            f"{error}; say rows= for the sparse gradients, {DEFAULT_ROWS!r} for instance"
        ) from error


def _timeout(given: float | None, deep: DeepReduce | None) -> float:
    if given is None:
        return float(deep.options["timeout"]) if deep else DEFAULT_TIMEOUT_S
    require_number("DistributedOptimizer", "timeout", given, minimum=0.001)
    return given
