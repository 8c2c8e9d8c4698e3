"""What a user writes, checked once: stages as text or as objects, and all of them in one string."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.contracts import IndexCodec, Memory, Sparsifier, Stage, ValueCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS

_S = TypeVar("_S", bound=Stage)

DEFAULT_SPARSIFIER = "topk(density=0.01)"
DEFAULT_INDEX = "rice"
DEFAULT_VALUE = "qsgd(bits=7)"
DEFAULT_MEMORY = "residual"

# Of both wings' constructors.
DEFAULT_MIN_NUMEL = 1024
DEFAULT_BUCKET_BYTES = 16 * 2**20
DEFAULT_TIMEOUT_S = 300.0


def describe(stage: Stage) -> str:
    """A stage as users write it, every setting spelled out.

    >>> describe(SPARSIFIERS["topk"]())
    'topk(density=0.01)'
    """
    settings = [f"{f.name}={getattr(stage, f.name)!r}" for f in dataclasses.fields(stage)]  # type: ignore[arg-type]
    return stage.name + (f"({', '.join(settings)})" if settings else "")


def stage_of(kind: str, table: Mapping[str, type[_S]], given: str | _S) -> _S:
    """The stage that a text or an object names; raises `InvalidSettingError` with what is allowed."""
    if not isinstance(given, str):
        if type(given) not in table.values():
            raise InvalidSettingError(f"{kind}: {given!r} is none; allowed are {_forms(table)}")
        return given
    name, positional, named = _parse_stage(kind, table, given)
    if name not in table:
        raise InvalidSettingError(f"{kind}: {name!r} is unknown; allowed are {_forms(table)}")
    stage = table[name]
    known = [f.name for f in dataclasses.fields(stage)]  # type: ignore[arg-type]
    if len(positional) > len(known):
        raise InvalidSettingError(f"{kind} {given!r}: {name} takes {len(known)} settings: {', '.join(known) or 'none'}")
    settings = dict(zip(known, positional, strict=False))
    for setting, value in named:
        if setting not in known:
            raise InvalidSettingError(
                f"{kind} {given!r}: no setting {setting!r}; allowed, with their defaults, are {_form(stage)}"
            )
        if setting in settings:
            raise InvalidSettingError(f"{kind} {given!r}: {setting} is given twice")
        settings[setting] = value
    return stage(**settings)


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
        missing = [slot for slot in self.sparsifier.requires if slot not in self.memory.slots]
        if missing:
            fitting = [name for name, memory in MEMORIES.items() if set(self.sparsifier.requires) <= set(memory.slots)]
            raise InvalidSettingError(
                f"memory: {describe(self.memory)} keeps no {', '.join(missing)}, which the sparsifier "
                f"{self.sparsifier.name} needs; allowed are {', '.join(fitting)}"
            )

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

        >>> str(Settings.from_string("topk(density=0.001)+bitmap"))
        'topk(density=0.001)+bitmap+qsgd(bits=7, bucket=512)+residual'
        """
        stages = _split(text)
        kinds = ("sparsifier", "index", "value", "memory")
        if len(stages) > len(kinds):
            raise InvalidSettingError(f"{text!r} has {len(stages)} parts; the form is {'+'.join(kinds)}")
        return cls.of(**dict(zip(kinds, stages, strict=False)), seed=seed)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Settings:
        """The inverse of `to_dict`."""
        return cls.of(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Plain text and numbers, fit for JSON."""
        stages = {kind: describe(getattr(self, kind)) for kind in ("sparsifier", "index", "value", "memory")}
        return stages | {"seed": self.seed}

    def __str__(self) -> str:
        return "+".join(describe(stage) for stage in (self.sparsifier, self.index, self.value, self.memory))

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


def _split(text: str) -> list[str]:
    """The parts between the plus signs that stand outside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _parse_stage(
    kind: str, table: Mapping[str, type[_S]], text: str
) -> tuple[str, list[object], list[tuple[str, object]]]:
    """Name, positional and named settings of `name` or `name(value, setting=value)`."""
    wrong = InvalidSettingError(
        f"{kind}: {text!r} is not of the form name(setting=value, ...); allowed are {_forms(table)}"
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
