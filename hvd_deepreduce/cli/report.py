"""Makes a page of a training run: bytes, time and error per tensor over the steps.

RUN is what `JsonLinesWriter` wrote. The page is one HTML file that needs no network.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hvd_deepreduce.cli.output import require_no_input
from hvd_deepreduce.console import printable
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.records import FORMAT, read_json_lines, to_line
from hvd_deepreduce.report import make_page

_BEGINNING = to_line({"format": FORMAT}).rstrip("}\n").encode()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See --help."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a file of JSON lines")
    parser.add_argument("--output", "-o", type=Path, metavar="PAGE", help="default: RUN with the suffix .html")
    parser.add_argument("--title", help="heading of the page; default: the name of RUN")


def run(options: argparse.Namespace) -> None:
    """Writes the page and tells where it is."""
    output = options.output or options.run.with_suffix(".html")
    require_no_input("--output", output, [options.run])
    if _is_log(output):
        raise InvalidSettingError(f"{output} is a log itself, and would be overwritten: give another file by --output")
    page = make_page(options.title or options.run.name, read_json_lines(options.run))
    # Names of files, and of tensors in JSON, may hold what UTF-8 does not.
    output.write_text(page, encoding="utf-8", errors="backslashreplace")
    sys.stdout.write(f"{printable(str(output))}\n")


def _is_log(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING
