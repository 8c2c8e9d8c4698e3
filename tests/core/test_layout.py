"""The layout that keeps `torch/` and `tf/` from shadowing the frameworks of these names."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("folder", ["torch", "torch/hvd_deepreduce", "tf", "tf/hvd_deepreduce", "tests"])
def test_no_package_that_shadows_a_framework(folder):
    assert not (ROOT / folder / "__init__.py").exists(), "it would replace the real one"


def test_no_tests_folder_of_a_frameworks_name():
    assert not {"torch", "tensorflow", "horovod", "tf"} & {path.name for path in (ROOT / "tests").iterdir()}


@pytest.mark.parametrize("name", ["torch", "tensorflow", "horovod"])
@pytest.mark.parametrize("cwd", [ROOT, ROOT / "tests"], ids=["root", "tests"])
def test_an_installed_framework_is_the_real_one(name, cwd):
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed")
    code = f"import importlib.util; print(importlib.util.find_spec({name!r}).origin)"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True, timeout=60)
    origin = Path(done.stdout.strip())
    assert origin.is_file(), f"{name} resolves to {origin}"
    shadows = [ROOT / folder for folder in ("torch", "tf", "tests", "hvd_deepreduce")]
    assert not any(origin.is_relative_to(folder) for folder in shadows), f"{name} resolves to {origin}"


def test_pytest_runs_in_importlib_mode(pytestconfig):
    assert pytestconfig.getoption("importmode") == "importlib", "under the default, test folders would shadow packages"
