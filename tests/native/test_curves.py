"""How well `fit_poly`, `fit_dexp` and `sketch` do what they are for: curves recovered, errors, sizes, refusals."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from reference import curves as reference
from reference import fit_dexp as reference_dexp

from hvd_deepreduce import FitDexp, FitPoly, Sketch, _native
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DRAW = Draw()


def support_of(values):
    return Support(np.arange(len(values), dtype=np.uint32), MatrixView(1, max(len(values), 1)))


def decoded(codec, values):
    support = support_of(values)
    return codec.decode(codec.encode(values, support, DRAW), support, values.dtype, DRAW)


def relative_error(codec, values):
    wide = values.astype(np.longdouble)
    return float(np.sqrt(np.sum((decoded(codec, values) - wide) ** 2) / np.sum(wide**2)))


def shuffled(curve, dtype, seed=0):
    """A curve as codecs meet it: some values negative, in no order."""
    values = np.concatenate([curve, -curve[::3]]).astype(dtype)
    np.random.default_rng(seed).shuffle(values)
    return values


def largest(values, density=0.01):
    kept = round(len(values) * density)
    return values[np.sort(np.argpartition(np.abs(values), -kept)[-kept:])]


def gradients(dtype=np.float32):
    rng = np.random.default_rng(1)
    return {
        "normal": largest(1e-3 * rng.normal(size=250_000)).astype(dtype),
        "laplace": largest(1e-3 * rng.laplace(size=250_000)).astype(dtype),
    }


# --- fit_poly ---


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("degree", range(1, 10))
def test_a_polynomial_is_reproduced_to_float32_precision(degree, dtype):
    x = np.linspace(-1, 1, 4000)
    # Each is steeper than all of the others together are level.
    curve = chebyshev.chebval(x, [4.0, -1.0] + [-0.3 / k**4 for k in range(2, degree + 1)])
    assert (np.diff(curve) < 0).all()
    for scale in (1.0, 1e-30):
        values = (scale * curve).astype(dtype)
        assert relative_error(FitPoly(degree, segments=1), values) < 2e-7


def test_pieces_of_polynomials_are_found():
    steep, flat = 10 - 4 * np.linspace(0, 1, 60), 6 - 3 * np.linspace(0.001, 1, 2000)
    values = np.concatenate([steep, flat])
    assert relative_error(FitPoly(degree=1, segments=1), values) > 1e-2
    assert relative_error(FitPoly(degree=1, segments=3), values) < 1e-6


@pytest.mark.parametrize("count", range(1, 12))
def test_few_values_are_interpolated(count):
    values = np.random.default_rng(count).uniform(0.5, 1, count).astype(np.float32)
    assert relative_error(FitPoly(degree=9, segments=2), values) < 2e-6


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize(("kind", "most"), [("normal", 1.5e-3), ("laplace", 3e-3)])
def test_fit_poly_of_gradients(kind, most, dtype):
    values = gradients(dtype)[kind]
    codec = FitPoly()
    assert relative_error(codec, values) < most
    # A bit for the curves at most, and their heads.
    free, _ = codec.ordered.encode(values, DRAW)
    assert 8 * len(free) / len(values) < 1.4
    with_order = codec.encode(values, support_of(values), DRAW)
    assert len(with_order) - len(free) == math.ceil(len(values) * math.ceil(math.log2(len(values))) / 8)


def test_more_pieces_and_higher_degrees_fit_better():
    values = gradients()["laplace"]
    by_pieces = [relative_error(FitPoly(2, segments), values) for segments in (1, 4, 16, 64)]
    by_degree = [relative_error(FitPoly(degree, 4), values) for degree in (1, 3, 5, 9)]
    for errors in (by_pieces, by_degree):
        assert all(better < 0.8 * worse for worse, better in pairwise(errors))


# --- fit_dexp ---


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("count", [40, 3000])
@pytest.mark.parametrize("terms", [(0.6, -40, 0.4, -0.5), (0.9, -5, 0.1, -0.2), (0.5, -100, 0.5, -2), (1, -3, 0, 0)])
def test_two_exponentials_are_recovered(terms, count, dtype):
    a, b, c, d = terms
    x = np.linspace(0, 1, count)
    values = shuffled(3e-4 * (a * np.exp(b * x) + c * np.exp(d * x)), dtype)
    # The negative ones are every third point: exponentials too, of slightly other rates.
    assert relative_error(FitDexp(), values) < 1e-6


@pytest.mark.parametrize(("kind", "most"), [("normal", 0.015), ("laplace", 0.04)])
def test_fit_dexp_of_gradients(kind, most):
    values = gradients()[kind]
    assert relative_error(FitDexp(), values) < most
    free, _ = FitDexp().ordered.encode(values, DRAW)
    assert len(free) <= 56


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_what_is_no_exponential_is_still_fitted_and_finite(dtype):
    info = np.finfo(dtype)
    rng = np.random.default_rng(0)
    for values in (
        [1.0, 2.0],
        [3.0, 2.0, 0.0],
        [float(info.max)] * 5 + [float(info.tiny)],
        [float(info.max), float(info.smallest_subnormal)],
        [1.0] * 50 + [0.5] * 50,
        [1.0] + [1e-30] * 99,
        np.sqrt(np.linspace(1, 0, 100)),
        rng.pareto(0.3, 200),
        10.0 ** np.linspace(-30, 30, 100),
    ):
        array = np.array(values).clip(-float(info.max), float(info.max)).astype(dtype)
        found = decoded(FitDexp(), array)
        assert np.isfinite(found).all()
        assert (found >= array.min()).all()
        assert (found <= array.max()).all()
        line = np.linspace(array.max(), array.min(), len(array), dtype=np.longdouble)
        falling, curve = (np.sort(a)[::-1] / np.longdouble(array.max()) for a in (array, found))
        straight = np.sum((line / np.longdouble(array.max()) - falling) ** 2)
        assert np.sum((curve - falling) ** 2) <= straight * (1 + 1e-6) + 1e-12


def test_the_exponential_function_is_right():
    for z in [*np.linspace(-600, 600, 2001).tolist(), 0.0, 1e-300, -1e-9]:
        assert reference_dexp.exp(z) == pytest.approx(math.exp(z), rel=1e-11)


# --- both ---


@pytest.mark.parametrize("codec", [FitPoly(), FitPoly(1, 3), FitDexp()], ids=repr)
def test_the_order_beside_the_payload_is_that_of_values(codec):
    values = np.array([1, -2, 4, 2, 0, -0.0, 2, -7], np.float32)
    payload, order = codec.ordered.encode(values, DRAW)
    assert order.tolist() == [2, 3, 6, 0, 4, 5, 1, 7]
    assert order.tolist() == reference.falling(values.tolist())
    in_order = codec.ordered.decode(payload, 8, FLOAT32, DRAW)
    assert np.array_equal(in_order, decoded(codec, values)[order])


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_sorting_is_by_value_and_stable(dtype):
    rng = np.random.default_rng(3)
    for values in (
        rng.normal(size=5000),
        rng.integers(-3, 4, 5000),
        np.ldexp(rng.normal(size=5000), rng.integers(-140, 120, 5000)),
        -np.arange(3000.0),
        np.zeros(100),
    ):
        array = values.astype(dtype)
        _, order = FitDexp().ordered.encode(array, DRAW)
        assert np.array_equal(order, np.argsort(-array, kind="stable"))


# --- sketch ---


@pytest.mark.parametrize("of", ["squares", "values"])
@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_sketch_of_gradients(kind, of):
    values = gradients()[kind]
    most = {("squares", "normal"): 0.012, ("squares", "laplace"): 0.025}.get((of, kind), 0.045)
    assert relative_error(Sketch(64, of), values) < most
    errors = [relative_error(Sketch(quantiles, of), values) for quantiles in (4, 16, 64, 256)]
    assert all(better < 0.8 * worse for worse, better in pairwise(errors))
    # Six bits each at most, and the means and lengths.
    assert len(Sketch(64, of).encode(values, support_of(values), DRAW)) <= 1 + 64 * 4.5 + len(values) * 6.1 / 8


def test_quantiles_of_squares_bear_a_few_huge_values_and_cost_less():
    values = np.random.default_rng(4).standard_t(2, 5000).astype(np.float32)
    squares, alike = Sketch(64), Sketch(64, "values")
    assert relative_error(squares, values) < 0.2 * relative_error(alike, values)
    sizes = [len(codec.encode(values, support_of(values), DRAW)) for codec in (squares, alike)]
    assert sizes[0] < 0.8 * sizes[1]


def test_buckets_of_a_sketch_hold_alike_much():
    values = np.random.default_rng(5).permutation(np.arange(1, 6401, dtype=np.float32))
    _, counts = np.unique(decoded(Sketch(64, "values"), values), return_counts=True)
    assert counts.tolist() == [100] * 64
    means, bucket = np.unique(decoded(Sketch(64), values), return_inverse=True)
    sums = np.bincount(bucket, values.astype(np.float64) ** 2)
    assert len(means) == 64
    assert sums == pytest.approx(np.full(64, sums.mean()), rel=0.05)


def test_few_distinct_values_are_exact_and_cost_their_entropy():
    rng = np.random.default_rng(6)
    values = rng.choice(np.array([0.5, -0.5, 1.0, 4.0], np.float32), 10_000, p=[0.7, 0.2, 0.07, 0.03])
    codec = Sketch(256)
    assert np.array_equal(decoded(codec, values), values)
    assert 8 * len(codec.encode(values, support_of(values), DRAW)) / len(values) < 1.45


@pytest.mark.parametrize("of", ["squares", "values"])
@pytest.mark.parametrize("quantiles", [2, 3, 64])
def test_no_bucket_is_of_both_signs(quantiles, of):
    values = np.array([1e-3, -1e-3] * 4 + [5.0] * 90 + [-1e-3], np.float32)
    assert np.array_equal(np.sign(decoded(Sketch(quantiles, of), values)), np.sign(values))


# --- refusals ---


@pytest.mark.parametrize(
    "make",
    [
        lambda: FitPoly(degree=0),
        lambda: FitPoly(degree=10),
        lambda: FitPoly(degree=2.0),
        lambda: FitPoly(segments=-1),
        lambda: FitPoly(segments=1025),
        lambda: Sketch(quantiles=1),
        lambda: Sketch(quantiles=257),
        lambda: Sketch(of="bits"),
        lambda: _native.fit_poly_encode(np.ones(3, np.float32), 10, 0, True),
        lambda: _native.fit_poly_encode(np.ones(3, np.float16), 5, 0, True),
        lambda: _native.sketch_encode(np.ones(3, np.float32), 300, False),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InvalidSettingError):
        make()
