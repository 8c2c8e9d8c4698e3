"""What one tensor costs a rank, from gradient to frame and back, as multiples of one copy of it; one thread.

The unit is `dst.copy_(src)` into memory that is already there, timed in turn with the rows. Beside the times: by how
much the process grew at most, beyond residual and gradient, in bytes per element.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from hvd_deepreduce import Settings
from hvd_deepreduce.batch import EncodeJob, make_batch
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

NUMELS = (25_000_000, 2_000_000, 36_864)
DENSITY = 0.01


def inputs(numel: int) -> dict[str, np.ndarray]:
    values = np.empty(numel, np.float32)
    np.random.default_rng(0).standard_normal(out=values, dtype=np.float32)
    spike = np.zeros(numel, np.float32)
    spike[numel // 3] = 1e30
    return {
        "Gaussian": values,
        "all equal": np.ones(numel, np.float32),
        "all zero": np.zeros(numel, np.float32),
        "one spike": spike,
    }


def memory_kib(what: str) -> int:
    return int(re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text()).group(1))


class Table:
    """Times rows in turn with the copy, so that both see the same machine."""

    def __init__(self, numel: int, runs: int):
        self.numel, self._runs = numel, runs
        self._source, self._target = torch.ones(numel), torch.ones(numel)
        # A small copy is over before a clock can tell, so many are timed at once.
        self._repeats = max(1, 1_000_000 // numel)
        print(f"\n{numel:,} float32, density {DENSITY}\n{'':58}{'copies':>8}{'ms':>9}{'bytes/element':>15}")

    def row(self, name: str, work: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
        copies, times, growth = [], [], 0
        for run in range(self._runs + 1):
            start = time.perf_counter()
            for _ in range(self._repeats):
                self._target.copy_(self._source)
            copied = (time.perf_counter() - start) / self._repeats
            spent = 0.0
            for _ in range(self._repeats):
                before()
                if run == 0:
                    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
                    resident = memory_kib("VmRSS")
                start = time.perf_counter()
                work()
                spent += time.perf_counter() - start
                if run == 0:
                    growth = max(growth, memory_kib("VmHWM") - resident)
            if run:  # the first one warms up
                copies.append(copied)
                times.append(spent / self._repeats)
        ratio, ms = statistics.median(times) / statistics.median(copies), 1e3 * statistics.median(times)
        memory = f"{1024 * growth / self.numel:15.2f}" if self.numel > 10**6 else ""
        print(f"{name:58}{ratio:8.2f}{ms:9.3f}{memory}", flush=True)


def measure(numel: int, runs: int) -> None:
    table = Table(numel, runs)
    spec = TensorSpec("layer", (numel,))
    gradients = inputs(numel)
    threshold = float(np.partition(np.abs(gradients["Gaussian"]), -round(DENSITY * numel))[-round(DENSITY * numel)])
    rows = [(f"topk(density={DENSITY})", kind) for kind in gradients]
    rows += [(f"threshold(value={threshold:.6f})", "Gaussian"), ("dropping(rate=0.99)", "Gaussian")]
    rows += [("dropping(rate=0.99, scope='global')", "Gaussian")]
    for sparsifier, kind in rows:
        settings = Settings.of(sparsifier, "rice", "raw", "residual")
        batch, slots = make_batch(settings), Pipeline(settings).new_slots(spec)
        job = EncodeJob(gradients[kind], spec, slots, Draw())
        slots["residual"].fill(0)
        frame = next(batch.encode([job])).frame
        table.row(
            f"{sparsifier}, {kind}",
            lambda batch=batch, job=job: next(batch.encode([job])),
            lambda slots=slots: slots["residual"].fill(0),
        )
        if kind == "Gaussian" and sparsifier.startswith("topk"):
            output, zeros = np.zeros(numel, np.float32), np.zeros(numel, np.float32)
            reader = ByteReader(frame, "bench")
            decode = lambda b=batch, r=reader, o=output: b.decode([r], [spec], [o], lambda *_: Draw(), 0.5)  # noqa: E731
            decode()
            assert np.count_nonzero(output) == round(DENSITY * numel)
            table.row("  decoding and adding it, with the zero fill", decode)
            table.row("  the zero fill alone", lambda z=zeros: z.fill(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numel", type=int, action="append", help="default: 25,000,000, 2,000,000 and 36,864")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for numel in options.numel or NUMELS:
        measure(numel, options.runs)


if __name__ == "__main__":
    main()
