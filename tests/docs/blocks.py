"""Finds the fenced blocks of the project's pages.

A block is run unless the line before its fence is `<!-- not run: REASON -->`, which no reader of the page sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^(\s*)```(\w*)$")
_NOT_RUN = re.compile(r"^\s*<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """`line` is that of its first line of code, counted from 1."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str | None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> list[Block]:
    return [block for page in PAGES for block in _blocks_of(page)]


def python_blocks(framework: str) -> list[Block]:
    """Those of Python that are run in "torch" or in "tf"."""
    found = [block for block in blocks() if block.language == "python" and not block.not_run]
    return [block for block in found if (framework == "tf") == _of_tensorflow(block)]


def _of_tensorflow(block: Block) -> bool:
    return block.page.name == "tensorflow.md" or "hvd_deepreduce.tf" in block.code


def _blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if not opening:
            continue
        indent, language = len(opening[1]), opening[2]
        marked = _NOT_RUN.match(lines[at - 2]) if at > 1 else None
        start = at
        while at < len(lines) and not _FENCE.match(lines[at]):
            at += 1
        assert at < len(lines), f"{page.name}:{start}: the block does not end"
        code = "\n".join(line[indent:] for line in lines[start:at])
        yield Block(page, start + 1, language, code, marked[1] if marked else None)
        at += 1
