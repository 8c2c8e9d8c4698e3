"""Runs one training job through `horovodrun` and brings back what it found."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from job_result import JobResult

from hvd_deepreduce.demo.progress import Standing

SCRIPT = Path(__file__).with_name("fashion_mnist.py")
NEEDED = ("torch", "horovod", "hvd_deepreduce")


class JobError(Exception):
    """A job could not be started or failed; `output` is what it printed."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


@dataclass(frozen=True)
class HorovodJob:
    """`fashion_mnist.py` with a compression and further arguments."""

    compression: str
    arguments: Sequence[str]
    ranks: int
    mpi: bool

    def run(self, limit_s: float, show: Callable[[Standing], None]) -> JobResult:
        """Blocks until the job ends; raises `JobError` when it fails or takes longer than `limit_s`."""
        command = [str(SCRIPT), f"--compression={self.compression}", *self.arguments]
        found = run_script(command, self.compression, ranks=self.ranks, mpi=self.mpi, limit_s=limit_s, show=show)
        return JobResult.from_json(found)


def run_script(
    command: Sequence[str], what: str, *, ranks: int, mpi: bool, limit_s: float, show: Callable[[Standing], None]
) -> str:
    """The JSON that a script writes under `horovodrun`; raises `JobError`, with `what` failed, as `HorovodJob.run`."""
    launcher = find_horovodrun(mpi)
    with tempfile.TemporaryDirectory(prefix="hvd_deepreduce_demo.") as folder:
        found = Path(folder) / "result.json"
        launch = [str(launcher), "--mpi" if mpi else "--gloo", "-np", str(ranks), sys.executable]
        status, output = _follow([*launch, *command, "--progress=steps", f"--json={found}"], limit_s, show)
        if status:
            raise JobError(f"the job {what} failed with status {status}; its output is above", output)
        if not found.is_file():
            raise JobError(f"the job {what} ended without a result; its output is above", output)
        return found.read_text()


def find_horovodrun(mpi: bool) -> Path:
    """The launcher beside this Python; raises `JobError` that says what is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise JobError(f"{sys.executable} has no {', '.join(missing)}: run `make env`, then use .venv/bin/python")
    beside = Path(sys.executable).with_name("horovodrun")
    launcher = beside if beside.is_file() else shutil.which("horovodrun")
    if launcher is None:
        raise JobError(f"no horovodrun beside {sys.executable} or on the PATH: run `make env`")
    if mpi and shutil.which("mpirun") is None:
        raise JobError("--mpi needs Open MPI's mpirun: apt-get install openmpi-bin")
    return Path(launcher)


def _follow(command: Sequence[str], limit_s: float, show: Callable[[Standing], None]) -> tuple[int, str]:
    """Runs a command, shows where it stands, and returns its status and all it printed."""
    lines: list[str] = []
    process = subprocess.Popen(
        command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout is not None
    alarm = threading.Timer(limit_s, process.terminate)
    alarm.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if standing := Standing.read(line):
                show(standing)
        status = process.wait()
    finally:
        late = not alarm.is_alive()
        alarm.cancel()
        if process.poll() is None:
            process.terminate()
            process.wait()
    if late:
        lines.append(f"stopped after {limit_s:g} s\n")
    return status, "".join(lines)


def _environment() -> dict[str, str]:
    # horovodrun imports TensorFlow, which has much to say about itself.
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1", **os.environ}
    if os.geteuid() == 0:
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment
