"""What every suite shares: Hypothesis profiles, and plain asserts that explain themselves in helper modules too."""

import os

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

pytest.register_assert_rewrite("conformance", "wings")
JOBS = "tests/wings/"
# Jobs that measure no time, and so may run beside the others.
TIMELESS = (
    "tests/docs/test_python_blocks.py",
    *(f"tests/wings/test_{name}.py" for name in ("tf_jobs", "tf_rows", "tf_examples", "torch_rows")),
)

# Derandomised by default, so that a run in CI is the run on a desk; HYPOTHESIS_PROFILE=search looks for new cases, and
# for twenty times as long (conformance/inputs.py).
_common = {"deadline": None, "database": None, "report_multiple_bugs": False, "print_blob": True}
settings.register_profile("ci", derandomize=True, suppress_health_check=[HealthCheck.too_slow], **_common)
settings.register_profile("search", max_examples=2000, suppress_health_check=[HealthCheck.too_slow], **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class JobsOneAfterAnother(LoadScopeScheduling):
    """Real jobs run in two rows, beside the other tests: each job fills the cores, and some measure time."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(TIMELESS):
            return "timeless jobs"
        return "jobs" if nodeid.startswith(JOBS) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> JobsOneAfterAnother:
    return JobsOneAfterAnother(config, log)
