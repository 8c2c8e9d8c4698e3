"""The stages that run on the gradient's device against the native ones: the same frames, residuals and sums.

They are the same code on every device, so the CPU stands for one here; a GPU is used too where there is one.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from hvd_deepreduce.batch import EncodeJob, make_batch
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.torch import streams
from hvd_deepreduce.torch.device import DeviceGradient, DevicePipeline
from hvd_deepreduce.wire.reader import ByteReader

SPARSIFIERS = (
    "none",
    "topk(density=0.03)",
    "topk(density=1.0)",
    "threshold(value=1.2)",
    "threshold(value=1e300)",
    "dropping(rate=0.9)",
    "dropping(rate=0.9, scope='global')",
)
TEXTS = ["+".join(stages) for stages in itertools.product(SPARSIFIERS, ["rice"], ["raw", "qsgd"], ["residual", "none"])]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
DTYPES = {"float32": torch.float32, "float64": torch.float64}
FACTOR = 1 / 3


def gradient_of(spec: TensorSpec, step: int) -> np.ndarray:
    generator = np.random.default_rng([step, spec.numel])
    gradient = generator.standard_normal(spec.numel).astype(spec.value_dtype)
    match step:
        case 1:
            gradient = np.round(gradient)  # ties
        case 2:
            gradient[7] = np.inf
        case 3:
            gradient[:] = 0
        case 4:
            gradient[:] = 1.5
    return gradient


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", TEXTS)
def test_frames_residuals_and_sums_are_the_native_ones(text: str, dtype: str, device: str) -> None:
    settings = Settings.from_string(text, seed=4)
    spec = TensorSpec("layer.weight", (40, 70), dtype)
    batch, pipeline = make_batch(settings), DevicePipeline(settings)
    assert DevicePipeline.can(settings)
    native = Pipeline(settings).new_slots(spec)
    ours = {
        name: torch.from_numpy(slot.copy()).to(device) if name in settings.memory.slots else slot.copy()
        for name, slot in native.items()
    }
    for step in range(6):
        draw = Draw(4, spec.name, step, 0)
        for slots in (native, ours):
            settings.sparsifier.begin_step([(spec.numel, slots)])
        gradient = gradient_of(spec, step)
        values = torch.from_numpy(gradient.copy()).to(device)
        on_device = DeviceGradient(values, spec, ours, pipeline, streams.Marker(values))
        (expected,) = batch.encode([EncodeJob(gradient, spec, native, draw)])
        (encoded,) = batch.encode([EncodeJob(on_device, spec, ours, draw)])
        assert encoded._replace(milliseconds=0) == expected._replace(milliseconds=0)
        streams.join(values.device)
        assert native.keys() == ours.keys()
        for name, slot in native.items():
            np.testing.assert_array_equal(torch.as_tensor(ours[name]).cpu().numpy(), slot)

        sums = np.full(spec.numel, 9, spec.value_dtype)
        for output in (sums, on_device):
            readers = [ByteReader(encoded.frame, f"rank {rank}") for rank in range(3)]
            (decoded,) = batch.decode(readers, [spec], [output], lambda rank, place, draw=draw: draw, FACTOR)
            assert decoded.finite == expected.finite
        np.testing.assert_array_equal(values.cpu().numpy(), sums)


@pytest.mark.parametrize("device", DEVICES)
def test_what_was_sent_can_be_taken_back(device: str) -> None:
    settings = Settings.from_string("topk(density=0.1)+rice+raw+residual")
    spec = TensorSpec("layer.weight", (40, 70))
    pipeline = DevicePipeline(settings)
    slots = {"residual": torch.zeros(spec.numel, device=device)}
    gradient = torch.from_numpy(gradient_of(spec, 0)).to(device)
    encoded = pipeline.encode(gradient, spec, slots, Draw())
    assert not torch.equal(slots["residual"], gradient)
    pipeline.restore(encoded.frame, spec, slots, Draw())
    assert torch.equal(slots["residual"], gradient)


@pytest.mark.parametrize("device", DEVICES)
def test_a_sum_beyond_the_largest_number_leaves_the_residual_alone(device: str) -> None:
    settings = Settings.from_string("topk(density=0.1)+rice+raw+residual")
    spec = TensorSpec("w", (10,))
    residual = torch.full((10,), 3e38, device=device)
    slots = {"residual": residual.clone()}
    encoded = DevicePipeline(settings).encode(torch.full((10,), 3e38, device=device), spec, slots, Draw())
    assert not encoded.finite
    assert torch.equal(slots["residual"], residual)
    # Large numbers of opposite signs are no overflow, although their magnitudes would be.
    encoded = DevicePipeline(settings).encode(torch.full((10,), -3e38, device=device), spec, slots, Draw())
    assert encoded.finite
    assert torch.equal(slots["residual"], torch.zeros(10, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_values_in_the_wrong_place_leave_no_infinity(device: str) -> None:
    """A Bloom filter's naive policy gives positions the values of others, here of the other sign."""
    settings = Settings.from_string("topk(density=0.3)+bloom(policy='naive', fpr=0.5)+raw")
    spec = TensorSpec("layer.weight", (40, 70))
    signs = np.random.default_rng(0).choice([-1, 1], spec.numel)
    gradient = (np.finfo(np.float32).max * signs).astype(np.float32)
    slots = Pipeline(settings).new_slots(spec)
    encoded = Pipeline(settings).encode(gradient.copy(), spec, slots, Draw(4, spec.name, 0, 0))
    assert encoded.finite
    assert np.isfinite(slots["residual"]).all()
    assert np.abs(slots["residual"]).max() == np.finfo(np.float32).max
    residual = torch.zeros(spec.numel, device=device)
    there = torch.from_numpy(gradient).to(device)
    on_device = DevicePipeline(settings).encode(there, spec, {"residual": residual}, Draw(4, spec.name, 0, 0))
    assert on_device.frame == encoded.frame
    np.testing.assert_array_equal(residual.cpu().numpy(), slots["residual"])
