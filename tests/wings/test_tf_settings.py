"""What the TensorFlow wing does and refuses in one process."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what TensorFlow thinks of its own parts
    import tensorflow as tf
    from horovod.tensorflow.compression import Compressor

    from hvd_deepreduce.tf import DeepReduce, compressor, loss_scale, native_library

from hvd_deepreduce import Rice, TopK
from hvd_deepreduce.errors import InvalidSettingError, StateMismatchError, UnknownGradientError
from hvd_deepreduce.tf.checkpoint import require_own
from hvd_deepreduce.tf.collectives import node_name
from hvd_deepreduce.tf.parameters import NamedVariables, call_of, name_of


def test_defaults_are_a_horovod_compressor_that_can_be_cached() -> None:
    compression = DeepReduce()
    assert isinstance(compression, Compressor)
    assert str(compression.settings) == "topk(density=0.01)+rice+qsgd(bits=7, bucket=512)+residual"
    assert len({compression, compression, DeepReduce()}) == 2


def test_arguments_are_those_of_the_other_wing() -> None:
    torch = pytest.importorskip("hvd_deepreduce.torch")
    mine, theirs = (inspect.signature(wing).parameters for wing in (DeepReduce, torch.DeepReduce))
    assert set(theirs) - set(mine) == {"named_parameters", "overlap", "timeline"}
    assert set(mine) - set(theirs) == {"custom_op"}
    for name in set(mine) & set(theirs):
        assert mine[name].default == theirs[name].default, name


def test_text_objects_and_one_string_are_the_same() -> None:
    text = DeepReduce("topk(density=0.02)", "rice", "raw")
    objects = DeepReduce(TopK(density=0.02), Rice(), "raw")
    assert text.settings == objects.settings == DeepReduce.from_string("topk(density=0.02)+rice+raw").settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsifier": "topk(density=0)"}, "topk: density=0; allowed is above 0, up to 1"),
        ({"memory": "velocity"}, "memory: 'velocity' is unknown; allowed are none, residual"),
        ({"min_numel": 0}, "min_numel=0; allowed is an integer from 1"),
        ({"bucket_bytes": 1.5}, "bucket_bytes=1.5; allowed is an integer"),
        ({"timeout": 0}, "timeout=0; allowed is 0.001 or more"),
        ({"name": ""}, "name=''; needed is text"),
        ({"seed": -1}, "seed=-1; allowed is an integer from 0"),
        ({"process_set": 3}, "process_set=3; needed is a horovod.tensorflow.ProcessSet"),
        ({"custom_op": 1}, "custom_op=1"),
    ],
)
def test_bad_settings_are_refused_with_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        DeepReduce(**options)


@pytest.mark.parametrize(
    ("scale", "trouble"),
    [
        *((scale, "") for scale in (1, 0.5, np.float32(2), 2.0**-126)),
        *((scale, f"loss_scale()={scale!r}") for scale in (0.0, -2.0, float("nan"), float("inf"), "x", None, True)),
        *((scale, "loss_scale()=") for scale in (1e-40, np.float32(0))),
        ([1.0, 2.0], "loss_scale() is of shape (2,); needed is one number"),
    ],
)
def test_loss_scales_are_numbers_that_a_gradient_can_be_divided_by(scale: Any, trouble: str) -> None:
    tensors = [] if scale is None or isinstance(scale, str | bool) else [tf.constant(scale), tf.Variable(scale)]
    for given in (scale, *tensors):
        found = loss_scale.asked(lambda given=given: given).trouble.numpy().decode()
        assert found.startswith("DeepReduce: loss_scale()") if trouble else not found, given
    assert trouble in loss_scale.asked(lambda: scale).trouble.numpy().decode()


def test_what_a_loss_scale_raises_is_told() -> None:
    assert loss_scale.asked(lambda: {}["scale"]).trouble.numpy() == b"KeyError: 'scale'"


def test_report_and_stats_before_the_first_step() -> None:
    stats = DeepReduce().stats()
    assert (stats["steps"], stats["rank"], stats["size"], stats["tensors"]) == (0, None, None, [])
    assert "No step was compressed so far" in DeepReduce().report()


def test_pickling_carries_settings_and_copying_keeps_residuals() -> None:
    compression = DeepReduce("topk(density=0.03)", "bitmap", "fp16", name="n", seed=7, min_numel=9, threads=2)
    restored = pickle.loads(pickle.dumps(compression))
    assert restored.settings == compression.settings
    assert restored._given == compression._given
    assert copy.deepcopy(compression) is compression


def test_keras_3_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not compressor.is_keras_3()
    monkeypatch.setattr(tf, "__version__", "2.16.1")
    with pytest.warns(UserWarning, match=r"silently never synchronises.*TF_USE_LEGACY_KERAS=1"):
        DeepReduce()
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    DeepReduce()


def test_a_gradient_that_horovods_optimizers_did_not_hand_over() -> None:
    with pytest.raises(UnknownGradientError, match=r"of shape \(3,\) was not handed over by a DistributedOptimizer"):
        call_of(tf.zeros(3))


def test_names_do_not_depend_on_what_a_process_made_before() -> None:
    names = [name_of(place, tf.Variable(0.0, name=name)) for place, name in enumerate(("dense_7/kernel", "a_b", "x_1"))]
    assert names == ["0.dense/kernel", "1.a_b", "2.x"]


def test_a_variable_takes_over_from_one_that_is_gone_and_from_no_other() -> None:
    variables = [tf.Variable(tf.zeros(size)) for size in (3, 4)]
    named = NamedVariables(variables)
    assert [named.place_of(variable, 0) for variable in variables] == [0, 1]
    stranger = tf.Variable(tf.zeros(4))
    with pytest.raises(UnknownGradientError, match="none of the 2 that this DeepReduce was first used with"):
        named.place_of(stranger, 1)
    del variables[1]
    assert named.place_of(stranger, 1) == 1


def test_names_of_nodes_stay_apart() -> None:
    assert node_name("two.models-1") == "two.models-1"
    assert node_name("a b") != node_name("a_b") != node_name("a/b") != node_name("a b")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (b'{"rank": 1, "size": 2}', "is of rank 1, here it is 0; each rank saves and restores its own checkpoint"),
        (b'{"rank": 0, "size": 3}', "is of size 3, here it is 2"),
        (b"nonsense", "is no state of this version"),
    ],
)
def test_the_checkpoint_of_another_rank_is_refused(found: bytes, message: str) -> None:
    require_own(b'{"rank": 0, "size": 2}', '{"rank": 0, "size": 2}')
    with pytest.raises(StateMismatchError, match=message):
        require_own(found, '{"rank": 0, "size": 2}')


def test_without_ops_gradients_are_coded_in_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    native_library.load.cache_clear()
    monkeypatch.setattr(native_library, "FOR_ALL", tmp_path / "none")
    monkeypatch.setenv("HVD_DEEPREDUCE_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "false")
    assert native_library.load() is None
    assert "no TensorFlow ops, so gradients are coded in Python" in caplog.text
    caplog.clear()
    native_library.load.cache_clear()
    monkeypatch.setenv("HVD_DEEPREDUCE_TF_OP", "0")
    assert native_library.load() is None
    assert not caplog.text
    native_library.load.cache_clear()


def test_ops_that_came_with_the_environment_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    theirs = native_library.compiled()
    name = Path(theirs.parent.name) / theirs.name
    (tmp_path / name.parent).mkdir()
    (tmp_path / name).touch()
    monkeypatch.setattr(native_library, "FOR_ALL", tmp_path)
    assert native_library.compiled() == tmp_path / name
