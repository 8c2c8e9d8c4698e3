"""Statistics to files and back: what is written is what happened since the last write, and survives a killed job."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hvd_deepreduce import JsonLinesWriter, Settings, TensorBoardWriter, read_json_lines
from hvd_deepreduce.agreement import package_version
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import Statistics

SPECS = [TensorSpec("a.weight", (40, 50), "float32"), TensorSpec("b", (1000,), "float32")]
SETTINGS = Settings.of("topk(density=0.01)", "raw", "raw", "none", 0)
PROBES = 2 * 12
HEADERS = 30


class Training:
    """A compressor's statistics, counted without Horovod; times are sums of powers of two, so that they are exact."""

    def __init__(self) -> None:
        self.statistics = Statistics(str(SETTINGS), SPECS, [(10, 40), (2, 8)])

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            for tensor in self.statistics.tensors:
                encoded = Pipeline(SETTINGS).encode(
                    np.arange(tensor.spec.numel, dtype=np.float32), tensor.spec, {}, Draw(0, tensor.spec.name, 0, 0)
                )
                before = tensor.encode_ms
                tensor.add(encoded)
                tensor.encode_ms = before + 0.5
                tensor.decode_ms += 0.25
                self.statistics.bundle_bytes += len(encoded.frame)
            self.statistics.tensors[1].wait_ms += 2.0
            self.statistics.bundle_bytes += HEADERS
            self.statistics.probe_bytes += PROBES
            self.statistics.collectives += 1
            self.statistics.steps += 1

    def stats(self) -> dict[str, Any]:
        return {"rank": 0, "size": 2, **self.statistics.as_dict()}


class Scalars:
    """Stands for a SummaryWriter."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], float] = {}

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.found[tag, step] = value


@pytest.fixture
def training() -> Training:
    return Training()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def frame_bytes(training: Training) -> list[int]:
    return [tensor.sent_bytes // tensor.steps for tensor in training.statistics.tensors]


def test_the_header_tells_whose_records_follow(training: Training, path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        writer.write(training.stats())
    [(header, records)] = read_json_lines(path)
    assert abs(header.pop("time") - time.time()) < 60
    assert header == {
        "format": "hvd_deepreduce statistics",
        "version": 1,
        "package_version": package_version(),
        "settings": str(SETTINGS),
        "rank": 0,
        "size": 2,
        "since": training.statistics.since,
        "tensors": [{"name": "a.weight", "numel": 2000}, {"name": "b", "numel": 1000}],
    }
    assert [(record["step"], record["steps"]) for record in records] == [(0, 0)]
    assert records[0]["total"]["bits_per_kept"] is None


def test_records_hold_what_happened_since_the_last(training: Training, path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        for steps in (3, 2):
            training.step(steps)
            writer.write(training.stats(), loss=0.5 / steps)
        training.step()
    [(_, records)] = read_json_lines(path)
    assert [(record["step"], record["steps"], record["collectives"]) for record in records] == [(3, 3, 3), (5, 2, 2)]
    assert [record["extra"] for record in records] == [{"loss": 0.5 / 3}, {"loss": 0.25}]
    bytes_a, bytes_b = frame_bytes(training)
    for record in records:
        steps = record["steps"]
        sent = steps * (bytes_a + bytes_b + HEADERS + PROBES)
        assert record["total"] == {
            "numel": 3000,
            "kept": steps * 30,
            "not_finite": 0,
            "dense_bytes": steps * 12000,
            "index_bytes": steps * 30 * 4,
            "value_bytes": steps * 30 * 4,
            "encode_ms": steps * 1.0,
            "decode_ms": steps * 0.5,
            "wait_ms": steps * 2.0,
            "sent_bytes": sent,
            "bundle_bytes": steps * (bytes_a + bytes_b + HEADERS),
            "probe_bytes": steps * PROBES,
            "relative_volume": sent / (steps * 12000),
            "bits_per_kept": 8 * sent / (steps * 30),
        }
        assert record["tensors"][1] == {
            "name": "b",
            "numel": 1000,
            "steps": steps,
            "kept": steps * 10,
            "not_finite": 0,
            "dense_bytes": steps * 4000,
            "index_bytes": steps * 10 * 4,
            "value_bytes": steps * 10 * 4,
            "sent_bytes": steps * bytes_b,
            "relative_volume": bytes_b / 4000,
            "bits_per_kept": 8 * bytes_b / 10,
            "encode_ms": steps * 0.5,
            "decode_ms": steps * 0.25,
            "wait_ms": steps * 2.0,
        }
        assert record["pass_through"] == {"tensors": 2, "numel": 12, "dense_bytes": 48}


def test_records_add_up_to_the_statistics(training: Training, path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        for steps in (1, 4, 2, 7):
            training.step(steps)
            writer.write(training.stats())
    [(_, records)] = read_json_lines(path)
    total = training.stats()["total"]
    for key in ("kept", "sent_bytes", "dense_bytes", "encode_ms", "wait_ms"):
        assert sum(record["total"][key] for record in records) == total[key]


def test_steps_are_counted_from_a_checkpoint_on(training: Training, path: Path) -> None:
    training.step(2)
    training.statistics.steps = 1002  # 1000 of them were before the checkpoint
    with JsonLinesWriter(path) as writer:
        writer.write(training.stats())
    [(_, [record])] = read_json_lines(path)
    assert (record["step"], record["steps"]) == (1002, 2)


def test_another_compressor_begins_anew(path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        for steps in (5, 5, 2):  # equal counts, too, are those of another one
            training = Training()
            training.step(steps)
            writer.write(training.stats())
    runs = read_json_lines(path)
    assert [[record["total"]["kept"] for record in run.records] for run in runs] == [[150], [150], [60]]


@pytest.mark.parametrize("key", ["kept", "wait_ms", "sent_bytes"])
def test_counters_that_go_back_begin_anew(training: Training, path: Path, key: str) -> None:
    training.step(4)
    with JsonLinesWriter(path) as writer:
        writer.write(training.stats())
        setattr(training.statistics.tensors[1], key, 1)
        training.step()
        writer.write(training.stats())
    first, second = read_json_lines(path)
    assert [record["step"] for record in first.records + second.records] == [4, 5]
    assert second.records[0]["tensors"][1][key] >= 1


def test_numbers_of_the_callers(training: Training, path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        writer.write(training.stats(), loss=np.float32(0.5), epoch=3, step=7, worst=math.inf, none=math.nan)
        for value in ("x", [1, 2], None):
            with pytest.raises(InvalidSettingError, match=r"write\(\): loss=.*; needed is a number"):
                writer.write(training.stats(), loss=value)
    [(_, [record])] = read_json_lines(path)
    assert record["extra"] == {"loss": 0.5, "epoch": 3, "step": 7, "worst": None, "none": None}
    assert "NaN" not in path.read_text()
    assert "Infinity" not in path.read_text()


def test_a_killed_job_leaves_whole_lines(path: Path) -> None:
    code = textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_writers import JsonLinesWriter, Training
        training, writer = Training(), JsonLinesWriter({str(path)!r})
        for _ in range(3):
            training.step()
            writer.write(training.stats())
        os.kill(os.getpid(), 9)
    """)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == -9, run.stderr
    assert path.read_bytes().endswith(b"}\n")
    [(_, records)] = read_json_lines(path)
    assert [record["step"] for record in records] == [1, 2, 3]


def test_a_line_that_breaks_off_is_left_out_wherever_it_does(training: Training, path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        for _ in range(2):
            training.step()
            writer.write(training.stats())
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in (*range(last, len(whole) - 1, 37), len(whole) - 2):
        path.write_bytes(whole[:end])
        [(_, records)] = read_json_lines(path)
        assert [record["step"] for record in records] == [1], end
    path.write_bytes(whole[:-1])
    assert len(read_json_lines(path)[0].records) == 2


@pytest.mark.parametrize("cut", [1, 20])
def test_a_job_that_goes_on_appends_to_its_file(training: Training, path: Path, cut: int) -> None:
    with JsonLinesWriter(path, append=True) as writer:
        for _ in range(2):
            training.step()
            writer.write(training.stats())
    path.write_bytes(path.read_bytes()[:-cut])
    with JsonLinesWriter(path, append=True) as writer:
        writer.write(Training().stats())
    first, second = read_json_lines(path)
    assert [record["step"] for record in first.records] == ([1, 2] if cut == 1 else [1])
    assert [record["step"] for record in second.records] == [0]
    with JsonLinesWriter(path) as writer:
        writer.write(training.stats())
    assert len(read_json_lines(path)) == 1


def test_other_files_are_refused(training: Training, path: Path) -> None:
    with JsonLinesWriter(path) as writer:
        with pytest.raises(InvalidSettingError, match="is empty: nothing was logged there so far"):
            read_json_lines(path)
        for _ in range(2):
            training.step()
            writer.write(training.stats())
    header, first, second = path.read_text().splitlines(keepends=True)
    for text, message in (
        ("\x00\xff\n", "line 1 is no header"),
        ('{"a": 1}\n', "line 1 is no header"),
        ("[1]\n", "line 1 is no header"),
        (first + header, "line 1 is no header"),
        (header + first[:50] + "\n" + second, "line 2 is no record"),
        (header + first + "[1]\n", "line 3 is no record"),
        (header + '{"a": 1}\n' + second, "line 2 is no record"),
        (header.replace('"version":1', '"version":2') + first, "line 1 has version 2; allowed is 1"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidSettingError, match=f"run.jsonl: {message}"):
            read_json_lines(path)


def test_every_line_is_json_by_itself(training: Training, path: Path) -> None:
    training.step()
    with JsonLinesWriter(path) as writer:
        writer.write(training.stats())
    assert [sorted(json.loads(line))[0] for line in path.read_text().splitlines()] == ["format", "collectives"]


def test_tensorboard_is_given_means_per_step(training: Training) -> None:
    scalars = Scalars()
    with TensorBoardWriter(scalars) as writer:
        for steps in (3, 2):
            training.step(steps)
            writer.write(training.stats(), loss=1.5)
        writer.write(training.stats(), accuracy=0.75)  # no step since: nothing else to show
    bytes_a, bytes_b = frame_bytes(training)
    sent = bytes_a + bytes_b + HEADERS + PROBES
    expected = {
        "loss": 1.5,
        "deepreduce/kept": 30,
        "deepreduce/not_finite": 0,
        "deepreduce/sent_bytes": sent,
        "deepreduce/relative_volume": sent / 12000,
        "deepreduce/bits_per_kept": 8 * sent / 30,
        "deepreduce/encode_ms": 1.0,
        "deepreduce/decode_ms": 0.5,
        "deepreduce/wait_ms": 2.0,
    }
    for name, numel, size, wait in (("a.weight", 2000, bytes_a, 0.0), ("b", 1000, bytes_b, 2.0)):
        expected |= {
            f"deepreduce.kept/{name}": numel / 100,
            f"deepreduce.not_finite/{name}": 0,
            f"deepreduce.sent_bytes/{name}": size,
            f"deepreduce.relative_volume/{name}": size / (4 * numel),
            f"deepreduce.bits_per_kept/{name}": 8 * size / (numel / 100),
            f"deepreduce.encode_ms/{name}": 0.5,
            f"deepreduce.decode_ms/{name}": 0.25,
            f"deepreduce.wait_ms/{name}": wait,
        }
    twice = {(tag, step): value for step in (3, 5) for tag, value in expected.items()}
    assert scalars.found == twice | {("accuracy", 5): 0.75}


def test_tensorboard_needs_something_to_write_to() -> None:
    with pytest.raises(InvalidSettingError, match=r"TensorBoardWriter: 7; needed is a path, or an object with add_sc"):
        TensorBoardWriter(7)  # type: ignore[arg-type]


def test_a_missing_tensorboard_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(ImportError, match=r"needs TensorBoard: pip install tensorboard; or give it a SummaryWriter"):
        TensorBoardWriter(tmp_path)


def test_the_core_loads_no_tensorboard() -> None:
    code = "import sys, hvd_deepreduce; assert 'tensorboard' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
