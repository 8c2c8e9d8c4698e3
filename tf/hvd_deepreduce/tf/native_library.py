"""Compiles the TensorFlow ops for the TensorFlow that is installed, once, and loads them.

`make env` does it ahead of use. What is compiled is kept in `HVD_DEEPREDUCE_CACHE` (`~/.cache/hvd_deepreduce` by
default), under a name that says for what. An image brings them along in the environment itself,
`FOR_ALL`, since its user's home begins empty: `compiled(FOR_ALL)` puts them there.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

import hvd_deepreduce
from hvd_deepreduce import _native

_log = logging.getLogger("hvd_deepreduce")
_HERE = Path(__file__).parent / "native"
_KERNELS = Path(hvd_deepreduce.__file__).parent / "native"
_FLAGS = ("-shared", "-fPIC", "-O2", "-std=c++17", "-ffp-contract=off")
_SWITCH = "HVD_DEEPREDUCE_TF_OP"
FOR_ALL = Path(sys.prefix) / "share/hvd_deepreduce/tensorflow-ops"


class Library(NamedTuple):
    """The ops, and what Python calls beside them."""

    ops: Any
    functions: ctypes.CDLL


@cache
def load() -> Library | None:
    """The ops; None where they can't be had, which is logged, or are not wanted (`HVD_DEEPREDUCE_TF_OP=0`)."""
    if os.environ.get(_SWITCH, "1") == "0":
        return None
    try:
        path = compiled()
        library = Library(tf.load_op_library(str(path)), ctypes.CDLL(str(path)))
    except (OSError, subprocess.SubprocessError, tf.errors.OpError) as error:
        said = getattr(error, "stderr", None) or error
        _log.warning("no TensorFlow ops, so gradients are coded in Python, which is slower: %s", said)
        return None
    functions = library.functions
    functions.deepreduce_take_kernels.argtypes = [ctypes.c_size_t]
    functions.deepreduce_take_kernels.restype = ctypes.c_bool
    functions.deepreduce_fail.argtypes = [ctypes.c_int64, ctypes.c_char_p]
    functions.deepreduce_fail.restype = None
    number = ctypes.POINTER(ctypes.c_int64)
    functions.deepreduce_late.argtypes = [ctypes.c_int64, ctypes.c_int64, number, number]
    functions.deepreduce_late.restype = ctypes.c_bool
    if not functions.deepreduce_take_kernels(_native.frame_kernels_address()):
        _log.warning("no TensorFlow ops, so gradients are coded in Python: the kernels were built from other sources")
        return None
    return library


def compiled(folder: Path | None = None) -> Path:
    """The file with the ops, compiled into `folder` (the cache by default) if it is nowhere.

    Ranks that start together wait for the first of them.
    """
    flags = [*_FLAGS, *(flag.replace("-I", "-isystem", 1) for flag in tf.sysconfig.get_compile_flags())]
    link = tf.sysconfig.get_link_flags()
    sources = sorted([*_HERE.glob("*.?pp"), *_KERNELS.glob("*.hpp")])
    key = hashlib.sha256(repr([flags, link]).encode())
    for source in sources:
        key.update(source.read_bytes())
    name = f"tensorflow-{tf.__version__}-{key.hexdigest()[:16]}/deepreduce_ops.so"
    for_all = FOR_ALL / name
    if for_all.is_file():
        return for_all
    path = (folder or _cache()) / name
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
            with tempfile.TemporaryDirectory(dir=path.parent) as building:
                made = Path(building) / path.name
                command = [compiler, *flags, f"-I{_HERE}", f"-I{_KERNELS}", str(_HERE / "ops.cpp"), "-o", str(made)]
                subprocess.run([*command, *link], check=True, capture_output=True, text=True)
                made.replace(path)
    return path


def _cache() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hvd_deepreduce"
    return Path(os.environ.get("HVD_DEEPREDUCE_CACHE") or default) / "tensorflow-ops"
