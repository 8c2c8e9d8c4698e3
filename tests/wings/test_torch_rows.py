"""Sparse gradients of PyTorch in real jobs: the optimizer that merges and codes their rows, and its example."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import horovod.torch as hvd
import pytest
import torch
from torch import nn
from wings.launch import run_job
from wings.ncf_example import compare_four_ways

from hvd_deepreduce.errors import DeepReduceError, InvalidSettingError, UnsupportedOperationError
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.torch import DeepReduce, DistributedOptimizer, arrays, sparse_parameters

EXAMPLE = Path(__file__).resolve().parents[2] / "torch" / "examples" / "ncf.py"
FAULTS = {
    "settings": "SettingsMismatchError: settings is 'rows+rice+raw+none' on rank 1 and 'rows+rice+qsgd",
    "exception": "rank 1: tensor 'exception.places.weight': MemoryError: no room for rows",
    "while_coding": "rank 1: tensor 'while_coding.words.weight': ValueError: cannot reshape",
    "beside_dense": "rank 1: tensor 'beside_dense.places.weight': MemoryError: no room for rows",
    "damaged": "CorruptPayloadError: bucket 3, step 2, rank 1: checksum is",
    "truncated": "bucket 3, step 2, rank 1: length is",
    "step_before": "bundle is of step 1; expected was 2 (tensor 'step_before.words.weight')",
    "unknown_codec": "UnknownCodecError: tensor 'unknown_codec.words.weight', rank 1: frame of rows",
}


@pytest.mark.job
@pytest.mark.parametrize(("ranks", "backend"), [(2, "gloo"), (3, "gloo"), (2, "mpi")])
def test_replicas_are_equal_to_one_another_and_to_the_oracle(ranks: int, backend: str) -> None:
    job = run_job("rows.py", ranks=ranks, backend=backend)
    assert job.code == 0, job.output
    for rank in range(ranks):
        assert "ROWS ok" in job.of_rank(rank), job.output


@pytest.mark.job
def test_every_rank_says_what_went_wrong() -> None:
    job = run_job("row_faults.py", *FAULTS, ranks=2, backend="gloo")
    assert job.code == 0, job.output
    assert "NO ERROR" not in job.output
    assert "not every rank answered" not in job.output
    for rank in range(2):
        for fault, message in FAULTS.items():
            [line] = [line for line in job.of_rank(rank).splitlines() if f"CAUGHT {fault} " in line]
            assert message in line, job.output


@pytest.mark.job
def test_the_example_compares_four_ways(tmp_path: Path) -> None:
    job, ways = compare_four_ways(EXAMPLE, tmp_path / "ncf.json")
    assert ways[0]["sent"]["given"] == ways[0]["sent"]["tables"]
    for rank, told in ((0, True), (1, False)):
        assert ("the merge and the coding apart" in job.of_rank(rank)) == told


# --- without a job ---


@pytest.fixture(scope="module", autouse=True)
def _horovod() -> Iterator[None]:
    hvd.init()
    yield
    # Other tests see to what there is before it.
    hvd.shutdown()


def parts(name: str) -> tuple[nn.Module, torch.optim.Optimizer, list[tuple[str, nn.Parameter]]]:
    model = nn.Sequential(nn.Embedding(30, 4, sparse=True), nn.Linear(4, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1), [(f"{name}.{n}", p) for n, p in model.named_parameters()]


def test_rows_take_the_codecs_of_the_compressor() -> None:
    _, sgd, named = parts("codecs")
    compression = DeepReduce(index="bitmap", value="qsgd(bits=4)", memory="none", seed=3, name="codecs")
    optimizer = DistributedOptimizer(sgd, named, compression, sparse=["codecs.0.weight"])
    assert optimizer.rows.settings == RowSettings.of("bitmap", "qsgd(bits=4)", "none", 3)
    assert optimizer.rows.name == "codecs"
    assert compression.attached
    assert [row["name"] for row in compression.stats()["tensors"]] == []  # both are smaller than min_numel


def test_rows_are_exact_by_default() -> None:
    _, sgd, named = parts("default")
    assert str(DistributedOptimizer(sgd, named).rows.settings) == "rows+rice+raw+none"
    given = RowSettings.of("raw", "fp16")
    assert DistributedOptimizer(sgd, named, rows=given).rows.settings is given


def test_one_process_trains_as_horovod_does() -> None:
    model, sgd, named = parts("alone")
    optimizer = DistributedOptimizer(sgd, named)
    before = model[0].weight.detach().clone()
    model(torch.tensor([1, 1, 2])).sum().backward()
    optimizer.step()
    assert (model[0].weight != before).any(1).tolist() == [number in (1, 2) for number in range(30)]
    assert optimizer.rows.stats()["total"]["sent_bytes"] == 0
    assert isinstance(pickle.dumps(optimizer.state_dict()), bytes)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"op": hvd.Min}, UnsupportedOperationError, "op=Average and op=Sum only"),
        ({"op": hvd.Adasum}, UnsupportedOperationError, "op=Average and op=Sum only"),
        ({"groups": 1}, InvalidSettingError, "groups= takes no sparse gradients"),
        ({"sparse": ["what"]}, InvalidSettingError, "sparse=\\['what'\\]: no parameters of these names"),
        ({"rows": "topk"}, InvalidSettingError, "'topk' is unknown"),
        ({"rows": 5}, InvalidSettingError, "rows: 5 is of type int; needed is text, 'rice\\+raw' for instance"),
        ({"rows": ["rice"]}, InvalidSettingError, "rows: \\['rice'\\] is of type list"),
        ({"timeout": 0}, InvalidSettingError, "timeout=0"),
        ({"compression": DeepReduce(memory="dgc")}, InvalidSettingError, "say rows= for the sparse gradients"),
    ],
)
def test_what_can_not_be_is_refused(options: dict, error: type, message: str) -> None:
    _, sgd, named = parts("refused")
    with pytest.raises(error, match=message):
        DistributedOptimizer(sgd, named, **options)


def test_a_compressor_needs_a_model_from_somewhere() -> None:
    _, sgd, _ = parts("nowhere")
    with pytest.raises(InvalidSettingError, match="give named_parameters"):
        DistributedOptimizer(sgd, compression=DeepReduce())


def test_sparse_parameters_are_found() -> None:
    model = nn.ModuleDict(
        {"a": nn.Embedding(3, 2, sparse=True), "b": nn.Embedding(3, 2), "c": nn.EmbeddingBag(3, 2, sparse=True)}
    )
    assert sparse_parameters(model) == ["a.weight", "c.weight"]
    assert sparse_parameters(model["a"]) == ["weight"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_tensors_become_rows_and_come_back(dtype: torch.dtype, scale: float) -> None:
    numbers = torch.tensor([[4, 0, 4]])
    values = torch.tensor([[[1.0], [2]], [[3], [4]], [[5], [6]]], dtype=dtype)
    gradient = torch.sparse_coo_tensor(numbers, values, (5, 2, 1), check_invariants=True)
    rows = arrays.merged_rows(gradient, TensorSpec("table", (5, 2, 1), str(dtype).removeprefix("torch.")), scale)
    assert rows.numbers.tolist() == [0, 4]
    assert rows.values.dtype == ("float64" if dtype is torch.float64 else "float32")
    assert rows.values.tolist() == [[3 / scale, 4 / scale], [6 / scale, 8 / scale]]
    back = arrays.sparse_like(rows, gradient, scale)
    assert back.is_coalesced()
    assert back.dtype is dtype
    assert torch.equal(back.to_dense(), gradient.to_dense())


def test_other_sparse_gradients_are_refused() -> None:
    gradient = torch.eye(3).to_sparse()
    with pytest.raises(DeepReduceError, match="tensor 'table': a sparse gradient of layout torch.sparse_coo"):
        arrays.merged_rows(gradient, TensorSpec("table", (3, 3)), 1.0)


def test_rows_without_columns_come_back_as_they_were() -> None:
    """There is nothing to send of an embedding of dimension 0, and no reason to fail either."""
    gradient = torch.sparse_coo_tensor(torch.tensor([[3, 1, 3]]), torch.empty(3, 0), (10, 0), check_invariants=True)
    rows = arrays.merged_rows(gradient, TensorSpec("nothing", (10, 0)), 1.0)
    assert rows.numbers.tolist() == [1, 3]
    assert rows.values.shape == (2, 0)
    assert arrays.sparse_like(rows, gradient, 1.0).shape == (10, 0)
