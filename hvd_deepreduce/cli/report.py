"""Makes a page of a training run: bytes, time and error per tensor over the steps.

RUN is what `JsonLinesWriter` wrote. The page is one HTML file that needs no network.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hvd_deepreduce.records import read_json_lines
from hvd_deepreduce.report import make_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See --help."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a file of JSON lines")
    parser.add_argument("--output", "-o", type=Path, metavar="PAGE", help="default: RUN with the suffix .html")
    parser.add_argument("--title", help="heading of the page; default: the name of RUN")


def run(options: argparse.Namespace) -> None:
    """Writes the page and tells where it is."""
    page = make_page(options.title or options.run.name, read_json_lines(options.run))
    output = options.output or options.run.with_suffix(".html")
    output.write_text(page, encoding="utf-8")
    sys.stdout.write(f"{output}\n")
