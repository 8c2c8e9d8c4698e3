"""Training curves of every method: accuracy against steps and against bytes, over several seeds. `make curves`.

Every run is kept as JSON in the folder of `--runs`, so an interrupted call goes on where it stopped, and a new method
costs its own runs alone. Two runs go side by side, each on one core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

from curves.methods import METHODS  # noqa: E402
from curves.plot import draw  # noqa: E402
from curves.train import Curve, train  # noqa: E402
from rich.progress import Progress  # noqa: E402

PAGE = ROOT / "docs" / "training-curves.md"
MARK = "<!-- make curves -->"


def run(method: str, seed: int, steps: int, kept: Path) -> None:
    import torch

    torch.set_num_threads(1)
    curve = train(METHODS[method], seed, steps)
    part = kept.with_suffix(".part")
    part.write_text(json.dumps({"settings": METHODS[method], **asdict(curve)}))
    part.rename(kept)


def file_of(folder: Path, method: str, seed: int, steps: int) -> Path:
    slug = "".join(c if c.isalnum() else "-" for c in method)
    return folder / f"{slug}_seed{seed}_steps{steps}.json"


def read(path: Path, method: str) -> Curve:
    content = json.loads(path.read_text())
    if content.pop("settings") != METHODS[method]:
        raise SystemExit(f"make_curves: {path} is of other settings; remove it")
    return Curve(**content)


def table(curves: dict[str, list[Curve]]) -> str:
    dense = statistics.mean(curve.final_accuracy for curve in curves["dense"])
    lines = [
        "| method | settings | test accuracy, % (range over the seeds) | points from dense | bytes a rank and step |",
        "|---|---|---|---|---|",
    ]
    for method, runs in curves.items():
        ends = [100 * curve.final_accuracy for curve in runs]
        sent = statistics.mean(curve.sent_bytes[-1] / curve.steps[-1] for curve in runs)
        settings = f"`{METHODS[method]}`" if METHODS[method] else "none"
        accuracy = f"{statistics.mean(ends):.2f} ({min(ends):.2f} to {max(ends):.2f})"
        lines.append(
            f"| {method} | {settings} | {accuracy} | {statistics.mean(ends) - 100 * dense:+.2f} | {sent:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=ROOT / "build" / "curves", help="where runs are kept")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", choices=list(METHODS), action="append", help="only these, without plots")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    wanted = [(method, seed) for seed in range(options.seeds) for method in options.method or METHODS]
    places = {one: file_of(options.runs, *one, options.steps) for one in wanted}
    missing = [one for one in wanted if not places[one].exists()]
    with ProcessPoolExecutor(options.jobs) as pool, Progress() as progress:
        task = progress.add_task(f"{len(wanted)} runs", total=len(wanted), completed=len(wanted) - len(missing))
        for future in as_completed([pool.submit(run, *one, options.steps, places[one]) for one in missing]):
            future.result()
            progress.advance(task)
    if options.method:
        return
    curves = {m: [read(places[m, seed], m) for seed in range(options.seeds)] for m in METHODS}
    draw(curves, ROOT / "docs" / "images")
    before, mark, _ = PAGE.read_text().partition(MARK)
    if not mark:
        raise SystemExit(f"make_curves: {PAGE} has no line {MARK}")
    PAGE.write_text(f"{before}{MARK}\n\n{table(curves)}\n")
    print(table(curves))


if __name__ == "__main__":
    main()
