"""Installs the wheel and the sdist of dist/ in clean environments and tries them there; `make wheel-check` calls it.

    python tests/packed/check_wheel.py [bare|sdist|torch|tf]...     all four when none is named

Environments: none but NumPy and rich, from the wheel; the same from the sdist, which compiles; PyTorch alone;
TensorFlow alone. With a framework the wing must first ask for Horovod, by name, and then train on two ranks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = Path(__file__).resolve().parent / "jobs"
# What Horovod itself needs to start a job.
HOROVOD_NEEDS = ("cloudpickle", "psutil", "pyyaml", "cffi", "packaging")


class Environment:
    """A virtual environment with nothing in it but what is asked for."""

    def __init__(self, folder: Path):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)

    def install(self, *what: str | Path) -> None:
        # Constraints would bind build environments too, in which they have no place.
        lock = [] if any(str(one).endswith(".tar.gz") for one in what) else ["-c", str(ROOT / "docker/lock.txt")]
        self.run("python", "-m", "pip", "install", "-q", *lock, *map(str, what))

    def run(self, program: str, *arguments: str, code: int = 0, **more: str) -> str:
        """What it prints, from a folder without sources and without this checkout's variables."""
        kept = ("PIP_", "SSL_", "HOME", "LANG", "OPENBLAS")
        environment = {key: value for key, value in os.environ.items() if key.startswith(kept)}
        environment |= {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "TF_CPP_MIN_LOG_LEVEL": "3", **more}
        command = [str(self.folder / "bin" / program), *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != code:
            raise SystemExit(f"wheel-check: {' '.join(command)} ended with {done.returncode}\n{done.stdout}")
        return done.stdout

    def must_say(self, words: str, *arguments: str, code: int = 0) -> None:
        """Runs Python and looks for words in what it prints."""
        printed = self.run("python", *arguments, code=code)
        if words not in printed:
            raise SystemExit(f"wheel-check: 'python {' '.join(arguments)}' says\n{printed}\nand not {words!r}")


def bare(place: Environment, archive: Path) -> None:
    """The core and the command line work, and each wing says what it needs."""
    place.install(archive)
    place.must_say("the core works", str(JOBS / "try_core.py"))
    place.must_say("hvd_deepreduce.torch needs PyTorch: pip install torch", "-c", "import hvd_deepreduce.torch", code=1)
    place.must_say("hvd_deepreduce.tf needs TensorFlow: pip install", "-c", "import hvd_deepreduce.tf", code=1)
    place.run("hvd-deepreduce", "codecs")
    (place.folder / "frame.hex").write_text("03 01 02 01 08 09 0000803f 000000c0")
    place.run("hvd-deepreduce", "inspect", "frame.hex", "--numel", "8")
    place.run("hvd-deepreduce", "bench", "layer.npy", "--json")
    place.run("hvd-deepreduce", "report", "run.jsonl")
    if not (place.folder / "run.html").is_file():
        raise SystemExit("wheel-check: hvd-deepreduce report wrote no page")


def with_torch(place: Environment, archive: Path) -> None:
    """PyTorch alone: asks for Horovod, then trains."""
    place.install(archive, "torch")
    place.must_say("hvd_deepreduce.torch needs Horovod", "-c", "import hvd_deepreduce.torch", code=1)
    install_horovod(place)
    place.run("python", "-c", "import hvd_deepreduce.torch, sys; assert 'tensorflow' not in sys.modules")
    train(place, "try_torch.py")


def with_tf(place: Environment, archive: Path) -> None:
    """TensorFlow alone: asks for Horovod, then trains."""
    place.install(archive, "tensorflow-cpu")
    place.must_say("the core works", str(JOBS / "try_core.py"))
    place.must_say("hvd_deepreduce.torch needs PyTorch: pip install torch", "-c", "import hvd_deepreduce.torch", code=1)
    place.must_say("hvd_deepreduce.tf needs Horovod", "-c", "import hvd_deepreduce.tf", code=1)
    install_horovod(place)
    place.run("python", "-c", "import hvd_deepreduce.tf, sys; assert 'torch' not in sys.modules")
    train(place, "try_tf.py")


def train(place: Environment, script: str) -> None:
    command = ("-np", "2", "--gloo", str(place.folder / "bin/python"), str(JOBS / script))
    printed = place.run("horovodrun", *command)
    if printed.count("replicas are equal") != 2:
        raise SystemExit(f"wheel-check: {script} says\n{printed}")


def install_horovod(place: Environment) -> None:
    """The one that `make env` built: building it anew takes many minutes and proves nothing about the wheel."""
    cache = Path(os.environ.get("HVD_DEEPREDUCE_CACHE", Path.home() / ".cache/hvd_deepreduce"))
    # One is kept for each pair of frameworks that `make env` and `make tf-newer` met.
    lock = dict(line.split("==") for line in (ROOT / "docker/lock.txt").read_text().splitlines() if "==" in line)
    frameworks = f"torch-{lock['torch']}*+tensorflow-{lock['tensorflow-cpu']}"
    built = sorted(cache.glob(f"wheels/*+{frameworks}+*/horovod-*.whl"), key=lambda path: path.stat().st_mtime)
    if not built:
        raise SystemExit(f"wheel-check: no Horovod for {frameworks} in {cache}: run make env first")
    place.install(*HOROVOD_NEEDS)
    place.run("python", "-m", "pip", "install", "-q", "--no-deps", str(built[-1]))


PARTS: dict[str, tuple[str, Callable[[Environment, Path], None]]] = {
    "bare": ("*.whl", bare),
    "sdist": ("*.tar.gz", bare),
    "torch": ("*.whl", with_torch),
    "tf": ("*.whl", with_tf),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    for part in parser.parse_args().parts or PARTS:
        if part not in PARTS:
            parser.error(f"{part!r}; allowed are {', '.join(PARTS)}")
        pattern, check = PARTS[part]
        archives = sorted((ROOT / "dist").glob(pattern))
        if len(archives) != 1:
            raise SystemExit(f"wheel-check: {len(archives)} of dist/{pattern}; needed is one: make wheel")
        start = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"wheel-{part}."))
        try:
            check(Environment(folder), archives[0])
        finally:
            shutil.rmtree(folder)
        print(f"wheel-check: {part}: {archives[0].name} works ({time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
