"""Methods by name: every recipe is made and sends a gradient, and no name means two things."""

from pathlib import Path

import numpy as np
import pytest

from hvd_deepreduce import Settings
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.recipes import RECIPES
from hvd_deepreduce.registry import SPARSIFIERS
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

OPTIONS = Path(__file__).resolve().parents[2] / "docs" / "options.md"


@pytest.mark.parametrize("name", RECIPES)
def test_a_gradient_goes_through_and_what_is_not_sent_is_kept(name: str) -> None:
    settings = Settings.from_string(name)
    pipeline, draw, spec = Pipeline(settings), Draw(0, "layer"), TensorSpec("layer", (64, 64, 3, 3))
    rng = np.random.default_rng(0)
    gradient = (rng.laplace(size=spec.numel) * 0.01).astype(np.float32)
    slots = pipeline.new_slots(spec)
    settings.sparsifier.begin_step([(spec.numel, slots)])
    encoded = pipeline.encode(gradient.copy(), spec, slots, draw)
    assert 0 < len(encoded.frame) < 4 * spec.numel
    dense = np.zeros_like(gradient)
    assert pipeline.add_into(dense, pipeline.read(ByteReader(encoded.frame, "test"), spec), spec, draw, 1.0)
    assert np.corrcoef(dense, gradient)[0, 1] > 0.05
    if settings.memory.name == "residual":
        assert np.abs(dense + slots["residual"] - gradient).max() < 1e-6


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_its_stages(name: str) -> None:
    assert Settings.from_string(name, seed=3) == Settings.from_string(RECIPES[name].stages, seed=3)
    assert RECIPES[name].stages.count("+") == 3, "all stages are spelled out"
    assert RECIPES[name].source


@pytest.mark.parametrize("name", RECIPES)
def test_the_documentation_has_it(name: str) -> None:
    assert f"| `{name}` | `{RECIPES[name].stages}` | {RECIPES[name].source}" in OPTIONS.read_text(encoding="utf-8")


def test_one_name_is_that_of_a_sparsifier_too() -> None:
    assert set(RECIPES) & set(SPARSIFIERS) == {"dgc"}
    assert Settings.from_string("dgc").memory.name == "dgc"
    assert Settings.from_string("dgc+rice") == Settings.of("dgc", "rice")


def test_no_two_recipes_are_the_same() -> None:
    assert len({recipe.stages for recipe in RECIPES.values()}) == len(RECIPES)


def test_the_default_recipe_is_the_default() -> None:
    assert Settings.from_string("default") == Settings.of()


def test_settings_of_a_recipe_can_be_changed() -> None:
    assert Settings.from_string(" gradient_dropping ( rate = 0.999 ) ").sparsifier.rate == 0.999
    settings = Settings.from_string("dgc(density=0.01, momentum=0.5)", seed=2)
    assert str(settings) == str(Settings.of("dgc(density=0.01)", "raw", "raw", "dgc(momentum=0.5)"))
    assert settings.seed == 2
    assert Settings.from_string("strom()") == Settings.from_string("strom")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topq", ["'topq' is no recipe", "gradient_dropping", "topk(density=0.01)"]),
        ("strom(bits=3)", ["no setting 'bits'", "value=0.001, centroid='min'"]),
        ("strom(0.1)", ["need their names", "value=0.001"]),
        ("strom(value=-1)", ["threshold: value=-1"]),
        ("strom(value=", ["not of the form", "value=0.001"]),
        ("strom+rice", ["stands alone", RECIPES["strom"].stages]),
        ("topk+strom", ["index", "strom"]),
    ],
)
def test_what_is_refused(text: str, words: list[str]) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        Settings.from_string(text)
    for word in words:
        assert word in str(raised.value)
