"""Commands in the pages: those of `hvd-deepreduce` are run, of the others every verb and path must exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from report.runs import write_run

from docs.blocks import PAGES, ROOT, Block, blocks

LANGUAGES = {"python", "sh", "text", "json", "yaml"}
SHELL = [block for block in blocks() if block.language == "sh"]
RUN = [block for block in SHELL if not block.not_run and re.match(r"(echo .*\n)?hvd-deepreduce ", block.code)]


def test_every_block_says_what_it_is() -> None:
    for block in blocks():
        assert block.language in LANGUAGES, f"{block.place}: a block of {block.language or 'no language'}"
    # A block by indentation alone would escape these tests.
    for page in PAGES:
        text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"\n\n {4}\S", text), f"{page.name} has an indented block: use a fence"


def test_every_verb_of_make_exists() -> None:
    verbs = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "docs", "wheel"} <= verbs
    named = {
        (page.name, verb)
        for page in PAGES
        for verb in re.findall(r"(?:`|^ *)make ([a-z0-9-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(named) > 5
    assert {(page, verb) for page, verb in named if verb not in verbs} == set()


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_every_path_in_a_command_exists(block: Block) -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} | {"tf"}
    for word in shlex.split(block.code.replace("\\\n", " "), comments=True):
        path = word.split("=", 1)[-1].removeprefix("$PWD/")
        if "/" in path and path.partition("/")[0] in folders - {"build", "dist"} and "<" not in path:
            assert (ROOT / path).exists(), f"{block.place}: {path} is not there"


def test_commands_are_found() -> None:
    assert len(RUN) >= 3


@pytest.mark.parametrize("block", RUN, ids=lambda block: block.place)
def test_a_command_runs(block: Block, tmp_path: Path) -> None:
    np.save(tmp_path / "layer.npy", np.random.default_rng(0).standard_normal((30, 100)).astype(np.float32))
    write_run(tmp_path / "run.jsonl", ["layer.weight"], 3)
    command = f'set -eu\nhvd-deepreduce() {{ {shlex.quote(sys.executable)} -m hvd_deepreduce.cli.main "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", command + block.code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{block.place}: {done.stderr}"
