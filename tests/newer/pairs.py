"""Tries pairs of TensorFlow and Keras that Horovod 0.28.1 was not made for; docker/try_tensorflow.sh starts it.

Not part of the test suite: it runs in an environment of its own, made by that script. The jobs are real ones on several
ranks: those of tests/wings where Keras 2 is there (`tf_keras`), and one of this folder's for Keras 3.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "wings"))

from launch import JobResult, run_job

_KERAS_2, _KERAS_3 = (str(Path(__file__).resolve().parent / "jobs" / name) for name in ("keras2.py", "keras3.py"))
_LIMIT_S = 300


class Pair(NamedTuple):
    """A job under one of the two Keras; it must print `wanted` on every rank and end well."""

    keras: int
    script: str
    arguments: Sequence[str]
    wanted: str
    backend: str = "gloo"
    ranks: int = 2


PAIRS = {
    "keras2-options": Pair(2, _KERAS_2, [], "OPTIONS ok"),
    "keras2-options-mpi": Pair(2, _KERAS_2, ["basics"], "OPTIONS ok", "mpi"),
    "keras2-process-set": Pair(2, _KERAS_2, ["basics", "process_set"], "OPTIONS ok", ranks=3),
    "keras2-checkpoint": Pair(2, "tf_checkpoint.py", ["{folder}", "first", "second"], "CHECKPOINT ok"),
    "keras2-rows": Pair(2, "tf_rows.py", [], "ROWS ok"),
    "keras2-stock": Pair(2, _KERAS_2, ["stock"], "OPTIONS ok"),
    "keras3-tape": Pair(3, _KERAS_3, ["tape"], "KERAS 3 ok"),
    "keras3-tape-mpi": Pair(3, _KERAS_3, ["tape"], "KERAS 3 ok", "mpi"),
    "keras3-own-tape": Pair(3, _KERAS_3, ["own_tape"], "KERAS 3 ok"),
    "keras3-tape-options": Pair(3, _KERAS_3, ["tape_options"], "KERAS 3 ok"),
    "keras3-process-set": Pair(3, _KERAS_3, ["process_set"], "KERAS 3 ok", ranks=3),
    "keras3-fit": Pair(3, _KERAS_3, ["fit", "other_optimizers"], "KERAS 3 ok"),
    "keras3-fit-mpi": Pair(3, _KERAS_3, ["fit"], "KERAS 3 ok", "mpi"),
    "keras3-saving": Pair(3, _KERAS_3, ["saving"], "KERAS 3 ok"),
    "keras3-refusals": Pair(3, _KERAS_3, ["refusals"], "KERAS 3 ok"),
    "keras3-rows": Pair(3, "tf_rows.py", [], "ROWS ok"),
    "keras3-stock": Pair(3, _KERAS_3, ["stock"], "KERAS 3 ok"),
}


def run(pair: Pair) -> JobResult:
    os.environ["TF_USE_LEGACY_KERAS"] = "1" if pair.keras == 2 else "0"
    with tempfile.TemporaryDirectory() as folder:
        arguments = [one.format(folder=folder) for one in pair.arguments]
        return run_job(pair.script, *arguments, ranks=pair.ranks, backend=pair.backend, timeout_s=_LIMIT_S)


def main() -> int:
    chosen = sys.argv[1:] or list(PAIRS)
    unknown = [name for name in chosen if name not in PAIRS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(PAIRS)}", file=sys.stderr)
        return 2
    packages = ("tensorflow-cpu", "keras", "tf_keras", "horovod", "numpy")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages), flush=True)
    failed = 0
    for name in chosen:
        start, pair = time.monotonic(), PAIRS[name]
        job = run(pair)
        good = job.code == 0 and all(pair.wanted in job.of_rank(rank) for rank in range(pair.ranks))
        failed += not good
        print(f"{name:20} {'works' if good else 'FAILS'}  {time.monotonic() - start:5.0f} s", flush=True)
        for line in job.of_rank(0).splitlines() if good else job.output.splitlines():
            if not good or line.startswith("stock "):
                print(f"    {line}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
