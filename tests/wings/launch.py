"""Starts real horovodrun jobs and tells apart what each rank printed, and when."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

JOBS = Path(__file__).resolve().parent / "jobs"
# Gloo tags what ranks print as "[1]<stderr>:", Open MPI as "[1,1]<stderr>:" (job, rank), within lines too.
_TAG = re.compile(r"\[(?:\d+,)?(\d+)\]<(?:stdout|stderr)>:")
# Stands in the environment of every process of a job.
_MARK = "DEEPREDUCE_TEST_JOB"
# The launcher's own helpers end with its pipes, a moment after it.
_GRACE_S = 2.0


@dataclass
class JobResult:
    code: int
    output: str
    seconds: float
    ends: list[tuple[int, float]] = field(default_factory=list)
    """For every line: how long the output was with it, and when it came, in seconds after the start."""
    left: list[str] = field(default_factory=list)
    """Processes of the job that were there when the launcher had ended."""

    def of_rank(self, rank: int) -> str:
        return _of_rank(self.output, rank)

    def came_at(self, text: str, rank: int | None = None) -> float:
        """When `text` had come from a rank, or from anyone; infinity if it never did."""
        for end, seconds in self.ends:
            so_far = self.output[:end]
            if text in (_TAG.sub("", so_far) if rank is None else _of_rank(so_far, rank)):
                return seconds
        return float("inf")


def run_job(script: str, *arguments: str, ranks: int, backend: str, timeout_s: float = 300) -> JobResult:
    """Runs `jobs/<script>` on `ranks` processes of this machine; kills all of it at the time limit."""
    mark = uuid.uuid4().hex
    environment = os.environ | {
        _MARK: mark,
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    launcher = [sys.executable, "-m", "horovod.runner.launch", "-np", str(ranks), f"--{backend}"]
    if backend == "mpi":
        # Ranks that wait must leave the processor to the others: there may be fewer cores than ranks.
        launcher.append("--mpi-args=--mca mpi_yield_when_idle 1 --oversubscribe")
    command = [*launcher, sys.executable, str(JOBS / script), *arguments]
    start = time.monotonic()
    lines: list[str] = []
    ends: list[tuple[int, float]] = []

    def read() -> None:
        assert process.stdout is not None
        length = 0
        for line in process.stdout:
            lines.append(line)
            length += len(line)
            ends.append((length, time.monotonic() - start))

    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        reader = threading.Thread(target=read)
        reader.start()
        late = False
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - start
        # Before the pipe is read to its end: it ends with the last process that holds it.
        left = _kill_left(mark)
        reader.join()
    output = "".join(lines)
    if late:
        output += f"\n(killed after {timeout_s} s)"
    return JobResult(process.returncode, output, seconds, ends, left)


def _of_rank(output: str, rank: int) -> str:
    _, *tagged = _TAG.split(output)
    return "".join(text for tag, text in zip(tagged[::2], tagged[1::2], strict=True) if int(tag) == rank)


def _kill_left(mark: str) -> list[str]:
    """Kills what carries a job's mark in its environment and does not end by itself in time; tells what it was."""
    deadline = time.monotonic() + _GRACE_S
    while _marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = _marked(mark)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return [f"{process}: {command}" for process, command in left.items()]


def _marked(mark: str) -> dict[int, str]:
    """The command of every such process; a zombie has no environment left to look at."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is none of ours
            if f"{_MARK}={mark}".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(bytes(1), b" ").decode().strip()
    return found
