"""What every registered sparsifier keeps, against the plain reading of its definition."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import shared_support
from reference.randomness import draw

from conformance import inputs
from conformance.inputs import DRAW, VALUE_DTYPES
from conformance.subjects import SPARSIFIER_SUBJECTS
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.registry import SPARSIFIERS
from hvd_deepreduce.sparse import MatrixView


def _topk(values, slots, density):
    return _largest(values, range(len(values)), min(len(values), max(1, round(density * len(values)))))


def _largest(values, positions, kept):
    return sorted(sorted(positions, key=lambda position: (-abs(values[position]), position))[:kept])


def _threshold(values, slots, value):
    with np.errstate(over="ignore"):
        return _above(values, np.asarray(value).astype(values.dtype))


def _above(values, limit):
    return [position for position, element in enumerate(values) if abs(element) > limit]


def _sample(values, count):
    stride = len(values) // count if count else 0
    return [abs(values[place * stride + draw(0, place) % stride]) for place in range(count)]


def _sampled_threshold(values, count, above):
    largest = sorted(_sample(values, count), reverse=True)
    return largest[above] if above < count else 0


def _dropping(values, slots, rate, sample, scope):
    count = min(len(values), max(round(sample * len(values)), math.ceil(10 / (1 - rate))))
    return _above(values, _sampled_threshold(values, count, max(1, round((1 - rate) * count))))


def _randomk(values, slots, density):
    kept = min(len(values), max(1, round(density * len(values))))
    return shared_support.support(DRAW.shared_key(), len(values), kept)


def _rtopk(values, slots, density, pool):
    kept, drawn_from = (min(len(values), max(1, round(share * len(values)))) for share in (density, pool))
    largest = _largest(values, range(len(values)), drawn_from)
    return [largest[i] for i in shared_support.support(DRAW.key(), drawn_from, kept)]


def _dgc(values, slots, density, sample, warmup):
    if DRAW.step < warmup:
        density = max(density, 0.25 ** (4 * DRAW.step // warmup + 1))
    count = min(len(values), max(round(sample * len(values)), math.ceil(10 / density)))
    found = _above(values, _sampled_threshold(values, count, max(1, round(density * count))))
    return _largest(values, found, max(1, round(density * len(values))))


def _sidco(values, slots, density):
    """With the one stage of a first step."""
    magnitudes = np.abs(values.astype(np.float64))
    excess = magnitudes[magnitudes > 0]
    with np.errstate(over="ignore"):
        limit = excess.mean() * math.log(1 / density) if len(excess) else 0.0
        return _above(values, np.asarray(limit).astype(values.dtype))


def _variance(values, slots, alpha):
    limits = np.sqrt(slots["squares"]) * values.dtype.type(np.sqrt(alpha))
    return [position for position, element in enumerate(values) if abs(element) > limits[position]]


EXPECTED = {
    "none": lambda values, slots: [position for position, element in enumerate(values) if element != 0],
    "topk": _topk,
    "threshold": _threshold,
    "dropping": _dropping,
    "randomk": _randomk,
    "rtopk": _rtopk,
    "sidco": _sidco,
    "dgc": _dgc,
    "variance": _variance,
}

sparsifiers = pytest.mark.parametrize("sparsifier", SPARSIFIER_SUBJECTS)
dtypes = pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)


def new_slots(sparsifier, values):
    """Empty ones of its own, and what it may find in a memory's."""
    own = {name: np.zeros(size, values.dtype) for name, size in sparsifier.slot_sizes(len(values)).items()}
    squares = np.abs(inputs.gradient_values(values.dtype, len(values), seed=2))
    return {**dict.fromkeys(sparsifier.requires, squares), **own}


def check(sparsifier, values, rows=1):
    view = MatrixView(rows, len(values) // rows)
    before = values.copy()
    values.flags.writeable = False
    slots = new_slots(sparsifier, values)
    support = sparsifier.sparsify(values, view, DRAW, slots)
    assert np.array_equal(values, before)
    assert support.view == view
    assert support.positions.dtype == view.position_dtype
    assert support.positions.ndim == 1
    assert not np.shares_memory(support.positions, values)
    expected = EXPECTED[sparsifier.name](values, slots, **vars(sparsifier))
    assert support.positions.tolist() == expected


def test_every_sparsifier_has_its_definition_here():
    assert set(EXPECTED) == set(SPARSIFIERS)


@dtypes
@sparsifiers
def test_keeps_what_its_definition_says(sparsifier, dtype):
    @given(inputs.values(dtype, most=60, finite=True))
    def run(values):
        check(sparsifier, values)

    run()


@dtypes
@sparsifiers
def test_ties(sparsifier, dtype):
    @given(st.lists(st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -1.0]), min_size=1, max_size=60))
    def run(numbers):
        check(sparsifier, np.array(numbers, dtype))

    run()


@dtypes
@sparsifiers
@pytest.mark.parametrize(
    "numbers",
    [[0.0], [-0.0], [3.0], [0.0] * 100, [1.0] * 100, [-1.0, 1.0] * 50, [1e-45, -1e-45, 0.0], [3.4e38, -3.4e38, 1.0]],
    ids=lambda numbers: f"{len(numbers)}x{numbers[0]}",
)
def test_edges(sparsifier, dtype, numbers):
    check(sparsifier, np.array(numbers).astype(dtype))


@dtypes
@sparsifiers
def test_a_large_gradient(sparsifier, dtype):
    check(sparsifier, inputs.gradient_values(dtype, 60_000), rows=100)


@dtypes
@sparsifiers
def test_no_elements(sparsifier, dtype):
    nothing = np.empty(0, dtype)
    support = sparsifier.sparsify(nothing, MatrixView(1, 0), DRAW, new_slots(sparsifier, nothing))
    assert support.kept == 0


@sparsifiers
def test_a_shared_support_is_what_every_rank_keeps(sparsifier):
    view = MatrixView(10, 30)
    here, there = DRAW._replace(rank=1), DRAW._replace(rank=2)
    kept = []
    for rank, at in enumerate((here, there)):
        values = inputs.gradient_values(np.dtype(np.float32), 300, seed=rank)
        kept.append(sparsifier.sparsify(values, view, at, new_slots(sparsifier, values)).positions.tolist())
    if sparsifier.shared:
        assert kept[0] == kept[1] == sparsifier.shared_support(view, there).positions.tolist()
        assert kept[0] != sparsifier.shared_support(view, here._replace(step=here.step + 1)).positions.tolist()
    else:
        assert kept[0] != kept[1] or len(kept[0]) in (0, 1, 300)


@pytest.mark.parametrize("exponent", [1, 3])
@pytest.mark.parametrize("density", [0.1, 0.01, 0.001])
def test_sidco_finds_its_density_within_a_few_steps(density, exponent):
    """For the light tails of a Gaussian and for heavy ones."""
    values = np.random.default_rng(1).standard_normal(200_000).astype(np.float32) ** exponent
    sparsifier = SPARSIFIERS["sidco"](density=density)
    slots = new_slots(sparsifier, values)
    for _ in range(6):
        kept = sparsifier.sparsify(values, MatrixView(1, len(values)), DRAW, slots).kept
    assert kept == pytest.approx(density * len(values), rel=0.5)


def test_rtopk_draws_all_of_its_pool_alike():
    values = np.arange(100, 0, -1).astype(np.float32)
    sparsifier = SPARSIFIERS["rtopk"](density=0.1, pool=0.2)
    times = np.zeros(100)
    for step in range(2000):
        times[sparsifier.sparsify(values, MatrixView(1, 100), DRAW._replace(step=step), {}).positions] += 1
    assert times[20:].sum() == 0
    assert times[:20] == pytest.approx(np.full(20, 1000), rel=0.1)


@pytest.mark.parametrize(("numel", "density", "kept"), [(1000, 0.01, 10), (10, 0.01, 1), (36864, 0.01, 369), (3, 1, 3)])
def test_topk_keeps_as_many_as_documented(numel, density, kept):
    values = inputs.gradient_values(np.dtype(np.float32), numel)
    assert SPARSIFIERS["topk"](density=density).sparsify(values, MatrixView(1, numel), DRAW, {}).kept == kept


def test_a_threshold_beyond_float32_keeps_nothing():
    values = np.array([3.4e38, -3.4e38], np.float32)
    assert SPARSIFIERS["threshold"](value=1e300).sparsify(values, MatrixView(1, 2), DRAW, {}).kept == 0


@pytest.mark.parametrize("numel", [1_000, 36_864, 1_000_000])
@pytest.mark.parametrize("rate", [0.9, 0.99])
def test_dropping_keeps_about_its_share(numel, rate):
    values = np.random.default_rng(numel).standard_normal(numel).astype(np.float32)
    kept = SPARSIFIERS["dropping"](rate=rate).sparsify(values, MatrixView(1, numel), DRAW, {}).kept
    assert kept == pytest.approx((1 - rate) * numel, rel=0.5)


def test_dropping_never_keeps_zeros():
    values = np.zeros(50_000, np.float32)
    values[1234] = 1
    support = SPARSIFIERS["dropping"]().sparsify(values, MatrixView(1, 50_000), DRAW, {})
    assert support.positions.tolist() == [1234]


def test_a_global_threshold_is_that_of_all_elements_of_the_step_before():
    """A layer of ten times the scale keeps nearly all its elements; one of a tenth, nearly none."""
    sparsifier = SPARSIFIERS["dropping"](rate=0.9, sample=0.05, scope="global")
    rng = np.random.default_rng(3)
    layers = [scale * rng.standard_normal(numel) for scale, numel in ((1, 200_000), (10, 10_000), (0.1, 30_000))]
    slots = [new_slots(sparsifier, layer) for layer in layers]
    for step in range(2):
        sparsifier.begin_step([(len(layer), one) for layer, one in zip(layers, slots, strict=True)])
        shares = []
        for layer, one in zip(layers, slots, strict=True):
            support = sparsifier.sparsify(layer, MatrixView(1, len(layer)), DRAW, one)
            shares.append(support.kept / len(layer))
        if step == 0:
            assert shares == pytest.approx([0.1, 0.1, 0.1], rel=0.7)
    everything = np.sort(np.abs(np.concatenate(layers)))[::-1]
    exact = everything[len(everything) // 10]
    for layer, share in zip(layers, shares, strict=True):
        assert share == pytest.approx(np.mean(np.abs(layer) > exact), rel=0.1, abs=0.001)


def test_a_global_threshold_of_zero_keeps_all_that_is_not():
    """Most of the model has no gradient, and what has one is less than what may be kept."""
    sparsifier = SPARSIFIERS["dropping"](rate=0.9, scope="global")
    layers = [np.zeros(100_000), np.random.default_rng(1).standard_normal(5_000)]
    slots = [new_slots(sparsifier, layer) for layer in layers]
    for _ in range(2):
        sparsifier.begin_step([(len(layer), one) for layer, one in zip(layers, slots, strict=True)])
        kept = [
            sparsifier.sparsify(layer, MatrixView(1, len(layer)), DRAW, one).kept
            for layer, one in zip(layers, slots, strict=True)
        ]
    assert kept == [0, 5_000]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 1.0}, "dropping: rate=1.0; allowed is 0 to below 1"),
        ({"rate": -0.1}, "dropping: rate=-0.1"),
        ({"sample": 0.0}, "dropping: sample=0.0"),
        ({"scope": "layer"}, "dropping: scope='layer'; allowed are 'tensor', 'global'"),
    ],
)
def test_dropping_refuses(settings, message):
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        SPARSIFIERS["dropping"](**settings)
