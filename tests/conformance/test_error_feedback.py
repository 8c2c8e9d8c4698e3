"""13: for every triple and memory, what the receivers decode and what is kept back make up what was to be sent."""

import itertools

import numpy as np
import pytest

from conformance import inputs, memory_reference
from conformance.subjects import INDEX_SUBJECTS, MEMORY_SUBJECTS, SPARSIFIER_SUBJECTS, VALUE_SUBJECTS
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import DTYPES, TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

STEPS = 4


def as_dtype(array, dtype):
    """Values that a gradient of `dtype` can hold, in the dtype the stages compute in."""
    if dtype == "bfloat16":
        return (array.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    return array.astype(dtype).astype(np.float64 if dtype == "float64" else np.float32)


def check_error_feedback(settings, dtype="float32", shape=(12, 25)):
    """Sends a few gradients and receives them, residuals in between."""
    pipeline = Pipeline(settings)
    spec = TensorSpec("layer.weight", shape, dtype)
    slots = pipeline.new_slots(spec)
    kept_back = {name: slots[name] for name in settings.memory.slots if name == "residual"}
    exact = settings.index.exact and settings.value.exact
    for step in range(STEPS):
        draw = Draw(settings.seed, spec.name, step, rank=1)
        gradient = as_dtype(inputs.gradient_values(np.dtype(np.float64), spec.numel, seed=step), dtype)
        if step == 2:
            gradient[:] = 0  # what is sent now comes from the residual alone
        kept_gradient = gradient.copy()
        settings.sparsifier.begin_step([(spec.numel, slots)])
        before = {name: slots[name].copy() for name in settings.memory.slots}
        encoded = pipeline.encode(gradient, spec, slots, draw)
        assert np.array_equal(gradient, kept_gradient), "the gradient was changed"
        received = np.zeros(spec.numel, spec.value_dtype)
        reader = ByteReader(encoded.frame, "test")
        assert pipeline.add_into(received, pipeline.read(reader, spec), spec, draw, 1.0)
        assert not reader.rest(), "bytes after the frame"
        compensated, _ = memory_reference.compensated(settings.memory, before, kept_gradient)
        assert_kept_back(kept_back, compensated, received, exact)
    return kept_back


def assert_kept_back(slots, compensated, received, exact):
    rest = compensated - received
    for name, slot in slots.items():
        assert np.array_equal(slot, rest), f"{name} is not what was left over"
        if exact:
            assert np.array_equal(received + slot, compensated), "sent + kept back is not the gradient"
        else:
            rounding = np.spacing(np.maximum(np.abs(slot), np.abs(compensated)))
            assert (np.abs(received + slot - compensated) <= rounding).all(), "more than one rounding is lost"


def _combinations(*kinds):
    """All of the stages with their defaults; and every one with other settings among defaults of the rest."""
    defaults = [[one for one in kind if one.values[0] == type(one.values[0])()] for kind in kinds]
    yield from itertools.product(*defaults)
    for place, kind in enumerate(kinds):
        for one in kind:
            if one not in defaults[place]:
                others = [*defaults[:place], [one], *defaults[place + 1 :]]
                # One partner of each other kind in turn.
                yield from zip(*(itertools.islice(itertools.cycle(other), 4) for other in others), strict=True)


TRIPLES = [
    pytest.param(*(stage.values[0] for stage in stages), id="+".join(stage.id for stage in stages))
    for stages in _combinations(SPARSIFIER_SUBJECTS, INDEX_SUBJECTS, VALUE_SUBJECTS, MEMORY_SUBJECTS)
    if set(stages[0].values[0].requires) <= set(stages[3].values[0].slots)
]


@pytest.mark.parametrize(("sparsifier", "index", "value", "memory"), TRIPLES)
def test_nothing_is_lost(sparsifier, index, value, memory):
    for dtype in DTYPES:
        check_error_feedback(Settings(sparsifier, index, value, memory, seed=5), dtype)
