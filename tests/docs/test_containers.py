"""What can be checked of the container files without an engine: they name what is there, and pin what they install."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
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


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
@pytest.mark.parametrize(
    ("command", "own", "awaited"),
    [(["launcher", "wroker1", "true"], "launcher", "wroker1"), (["worker", "worker1"], "worker1", "launcher")],
)
def test_a_role_that_never_comes_is_named_and_ends_the_wait(
    command: list[str], own: str, awaited: str, tmp_path: Path
) -> None:
    hello = tmp_path / "hello"
    hello.mkdir()
    environment = {**os.environ, "HOME": str(tmp_path), "HVD_DEEPREDUCE_HELLO": str(hello), "HVD_DEEPREDUCE_WAIT": "1"}
    found = subprocess.run(
        [DOCKER / command[0], *command[1:]], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 1
    first, last = found.stderr.splitlines()
    assert first == f"{own}: waits up to 1 s for {awaited}, whose key will be {hello}/{awaited}.pub"
    assert last.startswith(f"{own}: {awaited} did not come within 1 s; in {hello} are: {own}.")
    assert stat.S_IMODE((hello / f"{own}.pub").stat().st_mode) == 0o644


def test_the_lock_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    shutil.copy(DOCKER / "lock.sh", tmp_path)
    for arguments, status, message in (([], 2, "usage: docker/lock.sh PYTHON"), (["./nowhere"], 1, "nowhere")):
        found = subprocess.run(
            [tmp_path / "lock.sh", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        assert found.returncode == status
        assert message in found.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["lock.sh"]


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
