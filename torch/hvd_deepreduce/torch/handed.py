"""Gradients that Horovod handed over must stay as they are until they are summed.

Horovod hands a gradient over within `backward()` and fetches the sum within `step()`: what is done to it in between is
lost. Horovod says nothing then; but clipping that does not clip is a wrong gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from hvd_deepreduce.errors import ChangedGradientError


class Handed(NamedTuple):
    """A gradient, and how it was when it was handed over."""

    gradient: torch.Tensor
    version: int
    parameter: torch.Tensor | None
    """Whose `.grad` it was; None for a copy."""

    @classmethod
    def over(cls, gradient: torch.Tensor, parameter: torch.Tensor) -> Handed:
        """Takes note of a gradient at the moment it is handed over."""
        return cls(gradient, gradient._version, parameter if parameter.grad is gradient else None)

    def require_unchanged(self, name: str) -> None:
        """Raises `ChangedGradientError` where it was written to, or another tensor was put into its place.

        Writing through `.data` leaves no trace. A view counts the writes to its whole storage, which is no fault of it.
        """
        written = self.gradient._version != self.version and not self.gradient._is_view()
        replaced = self.parameter is not None and self.parameter.grad is not self.gradient
        if written or replaced:
            raise ChangedGradientError(
                f"tensor {name!r}: its gradient was {'changed' if written else 'replaced'} between backward() and "
                "step(), after it was handed over to be sent, so the change would be lost. To clip or unscale "
                "gradients: optimizer.synchronize(), then the change, then "
                "'with optimizer.skip_synchronize(): optimizer.step()'"
            )
