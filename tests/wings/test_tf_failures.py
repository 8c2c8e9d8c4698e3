"""Faults in real TensorFlow jobs: every rank that is left says what happened, in time, and no process is left."""

from __future__ import annotations

import pytest
from wings import failure_runs
from wings.failure_cases import TF_FAULTS, Fault
from wings.failure_runs import assert_said_in_time
from wings.make_failures_table import PAGE, beginning

pytestmark = pytest.mark.job


@pytest.fixture(scope="module", autouse=True)
def _start_all(request: pytest.FixtureRequest) -> None:
    """So that jobs which wait do so together."""
    here = [item for item in request.session.items if isinstance(item, pytest.Function)]
    for item in here:
        if item.function is test_every_rank_says_so_in_time:
            failure_runs.start(item.callspec.params["fault"], "gloo")


@pytest.mark.parametrize("fault", TF_FAULTS, ids=lambda fault: fault.name)
def test_every_rank_says_so_in_time(fault: Fault) -> None:
    assert_said_in_time(fault, "gloo")


@pytest.mark.parametrize("fault", TF_FAULTS, ids=lambda fault: fault.name)
def test_the_page_lists_it(fault: Fault) -> None:
    assert any(line.startswith(beginning(fault)) for line in PAGE.read_text().splitlines())
