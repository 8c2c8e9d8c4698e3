"""What every registered memory owes: nothing lost, nothing that is not finite kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import inputs
from conformance.inputs import VALUE_DTYPES
from conformance.subjects import MEMORY_SUBJECTS
from hvd_deepreduce.sparse import SparseGradient

memories = pytest.mark.parametrize("memory", MEMORY_SUBJECTS)
dtypes = pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)


def filled_slots(memory, numel, dtype):
    return {name: inputs.gradient_values(dtype, numel, seed=len(name)) for name in memory.slots}


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
    memory = MEMORY_SUBJECTS[1].values[0]
    assert memory.slots == ("residual",)
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
        expected = sum(before.values(), unchanged.copy())
        assert np.array_equal(compensated, expected)
        support = inputs.support(np.sort(rng.choice(100, kept, replace=False)), 100)
        decoded = (expected[support.positions] * rng.uniform(0.5, 1.5, kept)).astype(dtype)
        order = rng.permutation(kept) if with_order else None
        sent = SparseGradient(support, decoded if order is None else decoded[order], order)
        memory.update(compensated, slots, sent)
        assert np.array_equal(gradient, unchanged)
        for name, slot in slots.items():
            rest = expected.copy()
            rest[support.positions] -= decoded
            assert np.array_equal(slot, rest), name

    run()
