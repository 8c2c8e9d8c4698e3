"""Trains the same net four times, dense and compressed, and prints one table.

Each job is `horovodrun -np 2 python fashion_mnist.py --compression ...`; its output is kept, and shown when it fails.
"""

import argparse
import json
import time
from pathlib import Path

from rich.progress import Progress, TaskID
from rich.text import Text

from hvd_deepreduce.console import PlainConsole
from hvd_deepreduce.demo.horovod_job import HorovodJob, JobError
from hvd_deepreduce.demo.job_result import JobResult, result_table
from hvd_deepreduce.demo.progress import Standing, new_progress

COMPRESSIONS = ("dense", "fp16", "topk(density=0.01)+rice+qsgd(bits=7)", "topk(density=0.001)+rice+qsgd(bits=7)")


def compare(script: Path, framework: str) -> None:
    """Runs the jobs one after the other; `script` trains with `framework`."""
    options = parse_options()
    console = PlainConsole()
    start = time.monotonic()
    try:
        results = run_jobs(script, framework, options, console)
    except JobError as error:
        console.print(Text(error.output), soft_wrap=True)
        raise SystemExit(f"demo: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("demo: interrupted") from None
    # Where the output is kept, a wide table is better than a folded one.
    console = PlainConsole(width=None if console.is_terminal else 130)
    console.print()
    console.print(result_table(results))
    console.print(f"{len(results)} jobs in {time.monotonic() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([json.loads(result.to_json()) for result in results], indent=2) + "\n")


def run_jobs(script: Path, framework: str, options: argparse.Namespace, console: PlainConsole) -> list[JobResult]:
    """With a bar for each job where somebody watches, else with lines."""
    jobs = [
        HorovodJob(script, framework, compression, job_arguments(options), options.ranks, options.mpi)
        for compression in COMPRESSIONS
    ]
    if not console.is_terminal:
        return [run_with_lines(job, options.job_limit) for job in jobs]
    with new_progress(console) as progress:
        for job in jobs:
            progress.add_task(job.compression, start=False, total=options.steps, note="")
        return [
            run_with_bar(job, options.job_limit, progress, task.id)
            for job, task in zip(jobs, progress.tasks, strict=True)
        ]


def run_with_bar(job: HorovodJob, limit_s: float, progress: Progress, task: TaskID) -> JobResult:
    """Moves the job's bar along."""

    def show(standing: Standing) -> None:
        if standing.step and not progress.tasks[task].started:
            progress.start_task(task)
        progress.update(task, completed=standing.step, note=f"loss {standing.loss:.3f}")

    progress.update(task, note="starting")
    result = job.run(limit_s, show)
    progress.update(task, note=f"{100 * result.accuracy:.2f} %")
    return result


def run_with_lines(job: HorovodJob, limit_s: float) -> JobResult:
    """Prints a line per tenth of the job."""
    shown = 0

    def show(standing: Standing) -> None:
        nonlocal shown
        if 10 * standing.step // standing.steps > shown:
            shown = 10 * standing.step // standing.steps
            print(f"{job.compression}: {standing.line()}", flush=True)

    print(f"{job.compression}: starting", flush=True)
    return job.run(limit_s, show)


def job_arguments(options: argparse.Namespace) -> list[str]:
    """What every job is told."""
    arguments = [f"--steps={options.steps}", f"--seed={options.seed}"]
    return [*arguments, f"--data={options.data}"] if options.data else arguments


def parse_options() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1200, help="of each job; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=2, help="processes on this machine; default: %(default)s")
    parser.add_argument("--mpi", action="store_true", help="let Horovod use MPI; Gloo otherwise")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with Fashion-MNIST's IDX files, .gz or not")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there too")
    parser.add_argument("--job-limit", type=float, default=900, metavar="SECONDS", help="stop a job that takes longer")
    options = parser.parse_args()
    if options.steps < 1 or options.ranks < 2:
        parser.error("needed are --steps of 1 or more and --ranks of 2 or more")
    return options
