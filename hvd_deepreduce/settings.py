"""What a user writes, checked once: stages as text or as objects, and all of them in one string."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

from hvd_deepreduce.checks import quoted, require_integer, require_number, require_text
from hvd_deepreduce.contracts import IndexCodec, Memory, Sparsifier, Stage, ValueCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.recipes import RECIPES
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS

_KINDS = ("sparsifier", "index", "value", "memory")
_S = TypeVar("_S", bound=Stage)

DEFAULT_SPARSIFIER = "topk(density=0.01)"
DEFAULT_INDEX = "rice"
DEFAULT_VALUE = "qsgd(bits=7)"
DEFAULT_MEMORY = "residual"

# Of both wings' constructors.
DEFAULT_MIN_NUMEL = 1024
DEFAULT_BUCKET_BYTES = 16 * 2**20
DEFAULT_TIMEOUT_S = 300.0


def require_options(name: str, *, min_numel: int, bucket_bytes: int, timeout: float, threads: int) -> None:
    """Checks what both wings' constructors take beside the stages."""
    require_integer("DeepReduce", "min_numel", min_numel, minimum=1, maximum=2**63 - 1)
    require_integer("DeepReduce", "bucket_bytes", bucket_bytes, minimum=1, maximum=2**63 - 1)
    require_integer("DeepReduce", "threads", threads, minimum=1, maximum=256)
    require_number("DeepReduce", "timeout", timeout, minimum=0.001)
    if not isinstance(name, str) or not name:
        raise InvalidSettingError(f"DeepReduce: name={quoted(name)}; needed is text that is not empty")


def describe(stage: Stage) -> str:
    """A stage as users write it, every setting spelled out.

    >>> describe(SPARSIFIERS["topk"]())
    'topk(density=0.01)'
    """
    settings = [f"{f.name}={getattr(stage, f.name)!r}" for f in dataclasses.fields(stage)]  # type: ignore[arg-type]
    return stage.name + (f"({', '.join(settings)})" if settings else "")


def is_available(stage: type[Stage]) -> bool:
    """Whether all that a stage needs is installed."""
    return stage.package is None or importlib.util.find_spec(stage.package) is not None


def stage_of(kind: str, table: Mapping[str, type[_S]], given: str | _S) -> _S:
    """The stage that a text or an object names; raises `InvalidSettingError` with what is allowed."""
    if not isinstance(given, str):
        if type(given) not in table.values():
            raise InvalidSettingError(f"{kind}: {quoted(given)} is none; allowed are {_forms(table)}")
        return given
    name, positional, named = _parse(kind, _forms(table), given)
    if name not in table:
        raise InvalidSettingError(f"{kind}: {quoted(name)} is unknown; allowed are {_forms(table)}")
    stage = table[name]
    known = [f.name for f in dataclasses.fields(stage)]  # type: ignore[arg-type]
    if len(positional) > len(known):
        raise InvalidSettingError(
            f"{kind} {quoted(given)}: {name} takes {len(known)} settings: {', '.join(known) or 'none'}"
        )
    settings = dict(zip(known, positional, strict=False))
    for setting, value in named:
        if setting not in known:
            raise InvalidSettingError(
                f"{kind} {quoted(given)}: no setting {quoted(setting)}; "
                f"allowed, with their defaults, are {_form(stage)}"
            )
        if setting in settings:
            raise InvalidSettingError(f"{kind} {quoted(given)}: {setting} is given twice")
        settings[setting] = value
    return stage(**settings)


class Agreed(Protocol):
    """Settings that must be equal on all ranks; `str` spells them out."""

    @property
    def seed(self) -> int: ...

    @property
    def fingerprint(self) -> int: ...


@dataclass(frozen=True)
class Settings:
    """The stages of a pipeline and the seed of its randomness."""

    sparsifier: Sparsifier
    index: IndexCodec
    value: ValueCodec
    memory: Memory
    seed: int = field(default=0)

    def __post_init__(self) -> None:
        require_integer("settings", "seed", self.seed, minimum=0, maximum=2**64 - 1)
        for stage in self.stages:
            if not is_available(type(stage)):
                raise InvalidSettingError(
                    f"{describe(stage)} needs the package {stage.package}: pip install {stage.package}"
                )
        missing = [slot for slot in self.sparsifier.requires if slot not in self.memory.slots]
        if missing:
            fitting = [name for name, memory in MEMORIES.items() if set(self.sparsifier.requires) <= set(memory.slots)]
            raise InvalidSettingError(
                f"memory: {describe(self.memory)} keeps no {', '.join(missing)}, which the sparsifier "
                f"{self.sparsifier.name} needs; allowed are {', '.join(fitting)}"
            )

    @property
    def stages(self) -> tuple[Sparsifier, IndexCodec, ValueCodec, Memory]:
        """In the order of the one-string form, and of the wings' constructors."""
        return self.sparsifier, self.index, self.value, self.memory

    def slot_sizes(self, numel: int) -> dict[str, int]:
        """Elements of each array that the stages keep for a tensor from step to step."""
        return {**dict.fromkeys(self.memory.slots, numel), **self.sparsifier.slot_sizes(numel)}

    @classmethod
    def of(
        cls,
        sparsifier: str | Sparsifier = DEFAULT_SPARSIFIER,
        index: str | IndexCodec = DEFAULT_INDEX,
        value: str | ValueCodec = DEFAULT_VALUE,
        memory: str | Memory = DEFAULT_MEMORY,
        seed: int = 0,
    ) -> Settings:
        """From stages as text, `name(setting=value, ...)`, or as objects."""
        return cls(
            stage_of("sparsifier", SPARSIFIERS, sparsifier),
            stage_of("index", INDEX_CODECS, index),
            stage_of("value", VALUE_CODECS, value),
            stage_of("memory", MEMORIES, memory),
            seed,
        )

    @classmethod
    def from_string(cls, text: str, seed: int = 0) -> Settings:
        """From `sparsifier+index+value+memory`; what is left out at the end takes its default.

        Or from a recipe's name, with settings to change in parentheses: any that just one of its stages has.

        >>> str(Settings.from_string("topk(density=0.001)+bitmap"))
        'topk(density=0.001)+bitmap+qsgd(bits=7, bucket=512)+residual'
        >>> str(Settings.from_string("gradient_dropping(rate=0.999)"))
        "dropping(rate=0.999, sample=0.001, scope='tensor')+raw+raw+residual"
        """
        stages = split_stages(require_text("settings", text, f"{DEFAULT_SPARSIFIER}+{DEFAULT_INDEX}"))
        if len(stages) > len(_KINDS):
            raise InvalidSettingError(f"{quoted(text)} has {len(stages)} parts; the form is {'+'.join(_KINDS)}")
        name, parenthesis, _ = stages[0].partition("(")
        name = name.strip()
        if len(stages) == 1 and name in RECIPES:
            settings = cls.from_string(RECIPES[name].stages, seed)
            return settings._changed(stages[0]) if parenthesis else settings
        if name in RECIPES and name not in SPARSIFIERS:
            raise InvalidSettingError(f"{quoted(text)}: the recipe {name} stands alone, for {RECIPES[name].stages}")
        if len(stages) == 1 and name not in SPARSIFIERS and name.isidentifier():
            raise InvalidSettingError(
                f"{quoted(name)} is no recipe and no sparsifier; recipes are {', '.join(RECIPES)}; "
                f"sparsifiers are {_forms(SPARSIFIERS)}"
            )
        return cls.of(**dict(zip(_KINDS, stages, strict=False)), seed=seed)

    def _changed(self, recipe: str) -> Settings:
        """With the settings that stand in the parentheses of a recipe."""
        allowed = ", ".join(f"{setting}={value!r}" for setting, (_, value) in self._own_settings().items())
        _, positional, named = _parse("recipe", allowed, recipe)
        changed = self
        for setting, value in named:
            owner = self._own_settings().get(setting)
            if owner is None:
                raise InvalidSettingError(
                    f"recipe {quoted(recipe)}: no setting {quoted(setting)} to change; allowed are {allowed}"
                )
            stage = dataclasses.replace(getattr(changed, owner[0]), **{setting: value})
            changed = dataclasses.replace(changed, **{owner[0]: stage})
        if positional:
            raise InvalidSettingError(f"recipe {quoted(recipe)}: settings need their names; allowed are {allowed}")
        return changed

    def _own_settings(self) -> dict[str, tuple[str, object]]:
        """The kind of stage and the value of every setting that only one of the stages has."""
        found = [(f.name, kind) for kind in _KINDS for f in dataclasses.fields(getattr(self, kind))]
        names = [name for name, _ in found]
        return {name: (kind, getattr(getattr(self, kind), name)) for name, kind in found if names.count(name) == 1}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Settings:
        """The inverse of `to_dict`."""
        allowed = (*_KINDS, "seed")
        if not isinstance(settings, Mapping) or not settings.keys() <= set(allowed):
            raise InvalidSettingError(
                f"settings: {quoted(settings)}; needed is a dict, its keys of {', '.join(allowed)}"
            )
        return cls.of(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Plain text and numbers, fit for JSON."""
        stages = {kind: describe(getattr(self, kind)) for kind in _KINDS}
        return stages | {"seed": self.seed}

    def __str__(self) -> str:
        return "+".join(describe(getattr(self, kind)) for kind in _KINDS)

    @cached_property
    def fingerprint(self) -> int:
        """FORMAT.md, 7."""
        digest = hashlib.blake2b(f"{self}\n{self.seed}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little")


def _form(stage: type[Stage]) -> str:
    settings = [f"{f.name}={f.default!r}" for f in dataclasses.fields(stage)]  # type: ignore[arg-type]
    return stage.name + (f"({', '.join(settings)})" if settings else "")


def _forms(table: Mapping[str, type[_S]]) -> str:
    return ", ".join(_form(stage) for stage in table.values())


def split_stages(text: str) -> list[str]:
    """The parts between the plus signs that stand outside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _parse(kind: str, allowed: str, text: str) -> tuple[str, list[object], list[tuple[str, object]]]:
    """Name, positional and named settings of `name` or `name(value, setting=value)`."""
    wrong = InvalidSettingError(
        f"{kind}: {quoted(text)} is not of the form name(setting=value, ...); allowed are {allowed}"
    )
    if not text.isascii() or "#" in text:
        raise wrong
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, [], []
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise wrong
        positional = [ast.literal_eval(argument) for argument in call.args]
        named = [(keyword.arg or "**", ast.literal_eval(keyword.value)) for keyword in call.keywords]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise wrong from error
    return call.func.id, positional, named
