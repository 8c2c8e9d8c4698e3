"""Starts real horovodrun jobs and tells apart what each rank printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

JOBS = Path(__file__).resolve().parent / "jobs"
# Gloo tags what ranks print as "[1]<stderr>:", Open MPI as "[1,1]<stderr>:" (job, rank), within lines too.
_TAG = re.compile(r"\[(?:\d+,)?(\d+)\]<(?:stdout|stderr)>:")


@dataclass
class JobResult:
    code: int
    output: str
    seconds: float

    def of_rank(self, rank: int) -> str:
        _, *tagged = _TAG.split(self.output)
        return "".join(text for tag, text in zip(tagged[::2], tagged[1::2], strict=True) if int(tag) == rank)


def run_job(script: str, *arguments: str, ranks: int, backend: str, timeout_s: float = 300) -> JobResult:
    """Runs `jobs/<script>` on `ranks` processes of this machine; kills all of it at the time limit."""
    environment = os.environ | {
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
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\n(killed after {timeout_s} s)"
    return JobResult(process.returncode, output, time.monotonic() - start)
