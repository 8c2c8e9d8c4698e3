"""What a wheel will hold, without compiling one; `make wheel-check` builds it and installs it in clean environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hvd_deepreduce import _native

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [root for root in (ROOT / "hvd_deepreduce", ROOT / "torch", ROOT / "tf") if root.is_dir()]

pytestmark = pytest.mark.skipif(
    not (ROOT / "hvd_deepreduce/__init__.py").is_file(), reason="an installed package is tested, without its sources"
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What setuptools would pack, but for the compiled part, which is that of the package under test."""
    folder = tmp_path_factory.mktemp("packed")
    # In a copy: setuptools leaves things behind where it works.
    copy = folder / "copy"
    copy.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for source in SOURCES:
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info"))
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(folder / "lib")]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    compiled = Path(_native.__file__)
    shutil.copy(compiled, folder / "lib/hvd_deepreduce" / compiled.name)
    return folder / "lib"


def test_every_module_is_packed(packed: Path) -> None:
    roots = [ROOT, *(ROOT / wing for wing in ("torch", "tf"))]
    modules = {
        path.relative_to(root)
        for root in roots
        for path in (root / "hvd_deepreduce").rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert len(modules) > 80
    assert modules == {path.relative_to(packed) for path in packed.rglob("*.py")}


def test_what_is_no_module_is_packed_too(packed: Path) -> None:
    needed = ["py.typed", "_native.pyi", "wire/FORMAT.md", "report/page.html", "report/page.css", "report/page.js"]
    assert [name for name in needed if not (packed / "hvd_deepreduce" / name).is_file()] == []
    # The ops are compiled for the TensorFlow there is; of all else the sources are for the sdist.
    assert {source.parent.parent.name for source in packed.rglob("*.cpp")} == {"tf"}


@pytest.mark.parametrize(
    ("wing", "advice"),
    [
        ("torch", "hvd_deepreduce.torch needs PyTorch: pip install torch"),
        ("tf", "hvd_deepreduce.tf needs TensorFlow: pip install tensorflow"),
    ],
)
def test_without_a_framework_the_core_works_and_the_wing_says_what_is_missing(
    packed: Path, wing: str, advice: str
) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(packed)!r})
for name in ("torch", "tensorflow", "keras", "horovod"):
    sys.modules[name] = None  # as if it were not installed
import hvd_deepreduce
from hvd_deepreduce.cli.main import main
assert hvd_deepreduce.__file__.startswith({str(packed)!r}), hvd_deepreduce.__file__
assert main(["codecs"]) == 0
assert main(["bench"]) == 1  # captures gradients, for which it needs PyTorch
try:
    import hvd_deepreduce.{wing}
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd="/", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == advice
    assert "needs PyTorch: pip install torch" in done.stderr
