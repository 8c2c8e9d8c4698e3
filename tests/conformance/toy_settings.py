"""Stages whose settings are wrong in one way each."""

from dataclasses import dataclass, field
from typing import ClassVar

from conformance import stage_checks
from conformance.wrong import caught_by
from hvd_deepreduce.contracts import Stage
from hvd_deepreduce.errors import InvalidSettingError


@caught_by(stage_checks.settings_round_trip)
@dataclass(frozen=True)
class HasASetting(Stage):
    """JSON makes a list of it."""

    name: ClassVar[str] = "toy"
    sizes: tuple[int, ...] = (1, 2)


@caught_by(stage_checks.settings_round_trip)
@dataclass(frozen=True)
class HidesASetting(Stage):
    name: ClassVar[str] = "toy"
    rate: float = field(default=0.5, repr=False, compare=True)

    def __repr__(self):
        return "HidesASetting(rate=0.25)"


@caught_by(stage_checks.is_frozen)
@dataclass(unsafe_hash=True)
class IsNotFrozen(Stage):
    name: ClassVar[str] = "toy"
    rate: float = 0.5


@caught_by(stage_checks.refuses_unknown_settings_when_made)
@dataclass(frozen=True)
class TakesAnything(Stage):
    name: ClassVar[str] = "toy"
    rate: float = 0.5


@caught_by(stage_checks.refuses_unknown_settings_when_made)
@dataclass(frozen=True)
class RefusesWithoutAReason(Stage):
    name: ClassVar[str] = "toy"
    rate: float = 0.5

    def __post_init__(self):
        if self.rate != 0.5:
            raise InvalidSettingError("no")
