"""The error of a step is that of the dense gradients, told from what the step left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hvd_deepreduce import JsonLinesWriter, Settings, read_json_lines
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import Statistics
from hvd_deepreduce.wire.reader import ByteReader

SPEC = TensorSpec("a", (40, 50))


@pytest.mark.parametrize(
    "settings", ["topk(density=0.05)+rice+raw", "topk(density=0.05)+rice+qsgd(bits=4)", "randomk+raw"]
)
def test_it_is_that_of_the_dense_gradient(settings: str) -> None:
    pipeline = Pipeline(Settings.from_string(settings))
    slots = pipeline.new_slots(SPEC)
    generator = np.random.default_rng(0)
    for step in range(3):
        gradient = generator.standard_normal(SPEC.numel).astype(np.float32)
        compensated = gradient.astype(np.float64) + slots["residual"]
        draw = Draw(0, "a", step, 1)
        frame = pipeline.encode(gradient, SPEC, slots, draw).frame
        sent = np.zeros(SPEC.numel, np.float32)
        assert pipeline.add_into(sent, pipeline.read(ByteReader(frame, "frame"), SPEC), SPEC, draw, 1.0)
        right = np.linalg.norm(compensated - sent) / np.linalg.norm(compensated)
        assert pipeline.error_of(frame, SPEC, slots["residual"], draw) == pytest.approx(right, rel=1e-5)


@pytest.mark.parametrize(("value", "error"), [(0.0, None), (1e-9, 1.0), (np.nan, None)])
def test_nothing_sent(value: float, error: float | None) -> None:
    pipeline = Pipeline(Settings.from_string("threshold(value=1.0)+rice+raw"))
    slots, draw = pipeline.new_slots(SPEC), Draw(0, "a", 0, 0)
    frame = pipeline.encode(np.full(SPEC.numel, value, np.float32), SPEC, slots, draw).frame
    assert pipeline.error_of(frame, SPEC, slots["residual"], draw) == error


@pytest.mark.parametrize("size", [1e300, 1e160, 1.0, 1e-150])
def test_it_is_the_same_for_any_magnitude(size: float) -> None:
    spec = TensorSpec("a", (100,), "float64")
    pipeline = Pipeline(Settings.from_string("topk(density=0.5)+rice+raw"))
    slots, draw = pipeline.new_slots(spec), Draw(0, "a", 0, 0)
    frame = pipeline.encode(np.repeat([size, 2 * size], 50), spec, slots, draw).frame
    assert pipeline.error_of(frame, spec, slots["residual"], draw) == pytest.approx(np.sqrt(1 / 5))


def test_it_is_logged_where_it_is_asked_for(tmp_path: Path) -> None:
    stats = {**Statistics("s", [SPEC, TensorSpec("b", (9,))], []).as_dict(), "rank": 0, "size": 2}
    with JsonLinesWriter(tmp_path / "run.jsonl") as writer:
        writer.write(stats)
        writer.write(stats, {"a": 0.25})
    [(_, (without, record))] = read_json_lines(tmp_path / "run.jsonl")
    assert "relative_error" not in without["tensors"][0]
    assert [row["relative_error"] for row in record["tensors"]] == [0.25, None]
