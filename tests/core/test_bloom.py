"""What Bloom filters and their policies promise beyond what all index codecs do."""

import importlib.util
import math

import numpy as np
import pytest
from conformance import index_checks, inputs
from conformance.stage_checks import STAGE_CHECKS
from reference import bloom as reference

from hvd_deepreduce import _native, pybloom
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.index_codecs.bloom import Bloom
from hvd_deepreduce.measure import measure
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS
from hvd_deepreduce.settings import Settings, stage_of
from hvd_deepreduce.sparse import MatrixView, Support, TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

DRAW = Draw(seed=1, tensor="layer", step=2, rank=3)
POLICIES = ("naive", "p0", "p1", "leftmost", "middle", "rightmost", "p2")


def decoded(codec, support):
    return codec.decode(codec.encode(support, DRAW), support.kept, support.view, DRAW).positions


def false_positive_rate(codec, support):
    reported = decoded(codec, support)
    assert np.isin(support.positions, reported).all(), "a kept position is not reported"
    return (len(reported) - support.kept) / (support.view.numel - support.kept)


@pytest.mark.parametrize("fpr", [0.6, 0.45, 0.1, 0.01, 0.001])
def test_the_rate_of_false_positives_is_what_was_asked_for(fpr):
    support = inputs.random_support(20_000_000 if fpr < 0.01 else 2_000_000, 0.01, seed=3)
    assert abs(false_positive_rate(Bloom(fpr=fpr), support) / fpr - 1) < 0.05


@pytest.mark.parametrize("fpr", [0.001, 0.01, 0.1])
def test_sizes_are_those_of_pybloom(fpr):
    for kept in (100, 5_000):
        slices, size, _ = pybloom.insert(np.arange(kept), fpr)
        codec = Bloom(fpr=fpr)
        assert codec.hashes == slices
        assert math.isclose(8 * codec.size(kept), slices * size, rel_tol=0.012 + 16 / (slices * size))


def test_rates_are_those_of_pybloom():
    support = inputs.random_support(40_000, 0.05)
    ours, theirs = (false_positive_rate(Bloom(fpr=0.1, engine=engine), support) for engine in ("native", "pybloom"))
    assert abs(ours / theirs - 1) < 0.1
    assert abs(theirs / 0.1 - 1) < 0.1


@pytest.mark.parametrize("engine", ["native", "pybloom"])
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_choose_among_the_members(policy, engine):
    support = inputs.random_support(3_000, 0.05)
    members = decoded(Bloom("p0", 0.1, engine), support)
    extra = len(members) - support.kept
    assert extra > 50
    codec = Bloom(policy, 0.1, engine)
    found = decoded(codec, support)
    start = {"naive": 0, "leftmost": 0, "middle": extra // 2, "rightmost": extra}
    if policy in start:
        assert np.array_equal(found, members[start[policy] :][: support.kept])
    elif policy != "p0":
        assert len(found) == support.kept
        assert np.isin(found, members).all()
    size, key = codec.size(support.kept), DRAW.key()
    if engine == "pybloom":
        size = pybloom.insert(support.positions, 0.1)[1]
    code = {"p0": 0, "naive": 1, "leftmost": 1, "middle": 2, "rightmost": 3, "p1": 4, "p2": 5}[policy]
    sliced = engine == "pybloom"
    payload = reference.encode(support.positions.tolist(), code, 4, size, key, sliced)
    assert codec.encode(support, DRAW) == payload
    assert reference.decode(payload, support.kept, support.view.numel, sliced) == found.tolist()


def test_conflict_sets_find_more_of_what_was_kept_than_chance():
    support = inputs.random_support(1_000_000, 0.01)
    p1, p2 = (np.isin(decoded(Bloom(policy), support), support.positions).mean() for policy in ("p1", "p2"))
    assert 0.89 < p1 < 0.93
    assert p2 > 0.99


def test_p1_follows_the_draw():
    support = inputs.random_support(3_000, 0.05)
    codec = Bloom("p1", 0.1)
    payloads = [codec.encode(support, Draw(step=step)) for step in (0, 0, 1)]
    first, again, other = (codec.decode(p, support.kept, support.view, DRAW).positions for p in payloads)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def sent(policy, gradient):
    """What receivers of a twentieth of the gradient add up, and what the sender keeps back."""
    settings = Settings.of("topk(density=0.05)", Bloom(policy, 0.1), "raw")
    pipeline, spec = Pipeline(settings), TensorSpec("layer", (40, 50))
    slots = pipeline.new_slots(spec)
    encoded = pipeline.encode(gradient, spec, slots, DRAW)
    received = np.zeros_like(gradient)
    pipeline.add_into(received, pipeline.read(ByteReader(encoded.frame, "test"), spec), spec, DRAW, 1.0)
    assert np.array_equal(received + slots["residual"], gradient)
    return received


def test_p0_has_no_error_where_it_was_kept():
    gradient = inputs.gradient_values(np.dtype(np.float32), 2000)
    kept = _native.select_topk(gradient, 100)
    received = sent("p0", gradient)
    assert np.array_equal(received[kept], gradient[kept])
    reported = np.flatnonzero(received)
    assert len(reported) > 200
    assert np.array_equal(received[reported], gradient[reported])


@pytest.mark.parametrize("policy", ["p1", "p2", "leftmost", "middle", "rightmost"])
def test_values_are_those_of_the_positions_chosen(policy):
    gradient = inputs.gradient_values(np.dtype(np.float32), 2000)
    received = sent(policy, gradient)
    chosen = np.flatnonzero(received)
    assert len(chosen) == 100
    assert np.array_equal(received[chosen], gradient[chosen])


def test_naive_shifts_values_after_the_first_false_positive():
    gradient = np.arange(1, 2001, dtype=np.float32)
    gradient[::20] += 10_000
    kept = np.arange(0, 2000, 20)
    codec = Bloom("naive", 0.1)
    members = decoded(codec, Support(kept.astype(np.uint32), MatrixView(40, 50)))
    settings = Settings.of("threshold(value=5000)", codec, "raw", "none")
    spec, pipeline = TensorSpec("layer", (40, 50)), Pipeline(settings)
    frame = pipeline.encode(gradient, spec, {}, DRAW).frame
    received = pipeline.decode(pipeline.read(ByteReader(frame, "test"), spec), spec, DRAW)
    first = int(np.argmax(members != kept))
    assert 0 < first < 50
    assert np.array_equal(received.values, gradient[kept])
    right = gradient[received.support.positions] == received.values
    assert right[:first].all()
    assert not right[first:].any()


def test_true_values_of_false_positives_are_no_error():
    gradient = inputs.gradient_values(np.dtype(np.float32), 20_000).reshape(100, 200)
    errors = {
        policy: measure(gradient, Settings.of("topk", Bloom(policy, 0.01), "raw")).relative_error
        for policy in ("p0", "p1", "p2", "naive")
    }
    assert errors["p0"] == 0
    assert 0 <= errors["p2"] < errors["p1"] < errors["naive"]


@pytest.mark.parametrize("check", STAGE_CHECKS, ids=lambda check: check.__name__)
def test_the_other_engine_is_a_stage(check):
    check(Bloom("p2", 0.1, "pybloom"))


# Not those that decode thousands of times.
PYBLOOM_CHECKS = [
    index_checks.declares_traits,
    index_checks.deterministic_as_declared,
    index_checks.takes_arrays_of_every_kind,
    index_checks.refuses_wrong_positions_on_encode,
    index_checks.leaves_arrays_alone,
    index_checks.refuses_shortened_payloads,
    index_checks.refuses_lengthened_payloads,
    index_checks.edges_round_trip,
    index_checks.trusts_no_count,
]


@pytest.mark.parametrize("check", PYBLOOM_CHECKS, ids=lambda check: check.__name__)
def test_the_other_engine_is_an_index_codec(check):
    check(Bloom("p2", 0.1, "pybloom"))


@pytest.mark.parametrize("slices", [1, 3, 4, 5, 8, 9, 10, 13, 17, 20, 30])
@pytest.mark.parametrize("size", [1, 2**15 - 1, 2**15, 2**31 - 1, 2**31])
def test_the_page_says_how_pybloom_hashes(slices, size):
    from pybloom_live.pybloom import make_hashfuncs

    make_hashes, _ = make_hashfuncs(slices, size)
    theirs = [i * size + place for i, place in enumerate(make_hashes(12345))]
    assert reference.sliced_hashing(slices, size)(12345) == theirs


def test_wide_positions_hash_as_the_page_says():
    numel = 2**32 + 1000
    positions = np.array([5, 2**32 - 1, 2**32, 2**32 + 999], np.uint64)
    found = _native.bloom_places(positions, numel, 7, 100).reshape(4, 7).tolist()
    assert found == [reference.native_hashing(7, 100)(int(position)) for position in positions]
    assert _native.bloom_insert(positions, numel, 7, 100) == reference.encode(positions.tolist(), 0, 7, 100)[2:]


def test_without_pybloom_its_engine_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidSettingError, match="pip install"):
        Bloom(engine="pybloom")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bloom(policy='p3')", ["policy='p3'", "'p0', 'p1'"]),
        ("bloom(fpr=0)", ["fpr=0", "1e-09 to 0.6"]),
        ("bloom(fpr=0.7)", ["fpr=0.7"]),
        ("bloom(engine='c')", ["engine='c'", "'native', 'pybloom'"]),
    ],
)
def test_refuses_settings(text, words):
    with pytest.raises(InvalidSettingError) as raised:
        stage_of("index", INDEX_CODECS, text)
    assert all(word in str(raised.value) for word in words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: _native.bloom_head(6, 1, 8, 0), "policy: 6"),
        (lambda: _native.bloom_head(0, 32, 8, 0), "hashes: 32"),
        (lambda: _native.bloom_head(0, 1, 2**35, 0), "size: 34359738368"),
        (lambda: _native.bloom_insert(np.array([3], np.uint32), 10, 1, 7), "size: 7"),
        (lambda: _native.bloom_insert(np.array([3, 3], np.uint32), 10, 1, 8), "position"),
        (lambda: _native.bloom_members(b"1234567", 1, 10), "size: 7"),
        (lambda: _native.bloom_places(np.array([3], np.uint64), 10, 1, 8), "dtype uint64"),
        (lambda: _native.bloom_conflicts(np.array([3, 64], np.uint64), 1, 64, 1, 0), "bit 64 is outside"),
        (lambda: _native.bloom_conflicts(np.array([3, 4, 5], np.uint64), 2, 64, 1, 0), "3 are not 2 for each"),
        (lambda: _native.bloom_conflicts(np.array([3, 4], np.uint64), 2, 64, 2, 0), "2 of 1 members"),
    ],
)
def test_kernels_refuse_arguments(call, words):
    with pytest.raises(InvalidSettingError, match=words):
        call()
