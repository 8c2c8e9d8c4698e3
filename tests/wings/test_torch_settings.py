"""What DeepReduce refuses when it is made, in one process."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
from horovod.torch.compression import Compressor

from hvd_deepreduce import Rice, TopK
from hvd_deepreduce.errors import DeepReduceError, InvalidSettingError
from hvd_deepreduce.torch import DeepReduce


@pytest.fixture
def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 2))


def test_defaults_are_a_horovod_compressor(model: torch.nn.Module) -> None:
    compression = DeepReduce(model.named_parameters())
    assert isinstance(compression, Compressor)
    assert str(compression.settings) == "topk(density=0.01)+rice+qsgd(bits=7, bucket=512)+residual"


def test_text_objects_and_one_string_are_the_same(model: torch.nn.Module) -> None:
    text = DeepReduce(model.named_parameters(), "topk(density=0.02)", "rice", "raw")
    objects = DeepReduce(model.named_parameters(), TopK(density=0.02), Rice(), "raw")
    one = DeepReduce.from_string(model.named_parameters(), "topk(density=0.02)+rice+raw")
    assert text.settings == objects.settings == one.settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsifier": "topk(density=0)"}, "topk: density=0; allowed is above 0, up to 1"),
        ({"sparsifier": "top"}, "sparsifier: 'top' is unknown; allowed are none, topk(density=0.01)"),
        ({"index": "rice(block=3)"}, "no setting 'block'"),
        ({"value": "qsgd(bits=1)"}, "qsgd: bits=1; allowed is an integer from 2 to 16"),
        ({"memory": "velocity"}, "memory: 'velocity' is unknown; allowed are none, residual"),
        ({"min_numel": 0}, "min_numel=0; allowed is an integer from 1"),
        ({"bucket_bytes": 1.5}, "bucket_bytes=1.5; allowed is an integer"),
        ({"timeout": 0}, "timeout=0; allowed is 0.001 or more"),
        ({"name": ""}, "name=''; needed is text"),
        ({"seed": -1}, "seed=-1; allowed is an integer from 0"),
    ],
)
def test_bad_settings_are_refused_with_what_is_allowed(
    model: torch.nn.Module, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        DeepReduce(model.named_parameters(), **options)


def test_parameters_without_names_are_refused(model: torch.nn.Module) -> None:
    with pytest.raises(InvalidSettingError, match=r"got Parameter; needed are \(name, parameter\) pairs"):
        DeepReduce(model.parameters())  # type: ignore[arg-type]


def test_a_used_up_generator_is_refused(model: torch.nn.Module) -> None:
    named = model.named_parameters()
    list(named)
    with pytest.raises(InvalidSettingError, match="empty; a generator can be read only once"):
        DeepReduce(named)


def test_repeated_names_are_refused(model: torch.nn.Module) -> None:
    named = list(model.named_parameters())
    with pytest.raises(InvalidSettingError, match=r"0\.bias, 0\.weight, 1\.bias, 1\.weight more than once"):
        DeepReduce(named + named)


def test_report_and_stats_before_the_first_step(model: torch.nn.Module) -> None:
    compression = DeepReduce(model.named_parameters())
    stats = compression.stats()
    assert (stats["steps"], stats["rank"], stats["size"]) == (0, None, None)
    assert [tensor["name"] for tensor in stats["tensors"]] == ["0.weight"]
    assert stats["pass_through"] == {"tensors": 3, "numel": 64 + 128 + 2, "dense_bytes": 4 * (64 + 128 + 2)}
    report = compression.report()
    assert "0.weight" in report
    assert "3 tensors of 194 elements (776 bytes) pass uncompressed" in report


@pytest.mark.parametrize(
    ("missing", "message"), [("torch", "needs PyTorch: pip install torch"), ("horovod", "needs Horovod built for")]
)
def test_a_missing_framework_is_named(missing: str, message: str) -> None:
    code = textwrap.dedent(f"""
        import sys
        class Hide:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == {missing!r}:
                    raise ImportError(name)
        sys.meta_path.insert(0, Hide())
        import hvd_deepreduce
        import hvd_deepreduce.torch
    """)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert run.returncode == 1
    assert message in run.stderr


def test_pickling_carries_settings_only(model: torch.nn.Module) -> None:
    compression = DeepReduce(
        model.named_parameters(), "topk(density=0.03)", "bitmap", "fp16", name="n", seed=7, min_numel=9, threads=2
    )
    copy = pickle.loads(pickle.dumps(compression))
    assert copy.settings == compression.settings
    with pytest.raises(DeepReduceError, match=r"no model yet: call attach\(model.named_parameters\(\)\)"):
        copy.stats()
    copy.attach(model.named_parameters())
    assert copy.stats()["pass_through"] == compression.stats()["pass_through"]
    with pytest.raises(InvalidSettingError, match="has a model already"):
        copy.attach(model.named_parameters())
