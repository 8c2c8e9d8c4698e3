"""A step of a 100-tensor model on two ranks over loopback: how much of coding hides behind the backward pass.

Dense, compressed in the caller's thread (`overlap=False`) and compressed on a thread beside it run block by block in
turn, in one job. `--plot FILE` draws one step of each as a timeline; `--trace FOLDER` leaves files for chrome://tracing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS, WIDTH, BATCH = 50, 256, 64
BLOCKS, STEPS = 10, 8
SETTINGS = "topk(density=0.01)+rice+qsgd(bits=7)"
BUCKET_BYTES = 2**20


def work(folder: Path) -> None:
    import horovod.torch as hvd
    import torch
    from torch import nn

    from hvd_deepreduce import Timeline
    from hvd_deepreduce.timeline import span
    from hvd_deepreduce.torch import DeepReduce

    torch.set_num_threads(1)
    hvd.init()
    runs, timelines = {}, {}
    for name in ("dense", "overlap=False", "overlap=True"):
        torch.manual_seed(0)
        model = nn.Sequential(*(layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())))
        named = [(f"{name}.{key}", parameter) for key, parameter in model.named_parameters()]
        compression = hvd.Compression.none
        timelines[name] = Timeline()
        if name != "dense":
            compression = DeepReduce.from_string(
                named,
                SETTINGS,
                name=name,
                min_numel=1,
                bucket_bytes=BUCKET_BYTES,
                overlap=name == "overlap=True",
                timeline=timelines[name],
            )
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        runs[name] = model, hvd.DistributedOptimizer(optimizer, named, compression=compression), compression
    inputs = torch.randn(BATCH, WIDTH)

    def step(name: str) -> None:
        model, optimizer, _ = runs[name]
        optimizer.zero_grad()
        with span(timelines[name], "forward"):
            loss = model(inputs).square().mean()
        with span(timelines[name], "backward"):
            loss.backward()
        with span(timelines[name], "synchronize"):
            optimizer.synchronize()
        with optimizer.skip_synchronize(), span(timelines[name], "step"):
            optimizer.step()

    times: dict[str, list[float]] = {name: [] for name in runs}
    for block in range(BLOCKS + 1):
        for name in runs:
            start = time.perf_counter()
            for _ in range(STEPS):
                timelines[name].events.clear()  # the last step is kept
                step(name)
            if block:  # the first one warms up
                times[name].append(1e3 * (time.perf_counter() - start) / STEPS)
    if hvd.rank() != 0:
        return
    for name, blocks in times.items():
        ratio = statistics.median(mine / dense for mine, dense in zip(blocks, times["dense"], strict=True))
        print(f"{name:14} {statistics.median(blocks):8.2f} ms per step, {ratio:.2f} of dense")
        timelines[name].save(folder / f"{name}.json")
        if name != "dense":
            total, steps = runs[name][2].stats()["total"], (BLOCKS + 1) * STEPS
            parts = ", ".join(f"{what} {total[f'{what}_ms'] / steps:.2f}" for what in ("encode", "wait", "decode"))
            print(f"{'':14} of it: {parts} ms")


def draw(folder: Path, picture: Path) -> None:
    """One row per thread, one block per variant."""
    import json

    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    colours = {
        "forward": "#9ecae1",
        "backward": "#3182bd",
        "synchronize": "#d9d9d9",
        "step": "#756bb1",
        "encode": "#e6550d",
        "wait": "#fdae6b",
        "decode": "#31a354",
    }
    plots = sorted(folder.glob("*.json"))
    figure, axes = plt.subplots(len(plots), 1, figsize=(10, 1.4 * len(plots) + 0.8), sharex=True)
    for axis, path in zip(axes, plots, strict=True):
        events = json.loads(path.read_text())["traceEvents"]
        first = min(event["ts"] for event in events)
        inner = {"encode", "wait", "decode"}
        lanes = ["training", "inside", "coding thread"]
        for event in sorted(events, key=lambda event: event["name"] in inner):
            own = event["tid"].endswith("coding_0")
            lane = 2 if own else int(event["name"] in inner)
            bar = [((event["ts"] - first) / 1e3, event["dur"] / 1e3)]
            axis.broken_barh(bar, (lane - 0.4, 0.8), color=colours[event["name"]], linewidth=0)
        axis.set_yticks(range(len(lanes)), lanes)
        axis.invert_yaxis()
        axis.set_title(path.stem, loc="left", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("ms since the step began")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(handles, colours, ncol=len(colours), loc="upper center", frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plot", type=Path, help="draw the timelines there (.svg, .png)")
    parser.add_argument("--trace", type=Path, help="leave the timelines there as JSON")
    parser.add_argument("--backend", choices=("gloo", "mpi"), default="gloo")
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
        return
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
    }
    print(f"{2 * LAYERS} tensors, {LAYERS * WIDTH * (WIDTH + 1):,} elements, 2 ranks, {options.backend}, {SETTINGS}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.trace or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        launcher = [sys.executable, "-m", "horovod.runner.launch", "-np", "2", f"--{options.backend}"]
        command = [*launcher, sys.executable, __file__, "--worker", str(folder)]
        subprocess.run(command, check=True, env=environment)
        if options.plot:
            draw(folder, options.plot)


if __name__ == "__main__":
    main()
