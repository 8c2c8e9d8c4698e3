"""The suite's own test: each check passes the toys that are right and fails on those that are wrong in its way."""

import numpy as np
import pytest

from conformance import (
    toy_settings,  # noqa: F401 (importing it fills WRONG)
    value_checks,
)
from conformance.index_checks import INDEX_CHECKS
from conformance.sorting import Sorting
from conformance.stage_checks import STAGE_CHECKS
from conformance.test_error_feedback import check_error_feedback
from conformance.toy_index_codecs import PairsIndex, RightIndex
from conformance.toy_value_codecs import RightValues
from conformance.value_checks import VALUE_CHECKS
from conformance.wrong import WRONG
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparsifiers.topk import TopK


@pytest.mark.parametrize("check", [*STAGE_CHECKS, *INDEX_CHECKS], ids=lambda check: check.__name__)
def test_a_right_index_codec_passes(check):
    check(RightIndex())


@pytest.mark.parametrize("check", [*STAGE_CHECKS, *VALUE_CHECKS], ids=lambda check: check.__name__)
def test_a_right_value_codec_passes(check):
    check(RightValues())


def test_a_codec_that_sorts_passes():
    value_checks.order_preserving_as_declared(Sorting())


@pytest.mark.parametrize(
    ("check", "toy"), WRONG, ids=[f"{check.__name__}-{type(toy).__name__}" for check, toy in WRONG]
)
def test_a_wrong_codec_is_caught(check, toy):
    with pytest.raises(AssertionError):
        check(toy)


def test_every_check_has_something_to_catch():
    assert {check for check, _ in WRONG} == {*STAGE_CHECKS, *INDEX_CHECKS, *VALUE_CHECKS}


class ForgetsRounding(RightValues):
    """Lossy, claims to be exact: the sender then takes its values for what is received."""

    def encode(self, values, support, draw):
        return super().encode(np.round(values, 1), support, draw)


class ForgetsFalsePositives(PairsIndex):
    """Lossy, claims to be exact."""

    exact = True


class ForgetsWhatWasNotSent(Residual):
    def update(self, compensated, slots, sent):
        slots["residual"][:] = 0


class KeepsWhatWasSent(Residual):
    def update(self, compensated, slots, sent):
        pass


RIGHT = {"sparsifier": TopK(0.1), "index": RightIndex(), "value": RightValues(), "memory": Residual()}


@pytest.mark.parametrize("part", [{}, {"index": PairsIndex()}], ids=["exact", "lossy"])
def test_right_stages_lose_nothing(part):
    slots = check_error_feedback(Settings(**(RIGHT | part)))
    assert slots["residual"].any()


@pytest.mark.parametrize(
    "part",
    [
        {"value": ForgetsRounding()},
        {"index": ForgetsFalsePositives()},
        {"memory": ForgetsWhatWasNotSent()},
        {"memory": KeepsWhatWasSent()},
    ],
    ids=lambda part: type(next(iter(part.values()))).__name__,
)
def test_a_lost_part_of_a_gradient_is_caught(part):
    with pytest.raises((AssertionError, ValueError)):
        check_error_feedback(Settings(**(RIGHT | part)))
