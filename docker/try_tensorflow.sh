#!/usr/bin/env bash
# Builds Horovod 0.28.1 for a TensorFlow newer than the one of `make env`, in an environment of its own, and tries this
# project there under Keras 2 (tf_keras) and Keras 3. Not part of the tests: docs/tensorflow.md says what comes out.
#
#   docker/try_tensorflow.sh VERSION [PAIR...]      docker/try_tensorflow.sh 2.21 keras3-fit
#
# VERSION is 2.16 or later, with two or three parts; PAIR a row of tests/newer/pairs.py, all of them by default.
# `make env` first: it installs the compiler and Open MPI. PyTorch is left out. The environment is build/tensorflow-VERSION;
# the built wheel is kept beside that of docker/setup.sh. The first time takes about ten minutes.
#
# Environment: PYTHON, HVD_DEEPREDUCE_CACHE, MAKE_JOBS as for docker/setup.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
case ${1:-} in
  2.[1-9][0-9]*) version=$1 ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
shift
[ "$(printf '%s\n' "$version" | cut -d. -f3)" ] || version=$version.*
venv=$root/build/tensorflow-${version%.\*}
py=$venv/bin/python
cache=${HVD_DEEPREDUCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hvd_deepreduce}
horovod_version=0.28.1
compiler=$here/cxx17_no_xla
logs=$venv/setup-logs

# Runs a command with its output in a log, whose end is shown when it fails.
logged() { # what, command...
  local what=$1 start=$SECONDS
  shift
  printf '%s ...' "$what"
  "$@" >"$logs/last.log" 2>&1 </dev/null || { echo; tail -n 25 "$logs/last.log" >&2; echo "the rest is in $logs/last.log" >&2; exit 1; }
  echo " $((SECONDS - start)) s"
}

[ -x "$py" ] || "${PYTHON:-python3.11}" -m venv "$venv"
mkdir -p "$logs"
pip() { "$py" -m pip "$@"; }
logged "TensorFlow $version, tf_keras" pip install --progress-bar off "tensorflow-cpu==$version" "tf_keras==$version" \
  "setuptools>=77" wheel "cmake<4" packaging cloudpickle psutil pyyaml cffi rich pybind11 pytest

found=$("$py" -c 'import importlib.metadata as m; print(m.version("tensorflow-cpu"))')
wheels=$cache/wheels/horovod-$horovod_version+tensorflow-$found+$("$py" -c \
  'import sys, platform; print("py%d.%d-%s" % (*sys.version_info[:2], platform.machine()))')+mpi-$(mpirun --version |
  sed -n '1s/.* //p')+$(cat "$compiler" "$here/cxx17" | sha256sum | cut -c1-16)

build_horovod() {
  local building status=0
  mkdir -p "$wheels"
  building=$(mktemp -d "$wheels/building.XXXXXX")
  # As in docker/setup.sh: Horovod's setup.py needs an old setuptools, seen by this build alone.
  pip install --progress-bar off --no-deps --target "$building/site" "setuptools==69.5.1" &&
    env CXX="$compiler" HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 \
      HOROVOD_WITHOUT_MXNET=1 MAKEFLAGS="-j${MAKE_JOBS:-$(nproc)}" PATH="$venv/bin:$PATH" PYTHONPATH="$building/site" \
      "$py" -m pip wheel -v --no-build-isolation --no-cache-dir --no-deps -w "$building" "horovod==$horovod_version" &&
    mv "$building"/horovod-*.whl "$wheels/" || status=$?
  rm -rf "$building"
  return "$status"
}
ls "$wheels"/horovod-*.whl >/dev/null 2>&1 || logged "Horovod $horovod_version for TensorFlow $found" build_horovod
if [ "$(cat "$venv/stamp-horovod" 2>/dev/null)" != "$wheels" ]; then
  logged "its wheel" pip install --progress-bar off --no-deps --force-reinstall "$wheels"/horovod-*.whl
  echo "$wheels" >"$venv/stamp-horovod"
fi
logged "hvd_deepreduce" pip install --progress-bar off --no-build-isolation --no-deps -e "$root"
exec "$py" "$root/tests/newer/pairs.py" "$@"
