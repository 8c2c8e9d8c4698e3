"""The console that every table and line of the project goes to.

Names of tensors and files, and messages of other ranks, are nobody's markup: "[/b]" in one would be an error to rich,
and "[red]" would vanish.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text


def printable(text: str) -> str:
    r"""With the escapes of characters that would steer a terminal, or that no encoding has; line breaks stay.

    >>> print(printable("\x1b[31mred\nlayer\udcff"))
    \x1b[31mred
    layer\udcff
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)


class PlainConsole(Console):
    """Shows all text as it stands: no markup, no emoji codes, no highlighting, no control characters."""

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """What rich makes of any text, on its own or in a table."""
        return super().render_str(printable(text), **options)
