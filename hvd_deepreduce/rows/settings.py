"""What a user writes about gradients of rows: how their support and their values are coded, and what is kept back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hvd_deepreduce.checks import quoted, require_integer, require_text
from hvd_deepreduce.contracts import IndexCodec, Memory, ValueCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.memories.none import NoMemory
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, VALUE_CODECS
from hvd_deepreduce.settings import describe, split_stages, stage_of

DEFAULT_ROWS: Final = "rice+raw"


@dataclass(frozen=True)
class RowSettings:
    """The stages after the merge of rows. There is no sparsifier: every row of a gradient is sent.

    Nothing is kept back where values are exact, so `memory` is `none` there, whatever was asked for.
    """

    index: IndexCodec
    value: ValueCodec
    memory: Memory
    seed: int = 0

    def __post_init__(self) -> None:
        require_integer("rows", "seed", self.seed, minimum=0, maximum=2**64 - 1)
        if not self.index.exact:
            raise InvalidSettingError(
                f"rows: index {describe(self.index)} is not exact, and a row too many would have no values; "
                "allowed are exact index codecs, rice for instance"
            )
        if not isinstance(self.memory, NoMemory | Residual):
            raise InvalidSettingError(f"rows: memory {describe(self.memory)}; allowed are none and residual")
        if self.value.exact:
            object.__setattr__(self, "memory", NoMemory())

    @classmethod
    def of(
        cls,
        index: str | IndexCodec = "rice",
        value: str | ValueCodec = "raw",
        memory: str | Memory = "residual",
        seed: int = 0,
    ) -> RowSettings:
        """From stages as text, `name(setting=value, ...)`, or as objects."""
        return cls(
            stage_of("index", INDEX_CODECS, index),
            stage_of("value", VALUE_CODECS, value),
            stage_of("memory", MEMORIES, memory),
            seed,
        )

    @classmethod
    def from_string(cls, text: str, seed: int = 0) -> RowSettings:
        """From `index+value+memory`; what is left out at the end takes its default.

        >>> str(RowSettings.from_string("rice+qsgd(bits=7, bucket=64)"))
        'rows+rice+qsgd(bits=7, bucket=64)+residual'
        """
        stages = split_stages(require_text("rows", text, DEFAULT_ROWS))
        kinds = ("index", "value", "memory")
        if len(stages) > len(kinds):
            raise InvalidSettingError(f"rows: {quoted(text)} has {len(stages)} parts; the form is {'+'.join(kinds)}")
        return cls.of(**dict(zip(kinds, stages, strict=False)), seed=seed)

    def __str__(self) -> str:
        return "+".join(["rows", *(describe(stage) for stage in (self.index, self.value, self.memory))])

    @cached_property
    def fingerprint(self) -> int:
        """FORMAT.md, 7."""
        digest = hashlib.blake2b(f"{self}\n{self.seed}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little")
