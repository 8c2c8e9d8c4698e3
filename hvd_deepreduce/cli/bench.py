"""Measures codecs on gradients: bits per kept element, error, and time.

Gradients come from .npy files, each an array in its layer's own shape, or are captured on the spot by training the
demo's net for a few steps. Every index codec is measured with raw values, and every value codec with the default index
codec; --index and --value narrow that to what is asked for, in all combinations. --recipe measures methods by name,
alone or beside these.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from rich.progress import track
from rich.table import Table

from hvd_deepreduce.checks import require_fraction, require_integer
from hvd_deepreduce.cli.output import require_no_input
from hvd_deepreduce.console import PlainConsole
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.measure import Measurement, measure
from hvd_deepreduce.records import finite_or_null
from hvd_deepreduce.registry import INDEX_CODECS, VALUE_CODECS
from hvd_deepreduce.settings import DEFAULT_INDEX, DEFAULT_VALUE, Settings, is_available

_PLAIN_STEP = 10
_DEFAULT_DENSITY = 0.01
_WIDTH = 130
_FLOAT32_BYTES = 4
# A header is Python's text, and may claim any size.
_DAMAGED = (ValueError, EOFError, SyntaxError, TokenError, TypeError, OverflowError, MemoryError, RecursionError)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See --help."""
    parser.add_argument("gradients", nargs="*", type=Path, metavar="FILE.npy", help="default: captured on the spot")
    parser.add_argument("--compensated", type=int, metavar="N", help="capture at step N of training with residual")
    parser.add_argument("--density", type=float, action="append", help="of topk; may be given again (default 0.01)")
    parser.add_argument("--sparsifier", action="append", help="instead of topk, with its settings")
    parser.add_argument("--index", action="append", help="an index codec, with its settings")
    parser.add_argument("--value", action="append", help="a value codec, with its settings")
    parser.add_argument("--recipe", action="append", metavar="NAME", help="a recipe, or all stages in one string")
    parser.add_argument("--min-numel", type=int, default=1024, help="leave smaller captured layers out (default 1024)")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw volume against error, and time against volume")


def run(options: argparse.Namespace) -> None:
    """Prints a table or JSON, and draws a picture if asked."""
    if options.density and options.sparsifier:
        raise InvalidSettingError("--density is that of topk: give it or --sparsifier, not both")
    if options.compensated is not None and options.gradients:
        raise InvalidSettingError("--compensated captures gradients, so it goes without files")
    if options.plot:
        require_no_input("--plot", options.plot, options.gradients)
    densities = options.density or [_DEFAULT_DENSITY]
    for density in densities:
        require_fraction("topk", "density", density)
    sparsifiers = options.sparsifier or [f"topk(density={density!r})" for density in densities]
    stagewise = not options.recipe or any((options.density, options.sparsifier, options.index, options.value))
    pairs = _pairs(options.index, options.value) if stagewise else []
    combinations = [("", _settings(sparsifier, *pair)) for sparsifier in sparsifiers for pair in pairs]
    combinations += [(recipe, Settings.from_string(recipe)) for recipe in options.recipe or []]
    console = PlainConsole(stderr=True)
    gradients = load(options.gradients) if options.gradients else _capture(options, densities[0], console)
    found: list[tuple[str, Measurement]] = []
    work = [(name, gradient, *one) for name, gradient in gradients.items() for one in combinations]
    for name, gradient, recipe, settings in track(work, "measuring", console=console, transient=True):
        found.append((name, replace(measure(gradient, settings, name), recipe=recipe)))
    if options.json:
        entries = finite_or_null([one.as_dict() for _, one in found])
        print(json.dumps(entries, indent=1, allow_nan=False))  # noqa: T201 (what was asked for)
    else:
        wide = PlainConsole(width=max(_WIDTH, PlainConsole().width))
        for table in _tables(found):
            wide.print(table)
    if options.plot:
        # Loaded where it is wanted: it takes a second, and most have no use for it.
        importlib.import_module("hvd_deepreduce.cli.plot").draw([one for _, one in found], options.plot)


def _settings(sparsifier: str, index: str, value: str) -> Settings:
    memory = "variance" if sparsifier.startswith("variance") else "none"
    return Settings.of(sparsifier, index, value, memory)


def _pairs(index: Sequence[str] | None, value: Sequence[str] | None) -> list[tuple[str, str]]:
    if index or value:
        return [(one, other) for one in index or [DEFAULT_INDEX] for other in value or [DEFAULT_VALUE]]
    by_index = [(name, "raw") for name, codec in INDEX_CODECS.items() if is_available(codec)]
    values = [name for name, codec in VALUE_CODECS.items() if is_available(codec) and name != "raw"]
    return by_index + [(DEFAULT_INDEX, name) for name in values]


def load(paths: Sequence[Path]) -> dict[str, Any]:
    """Arrays by the names of their files; raises `InvalidSettingError` for a file that holds none of a gradient."""
    shared = Counter(path.stem for path in paths)
    return {path.stem if shared[path.stem] == 1 else str(path): _array(path) for path in paths}


def _array(path: Path) -> Any:
    """Float32, or float64 where the file's numbers are longer than that."""
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)  # type: ignore[no-untyped-call]
    except _DAMAGED as error:
        raise InvalidSettingError(f"{path}: no .npy array ({str(error) or type(error).__name__})") from error
    if array.dtype.kind != "f" or array.size == 0:
        raise InvalidSettingError(
            f"{path}: an array of {array.dtype} and shape {array.shape}; needed are floating-point numbers, not empty"
        )
    with np.errstate(over="ignore"):  # an infinity is refused with the other ones
        return array.astype(np.float64 if array.dtype.itemsize > _FLOAT32_BYTES else np.float32)


def _capture(options: argparse.Namespace, density: float, console: PlainConsole) -> dict[str, Any]:
    steps = _PLAIN_STEP
    if options.compensated is not None:
        require_integer("capture", "compensated", options.compensated, minimum=1, maximum=10**6)
        steps = options.compensated
    try:
        # The core knows no framework; this one use of it is the caller's wish.
        module = importlib.import_module("hvd_deepreduce.torch.demo.capture")
    except ImportError as error:
        raise InvalidSettingError(f"capturing gradients needs PyTorch; or give .npy files ({error})") from error
    console.print(f"training the demo's net for {steps} steps", style="dim")
    with console.status("step 0") as status:
        captured = module.capture(
            steps,
            density if options.compensated is not None else None,
            lambda done: status.update(f"step {done} of {steps}"),
        )
    return {name: gradient for name, gradient in captured.items() if gradient.size >= options.min_numel}


_COLUMNS = ("index bits", "value bits", "frame bits", "volume", "error", "encode MB/s", "decode MB/s")
_CAPTION = "bits per kept element; volume and L2 error are relative; MB/s of dense gradient, without selection"


def _tables(found: Sequence[tuple[str, Measurement]]) -> list[Table]:
    """One for each gradient and sparsifier."""
    tables: dict[tuple[str, str], Table] = {}
    for name, one in found:
        title = f"{name}: {one.numel:,} elements, {one.sparsifier} keeps {one.kept:,}"
        table = tables.get((name, one.sparsifier))
        if table is None:
            table = tables[name, one.sparsifier] = Table(title=title, title_justify="left", caption=_CAPTION)
            table.add_column("index+value", no_wrap=True)
            for column in _COLUMNS:
                table.add_column(column, justify="right", no_wrap=True)
        megabytes = 4e-6 * one.numel
        table.add_row(
            one.recipe or f"{one.index}+{one.value}",
            f"{one.index_bits:.2f}",
            f"{one.value_bits:.2f}",
            f"{one.frame_bits:.2f}",
            f"{one.relative_volume:.5f}",
            f"{one.relative_error:.4f}",
            f"{1e3 * megabytes / max(one.encode_ms, 1e-6):,.0f}",
            f"{1e3 * megabytes / max(one.decode_ms, 1e-6):,.0f}",
        )
    return list(tables.values())
