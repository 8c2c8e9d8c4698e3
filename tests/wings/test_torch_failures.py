"""Faults in real jobs: every rank that is left says what happened, in time, and nothing is left of the job."""

from __future__ import annotations

from pathlib import Path

import pytest
from wings import failure_runs
from wings.failure_cases import FAULTS, UNCAUGHT, Fault
from wings.failure_runs import BACKENDS, assert_said_in_time
from wings.make_failures_table import PAGE, beginning

pytestmark = pytest.mark.job
CASES = [(fault, backend, 2) for fault in (*FAULTS, UNCAUGHT) for backend in BACKENDS]
# Where it matters that the faulty rank is neither the first nor the last.
THREE = [(fault, "gloo", 3) for fault in FAULTS if fault.name in ("damaged", "damaged_frame", "step_before", "stalled")]


def _id(value: object) -> str:
    if isinstance(value, Fault):
        return value.name if value.caught or value is not UNCAUGHT else "uncaught"
    return str(value)


@pytest.fixture(scope="module", autouse=True)
def _start_all(request: pytest.FixtureRequest) -> None:
    """So that jobs which wait do so together, the longest first."""
    here = [item for item in request.session.items if isinstance(item, pytest.Function)]
    wanted = [item.callspec.params for item in here if item.function is test_every_rank_says_so_in_time]
    for parameters in sorted(wanted, key=lambda one: -one["fault"].over_within_s):
        failure_runs.start(**parameters)


@pytest.mark.parametrize(("fault", "backend", "ranks"), CASES + THREE, ids=_id)
def test_every_rank_says_so_in_time(fault: Fault, backend: str, ranks: int) -> None:
    job = assert_said_in_time(fault, backend, ranks)
    if fault.caught:
        assert "not every rank answered" not in job.output


def test_a_bundle_that_ends_early_before_another_is_refused() -> None:
    """What follows takes the place of the missing bytes, so the checksum is what tells."""
    [fault] = [fault for fault in FAULTS if fault.name == "truncated"]
    job = failure_runs.start(fault, "gloo", 3).result()
    for rank in range(3):
        assert "CAUGHT truncated CorruptPayloadError: bucket 2, step 2, rank 1" in job.of_rank(rank), job.output


@pytest.mark.parametrize("fault", FAULTS, ids=_id)
def test_the_page_lists_it(fault: Fault) -> None:
    assert any(line.startswith(beginning(fault)) for line in Path(PAGE).read_text().splitlines())
