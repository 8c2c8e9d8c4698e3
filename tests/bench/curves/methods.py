"""The methods whose training is compared, by the name in the plots: settings, or None for dense."""

from __future__ import annotations

MOMENTUM = 0.8
TOP = "topk(density=0.01)"

METHODS: dict[str, str | None] = {
    "dense": None,
    "top-r 1 %": f"{TOP}+raw+raw",
    "BF-P0": f"{TOP}+bloom(policy='p0')+raw",
    "BF-P2": f"{TOP}+bloom(policy='p2')+raw",
    "BF-naive": f"{TOP}+bloom(policy='naive')+raw",
    "Fit-Poly": f"{TOP}+raw+fit_poly",
    "Fit-DExp": f"{TOP}+raw+fit_dexp",
    "BF-P0 + QSGD": f"{TOP}+bloom(policy='p0')+qsgd(bits=7)",
    "dropping 99 %": "dropping(rate=0.99)+raw+raw",
    "dropping 99 %, 1 bit": "dropping(rate=0.99)+raw+onebit",
    "dropping 99 %, 2 bits": "dropping(rate=0.99)+raw+twobit",
    "dropping 99 %, no residual": "dropping(rate=0.99)+raw+raw+none",
    "dropping 99 %, 1 bit, no residual": "dropping(rate=0.99)+raw+onebit+none",
    "dropping 99 %, 2 bits, no residual": "dropping(rate=0.99)+raw+twobit+none",
    "DGC 0.1 %": f"dgc(density=0.001, warmup=120)+rice+raw+dgc(momentum={MOMENTUM})",
    "default": f"{TOP}+rice+qsgd(bits=7)",
}


def optimizer_momentum(settings: str | None) -> float:
    """DGC's memory has the momentum in it."""
    return 0.0 if settings is not None and "+dgc(" in settings else MOMENTUM
