"""Event files of TensorBoard, written and read by its own package, in a process of its own: it imports TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STATS = """
def stats(steps):
    row = dict(kept=10, not_finite=0, dense_bytes=4000, index_bytes=30, value_bytes=20, sent_bytes=60,
               encode_ms=0.5, decode_ms=0.25, wait_ms=1.0)
    sums = {key: steps * value for key, value in row.items()}
    tensors = [{"name": "0.weight", "numel": 1000, "steps": steps, **sums}]
    total = {"numel": 1000, **sums, "sent_bytes": steps * 100}
    return {"settings": "", "rank": 0, "size": 2, "since": 0.0, "steps": steps, "collectives": steps,
            "tensors": tensors, "total": total, "pass_through": {}}
"""
OPEN = {
    "SummaryWriter": "from torch.utils.tensorboard import SummaryWriter; target = SummaryWriter(folder)",
    "folder": "target = folder",
}


@pytest.mark.parametrize("target", OPEN)
def test_tensorboard_reads_back_what_was_written(target: str, tmp_path: Path) -> None:
    code = f"""
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from hvd_deepreduce import TensorBoardWriter
{STATS}
folder = {str(tmp_path)!r}
{OPEN[target]}
with TensorBoardWriter(target) as writer:
    for steps in (50, 75):
        writer.write(stats(steps), loss=2.0 / steps)
if target is not folder:
    target.close()
events = EventAccumulator(folder)
events.Reload()
for tag in ("loss", "deepreduce/sent_bytes", "deepreduce.bits_per_kept/0.weight", "deepreduce/wait_ms"):
    if tag in events.Tags()["scalars"]:
        found = [(event.step, event.value) for event in events.Scalars(tag)]
    else:
        found = [(event.step, float(make_ndarray(event.tensor_proto))) for event in events.Tensors(tag)]
    print(tag, [(step, round(value, 6)) for step, value in found])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "loss [(50, 0.04), (75, 0.026667)]",
        "deepreduce/sent_bytes [(50, 100.0), (75, 100.0)]",
        "deepreduce.bits_per_kept/0.weight [(50, 48.0), (75, 48.0)]",
        "deepreduce/wait_ms [(50, 1.0), (75, 1.0)]",
    ]
