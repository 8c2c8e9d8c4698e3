"""What counts as a change of a gradient that was handed over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from hvd_deepreduce.errors import ChangedGradientError
from hvd_deepreduce.torch.handed import Handed


def clip(parameter: torch.nn.Parameter) -> None:
    torch.nn.utils.clip_grad_norm_([parameter], 0.01)


def clamp(parameter: torch.nn.Parameter) -> None:
    torch.nn.utils.clip_grad_value_([parameter], 0.01)


def scale(parameter: torch.nn.Parameter) -> None:
    assert parameter.grad is not None
    parameter.grad.mul_(0.5)


def replace(parameter: torch.nn.Parameter) -> None:
    assert parameter.grad is not None
    parameter.grad = parameter.grad * 0.5


def look(parameter: torch.nn.Parameter) -> None:
    assert parameter.grad is not None
    assert parameter.grad.norm().isfinite()


def dense() -> torch.nn.Parameter:
    parameter = torch.nn.Parameter(torch.ones(5))
    parameter.square().sum().backward()
    return parameter


def rows() -> torch.nn.Parameter:
    table = torch.nn.Embedding(10, 3, sparse=True)
    table(torch.tensor([1, 1, 4])).sum().backward()
    return table.weight


@pytest.mark.parametrize(
    ("make", "change", "verb"),
    [
        (dense, clip, "changed"),
        (dense, clamp, "changed"),
        (dense, scale, "changed"),
        (dense, replace, "replaced"),
        (dense, look, ""),
        (rows, scale, "changed"),
        (rows, replace, "replaced"),
        (rows, look, ""),
    ],
)
def test_a_change_is_found(
    make: Callable[[], torch.nn.Parameter], change: Callable[[torch.nn.Parameter], None], verb: str
) -> None:
    parameter = make()
    assert parameter.grad is not None
    handed = Handed.over(parameter.grad, parameter)
    change(parameter)
    if not verb:
        handed.require_unchanged("weight")
        return
    with pytest.raises(ChangedGradientError, match=rf"tensor 'weight': its gradient was {verb} .*skip_synchronize"):
        handed.require_unchanged("weight")


def test_gradients_in_one_storage_do_not_count_for_one_another() -> None:
    storage = torch.zeros(10)
    first, second = (torch.nn.Parameter(torch.ones(5)) for _ in range(2))
    first.grad, second.grad = storage[:5], storage[5:]
    handed = Handed.over(first.grad, first)
    second.grad.add_(1)
    handed.require_unchanged("first")


def test_a_copy_is_not_looked_for_in_the_parameter() -> None:
    parameter = rows()
    assert parameter.grad is not None
    Handed.over(parameter.grad.to_dense(), parameter).require_unchanged("table")
