"""What every registered memory owes: nothing lost, nothing that is not finite kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import inputs, memory_reference
from conformance.inputs import VALUE_DTYPES
from conformance.subjects import MEMORY_SUBJECTS
from hvd_deepreduce.registry import MEMORIES
from hvd_deepreduce.sparse import SparseGradient

memories = pytest.mark.parametrize("memory", MEMORY_SUBJECTS)
dtypes = pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)


def filled_slots(memory, numel, dtype):
    slots = {name: inputs.gradient_values(dtype, numel, seed=len(name)) for name in memory.slots}
    return {name: np.abs(slot) if name == "squares" else slot for name, slot in slots.items()}


def copied(slots):
    return {name: array.copy() for name, array in slots.items()}


def assert_equal_bits(ours, before):
    for name, array in ours.items():
        assert array.tobytes() == before[name].tobytes(), f"slot {name} was changed"


@dtypes
@memories
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 49, 99])
def test_what_is_not_finite_leaves_the_slots_alone(memory, dtype, wrong, place):
    slots = filled_slots(memory, 100, dtype)
    before = copied(slots)
    gradient = inputs.gradient_values(dtype, 100)
    gradient[place] = wrong
    assert memory.compensate(gradient, slots) is None
    assert_equal_bits(slots, before)


@dtypes
def test_a_sum_beyond_the_largest_leaves_the_residual_alone(dtype):
    memory = MEMORIES["residual"]()
    slots = {"residual": np.array([1.0, 2.0, np.finfo(dtype).max], dtype)}
    before = copied(slots)
    assert memory.compensate(np.array([1.0, 1.0, np.finfo(dtype).max], dtype), slots) is None
    assert_equal_bits(slots, before)


@dtypes
@memories
def test_compensated_is_sent_and_kept_back(memory, dtype):
    @given(st.integers(0, 2**32), st.integers(0, 50), st.booleans())
    def run(seed, kept, with_order):
        rng = np.random.default_rng(seed)
        slots = filled_slots(memory, 100, dtype)
        before = copied(slots)
        gradient = inputs.gradient_values(dtype, 100, seed)
        unchanged = gradient.copy()
        compensated = memory.compensate(gradient, slots)
        expected, added = memory_reference.compensated(memory, before, unchanged)
        close(compensated, expected)
        support = inputs.support(np.sort(rng.choice(100, kept, replace=False)), 100)
        decoded = (expected[support.positions] * rng.uniform(0.5, 1.5, kept)).astype(dtype)
        order = rng.permutation(kept) if with_order else None
        sent = SparseGradient(support, decoded if order is None else decoded[order], order)
        memory.update(compensated, slots, sent)
        assert np.array_equal(gradient, unchanged)
        for name, rest in memory_reference.updated(memory, added, support.positions, decoded).items():
            close(slots[name], rest)

    def close(ours, theirs):
        # A norm is added up in another order here.
        if getattr(memory, "clip", 0):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(ours, theirs)

    run()


@dtypes
@memories
def test_what_was_sent_can_be_given_back(memory, dtype):
    slots = filled_slots(memory, 100, dtype)
    compensated = memory.compensate(inputs.gradient_values(dtype, 100), slots).copy()
    support = inputs.support(np.arange(0, 100, 7), 100)
    sent = SparseGradient(support, compensated[support.positions])
    memory.update(compensated, slots, sent)
    memory.restore(slots, sent)
    if "residual" in slots:
        np.testing.assert_array_equal(slots["residual"], compensated)


@dtypes
@memories
def test_a_value_sent_for_its_opposite_leaves_the_largest_and_no_infinity(memory, dtype):
    """As `bloom(policy="naive")` may send it."""
    slots = {name: np.zeros(3, dtype) for name in memory.slots}
    largest = np.finfo(dtype).max
    compensated = memory.compensate(np.zeros(3, dtype), slots)
    if "residual" in slots:
        slots["residual"][:] = compensated[:] = [largest, -largest, 1]
    support = inputs.support(np.arange(3), 3)
    memory.update(compensated, slots, SparseGradient(support, np.array([-largest, largest, 1], dtype)))
    if "residual" in slots:
        np.testing.assert_array_equal(slots["residual"], np.array([largest, -largest, 0], dtype))
    memory.restore(slots, SparseGradient(support, np.array([largest, -largest, 1], dtype)))
    if "residual" in slots:
        np.testing.assert_array_equal(slots["residual"], np.array([largest, -largest, 1], dtype))
