"""Lists the stages there are, with their settings and defaults, and the recipes."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping

from rich.table import Table

from hvd_deepreduce.console import PlainConsole
from hvd_deepreduce.contracts import IndexCodec, Stage, ValueCodec
from hvd_deepreduce.recipes import RECIPES
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS
from hvd_deepreduce.settings import describe

_KINDS: Mapping[str, Mapping[str, type[Stage]]] = {
    "sparsifier": SPARSIFIERS,
    "index": INDEX_CODECS,
    "value": VALUE_CODECS,
    "memory": MEMORIES,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(options: argparse.Namespace) -> None:
    """Prints two tables."""
    table = Table(title="One of each: sparsifier+index+value+memory")
    for column in ("stage", "as text, with its defaults", "exact", "what it does"):
        table.add_column(column, overflow="fold")
    for kind, stages in _KINDS.items():
        for stage in stages.values():
            exact = ""
            if issubclass(stage, IndexCodec | ValueCodec):
                exact = "yes" if stage.exact else "no"
            purpose = (inspect.getdoc(stage) or "").partition("\n\n")[0].replace("\n", " ")
            table.add_row(kind, describe(stage()), exact, purpose)
        table.add_section()
    console = PlainConsole()
    console.print(table)
    table = Table(title="Recipes: methods by name, each for all four stages")
    for column in ("recipe", "stages", "from"):
        table.add_column(column, overflow="fold")
    for name, recipe in RECIPES.items():
        table.add_row(name, recipe.stages, recipe.source + (f" ({recipe.differs})" if recipe.differs else ""))
    console.print(table)
