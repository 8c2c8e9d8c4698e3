"""Packages and native kernels; everything else about the project stands in pyproject.toml.

The wings live in source roots of their own, in which the path is the import name: `torch/hvd_deepreduce/torch` is
`hvd_deepreduce.torch`. An `__init__.py` in `torch/` or `tf/` would shadow the real frameworks.
"""

import os
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import find_namespace_packages, find_packages, setup

compile_args = ["-O3", "-pthread", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion"]
if os.environ.get("CI"):
    compile_args.append("-Werror")

headers = sorted(map(str, Path("hvd_deepreduce/native").glob("*.hpp")))


def is_outdated(compiled: str, source: str) -> bool:
    """Whether a source, or any header, is newer than what was compiled from it."""
    newest = max(Path(path).stat().st_mtime_ns for path in [source, *headers])
    return not Path(compiled).exists() or Path(compiled).stat().st_mtime_ns <= newest


# `docker build` hands on an argument that nobody gave as an empty one.
if not os.environ.get("MAKE_JOBS"):
    os.environ.pop("MAKE_JOBS", None)
elif not os.environ["MAKE_JOBS"].isdigit():
    raise SystemExit(
        f"MAKE_JOBS={os.environ['MAKE_JOBS']!r} is no number of compilers at once; leave it out for all processors"
    )
ParallelCompile("MAKE_JOBS", needs_recompile=is_outdated).install()

setup(
    packages=find_packages(include=["hvd_deepreduce", "hvd_deepreduce.*"])
    + find_namespace_packages("tf", include=["hvd_deepreduce.tf*"])
    + find_namespace_packages("torch", include=["hvd_deepreduce.torch*"]),
    package_dir={
        "hvd_deepreduce.tf": "tf/hvd_deepreduce/tf",
        "hvd_deepreduce.torch": "torch/hvd_deepreduce/torch",
    },
    ext_modules=[
        Pybind11Extension(
            "hvd_deepreduce._native",
            sorted(map(str, Path("hvd_deepreduce/native").glob("*.cpp"))),
            depends=headers,
            cxx_std=17,
            extra_compile_args=compile_args,
        )
    ],
    cmdclass={"build_ext": build_ext},
)
