"""Makes the faults of failure_cases.py with real jobs, several at a time: most of them wait for a time limit."""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache

from wings.failure_cases import FAULTS, TF_FAULTS, TIMEOUT_S, UNCAUGHT, Fault
from wings.launch import JobResult, run_job

BACKENDS = ("gloo", "mpi")
FAULTY_RANK = 1
_LAUNCHER_SAYS = (f"Process name: {FAULTY_RANK}", "Exit code: ")
_AT_A_TIME = 4
_jobs = ThreadPoolExecutor(_AT_A_TIME)
_started: list[Future[JobResult]] = []


@dataclass(frozen=True)
class Outcome:
    job: JobResult
    missing: list[str]
    """What was to be said and was not."""
    message_s: float
    """From the fault until the last rank that is left had begun to say so,"""
    over_s: float
    """and from then to the end of the job."""
    first_code: int | None
    """Of the rank that failed first, by the launcher's words; what it says of ranks that it killed may be wrong."""

    def holds(self, fault: Fault) -> bool:
        """Whether all was said, and in time."""
        if self.missing or self.message_s > fault.within_s:
            return False
        return fault.caught or (self.over_s <= fault.over_within_s and self.first_code in fault.codes)


def start(fault: Fault, backend: str, ranks: int = 2) -> Future[JobResult]:
    """The job that makes a fault; one for all that a script catches."""
    return _start(fault.script, _arguments(fault), ranks, backend)


def _arguments(fault: Fault) -> tuple[str, ...]:
    if fault.caught:
        return tuple(one.name for one in (*FAULTS, *TF_FAULTS) if one.caught and one.script == fault.script)
    timeout = ("--timeout", str(TIMEOUT_S)) if fault.script == "absent.py" else ()
    return (*fault.arguments, *timeout)


@cache
def _start(script: str, arguments: tuple[str, ...], ranks: int, backend: str) -> Future[JobResult]:
    _started.append(_jobs.submit(run_job, script, *arguments, ranks=ranks, backend=backend, timeout_s=90))
    return _started[-1]


def observe_fairly(fault: Fault, backend: str, ranks: int = 2) -> Outcome:
    """As `observe`; what came late among other jobs, on a machine that was full, is judged again by itself."""
    outcome = observe(fault, backend, ranks)
    if outcome.holds(fault):
        return outcome
    wait(_started)
    return _outcome(
        fault, backend, ranks, run_job(fault.script, *_arguments(fault), ranks=ranks, backend=backend, timeout_s=90)
    )


def assert_said_in_time(fault: Fault, backend: str, ranks: int = 2) -> JobResult:
    """Every rank that is left says what happened, in time; the job ends as it must, and nothing is left of it."""
    outcome = observe_fairly(fault, backend, ranks)
    job = outcome.job
    assert not outcome.missing, job.output
    assert outcome.message_s <= fault.within_s, job.output
    assert not job.left
    assert "NO ERROR" not in job.output, job.output
    if fault.caught:
        assert job.code == 0, job.output
        return job
    assert outcome.over_s <= fault.over_within_s, job.output
    assert job.code != 0
    assert outcome.first_code in fault.codes, job.output
    return job


def observe(fault: Fault, backend: str, ranks: int = 2) -> Outcome:
    """What came of a fault, and when."""
    return _outcome(fault, backend, ranks, start(fault, backend, ranks).result())


def _outcome(fault: Fault, backend: str, ranks: int, job: JobResult) -> Outcome:
    missing, times = [], []
    if backend in fault.launcher:
        parts = fault.launcher[backend]
        missing += [part for part in parts if job.came_at(part) == float("inf")]
        times.append(job.came_at(parts[0]))
    else:
        for rank in range(ranks):
            if not fault.caught and fault is not UNCAUGHT and rank == FAULTY_RANK:
                continue
            parts = tuple(part.replace("{rank}", str(rank)) for part in fault.says)
            said = _caught(job, fault, rank) if fault.caught else job.of_rank(rank)
            if parts[0] not in said and _ended_by_launcher(job, rank):
                missing += [part for part in _LAUNCHER_SAYS if part not in job.output]
                times.append(job.came_at(_LAUNCHER_SAYS[0]))
                continue
            missing += [f"rank {rank}: {part}" for part in parts if part not in said]
            times.append(job.came_at(f"CAUGHT {fault.name} " if fault.caught else parts[0], rank))
    began = job.came_at(f"FAULT {fault.arguments[0] if fault.script == 'absent.py' else fault.name}", FAULTY_RANK)
    return Outcome(job, missing, max(0.0, max(times) - began), job.seconds - max(times), _first_code(job))


def _ended_by_launcher(job: JobResult, rank: int) -> bool:
    """Gloo's launcher ends all ranks as soon as one has failed, now and then before they have said what they saw."""
    return f"Process {rank} exit with status code 143" in job.output


def _caught(job: JobResult, fault: Fault, rank: int) -> str:
    lines = job.of_rank(rank).splitlines()
    return next((line for line in lines if line.startswith(f"CAUGHT {fault.name} ")), "")


def _first_code(job: JobResult) -> int | None:
    if ended := re.search(r"Exit code: +(\d+)", job.output):
        return int(ended[1])
    killed = re.search(r"exited on signal (\d+)", job.output)
    return 128 + int(killed[1]) if killed else None
