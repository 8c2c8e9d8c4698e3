"""Who may import whom; docs/contributing.md, "Where things are"."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hvd_deepreduce

ROOT = Path(__file__).resolve().parents[2]
CORE = Path(hvd_deepreduce.__file__).parent
FRAMEWORKS = {"torch", "tensorflow", "horovod", "keras"}
BASE = {"errors", "checks", "randomness", "sparse", "_native"}
FAMILIES = {"sparsifiers", "index_codecs", "value_codecs", "memories"}
STAGE = BASE | {"contracts", "centroids", "curves", "kept_back", "pcodec_chunks", "pybloom"}

# What each part of the core may import of the core; a part that is not named here stands above all of these.
TABLE = {
    "errors": set(),
    "checks": {"errors"},
    "randomness": {"errors"},
    "sparse": {"errors", "checks", "_native"},
    "contracts": {"errors", "randomness", "sparse"},
    "centroids": {"errors", "checks", "sparse", "_native"},
    "curves": {"sparse"},
    "kept_back": {"sparse", "_native"},
    "pcodec_chunks": {"errors"},
    "pybloom": {"sparse"},
    **dict.fromkeys(FAMILIES, STAGE),
    "wire": BASE | {"wire"},
    "registry": STAGE | FAMILIES,
    "recipes": set(),
    "settings": STAGE | {"recipes", "registry"},
    "step_error": BASE,
    "saved_state": BASE,
    "pipeline": STAGE | {"wire", "registry", "settings", "step_error"},
    "log_schema": {"checks"},
    "records": {"errors", "checks", "agreement", "log_schema"},
    "writers": {"errors", "checks", "records"},
    "report": {"records", "report"},
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split("."), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names = (alias.name for alias in node.names)
            yield from (([*node.module.split("."), name], node.lineno) for name in names)


def core_modules():
    return sorted(path for path in CORE.rglob("*.py") if path.relative_to(CORE).parts[0] not in ("torch", "tf"))


@pytest.mark.parametrize("path", core_modules(), ids=lambda path: str(path.relative_to(CORE)))
def test_core_imports_point_one_way(path):
    part = path.relative_to(CORE).with_suffix("").parts[0]
    for name, line in imports(path):
        assert name[0] not in FRAMEWORKS, f"{path}:{line}: the core imports {name[0]}"
        if name[0] == "hvd_deepreduce":
            assert name[1] not in ("torch", "tf"), f"{path}:{line}: the core imports a wing"
            if part in TABLE:
                assert name[1] in TABLE[part], f"{path}:{line}: {part} may not import {name[1]}"


@pytest.mark.parametrize(
    ("wing", "foreign"),
    [("torch", {"tensorflow", "keras"}), ("tf", {"torch"})],
)
def test_wings_know_nothing_of_each_other(wing, foreign):
    other = {"torch": "tf", "tf": "torch"}[wing]
    for path in (ROOT / wing / "hvd_deepreduce").rglob("*.py"):
        for name, line in imports(path):
            assert name[0] not in foreign, f"{path}:{line}"
            assert name[:2] != ["hvd_deepreduce", other], f"{path}:{line}"


def test_no_core_module_loads_a_framework():
    parts = (path.relative_to(CORE.parent).with_suffix("").parts for path in core_modules())
    names = [".".join(part[:-1] if part[-1] == "__init__" else part) for part in parts]
    names = [name for name in names if not name.endswith("__main__")]
    code = f"""
import importlib, sys
sys.path.insert(0, {str(CORE.parent)!r})
for name in {names!r}:
    importlib.import_module(name)
print([name for name in {sorted(FRAMEWORKS)!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_importing_the_core_does_no_work():
    code = f"""
import sys
sys.path.insert(0, {str(CORE.parent)!r})
import random, numpy as np
np.random.seed(1); random.seed(1)
before = np.random.get_state()[1].tolist(), random.getstate()
import hvd_deepreduce
assert (np.random.get_state()[1].tolist(), random.getstate()) == before
assert not [name for name in sys.modules if name in ("rich", "matplotlib")], "a heavy import"
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
