"""What can be checked of the container files without an engine: they name what is there, and pin what they install."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
import yaml

from docs.blocks import ROOT

DOCKER = ROOT / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))


def test_two_workers_and_a_launcher_on_a_private_network() -> None:
    assert set(COMPOSE["services"]) == {"worker1", "worker2", "launcher"}
    assert COMPOSE["networks"] == {"workers": {"internal": True}}
    for name, service in COMPOSE["services"].items():
        assert service["networks"] == ["workers"], name
        assert service["image"] == "hvd_deepreduce:cpu"
        assert "ports" not in service
        assert os.access(DOCKER / service["command"][0], os.X_OK)
    launcher = COMPOSE["services"]["launcher"]
    assert launcher["command"][1].split() == launcher["depends_on"] == ["worker1", "worker2"]
    assert (ROOT / launcher["command"][3]).is_file()


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_what_a_dockerfile_copies_is_there(path: Path) -> None:
    lines = path.read_text().replace("\\\n", " ").splitlines()
    for line in lines:
        if line.startswith("COPY ") and "--from=" not in line:
            *sources, _ = [word for word in shlex.split(line)[1:] if not word.startswith("--")]
            for source in sources:
                assert source == "." or list(ROOT.glob(source)), f"{path.name}: {source}"
    assert [line for line in lines if line.startswith("USER ")][-1] != "USER root"


@pytest.mark.parametrize("name", ["debian-run.txt", "debian-build.txt"])
def test_packages_of_debian_are_pinned(name: str) -> None:
    lines = (DOCKER / name).read_text().split()
    assert all(re.fullmatch(r"[a-z0-9.+-]+=[0-9][^=]*-\*", line) for line in lines)
    names = [line.partition("=")[0] for line in lines]
    assert names == sorted(set(names))


def test_all_packages_of_python_are_locked() -> None:
    """A new requirement needs `make lock`."""
    pins = re.findall(r"^([\w.-]+)==\S+$", (DOCKER / "lock.txt").read_text(), re.MULTILINE)
    locked = {name.lower().replace("_", "-") for name in pins}
    for path in (DOCKER / "requirements-frameworks.txt", DOCKER / "requirements-tools.txt"):
        for name in re.findall(r"^([\w.-]+)", path.read_text(), re.MULTILINE):
            assert name.lower().replace("_", "-") in locked, f"{path.name}: {name}"


def test_every_step_of_the_workflow_names_what_is_there() -> None:
    workflow = (ROOT / ".github/workflows/image.yml").read_text()
    yaml.safe_load(workflow)
    for path in re.findall(r"(?:docker|tests|hvd_deepreduce)/[\w./-]+\w", workflow):
        if not path.startswith(("docker/setup-buildx", "docker/build-push")):
            assert (ROOT / path.split("*")[0]).exists(), path
