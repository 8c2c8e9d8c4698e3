"""Trains a model with sparse embeddings, once for each way to exchange them, and prints a table. For `make demo-ncf`.

Each job is `horovodrun -np 2 python ncf.py --ways ...`; its output is kept, and shown when it fails.
"""

import argparse
import json
import time
from pathlib import Path

from rich.text import Text

from hvd_deepreduce.console import PlainConsole
from hvd_deepreduce.demo.horovod_job import JobError, run_script
from hvd_deepreduce.demo.progress import Standing, new_progress
from hvd_deepreduce.demo.ways import WAYS, Way, apart_table, ways_table

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Runs the jobs one after the other."""
    options, arguments = parse_options()
    console = PlainConsole()
    start = time.monotonic()
    try:
        ways = [run(way, options, arguments, console) for way in options.ways]
    except JobError as error:
        console.print(Text(error.output), soft_wrap=True)
        raise SystemExit(f"demo_ncf: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit("demo_ncf: interrupted") from None
    # Where the output is kept, a wide table is better than a folded one.
    console = PlainConsole(width=None if console.is_terminal else 130)
    console.print(ways_table(ways, f"{options.steps} steps on {options.ranks} ranks"))
    console.print(apart_table(ways))
    console.print(f"{len(ways)} jobs in {time.monotonic() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([way.as_dict() for way in ways], indent=2) + "\n")


def run(way: str, options: argparse.Namespace, arguments: list[str], console: PlainConsole) -> Way:
    """One job, under a bar where somebody watches."""
    script = ROOT / options.framework / "examples" / "ncf.py"
    command = [str(script), f"--steps={options.steps}", *arguments, "--ways", way]
    with new_progress(console) as progress:
        task = progress.add_task(way, total=options.steps, note="starting")

        def show(standing: Standing) -> None:
            progress.update(task, completed=standing.step, note=f"loss {standing.loss:.3f}")

        found = run_script(
            command,
            way,
            framework={"torch": "torch", "tf": "tensorflow"}[options.framework],
            ranks=options.ranks,
            mpi=options.mpi,
            limit_s=options.job_limit,
            show=show,
        )
        [result] = [Way.from_dict(fields) for fields in json.loads(found)]
        progress.update(task, note=f"{100 * result.hit_rate:.2f} %")
    return result


def parse_options() -> tuple[argparse.Namespace, list[str]]:
    """Reads the command line; what is unknown here is for `ncf.py`."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], epilog="Further options go to ncf.py: see its --help."
    )
    parser.add_argument("--ways", nargs="+", default=WAYS, metavar="WAY", help="default: %(default)s")
    parser.add_argument("--framework", choices=("torch", "tf"), default="torch", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=300, help="of each job; default: %(default)s")
    parser.add_argument("--ranks", type=int, default=2, help="processes on this machine; default: %(default)s")
    parser.add_argument("--mpi", action="store_true", help="let Horovod use MPI; Gloo otherwise")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there too")
    parser.add_argument("--job-limit", type=float, default=900, metavar="SECONDS", help="stop a job that takes longer")
    options, arguments = parser.parse_known_args()
    if options.steps < 1 or options.ranks < 2:
        parser.error("needed are --steps of 1 or more and --ranks of 2 or more")
    return options, arguments


if __name__ == "__main__":
    main()
