#!/usr/bin/env bash
# Makes the environment of this project: Debian packages, a virtual environment, PyTorch and TensorFlow, Horovod built
# for both, and the project itself. `make env` and the Docker files call it. Every step is skipped when what it makes
# is already there, so running it again is cheap and an interrupted run goes on where it stopped.
#
#   docker/setup.sh [--venv DIR] [--no-project]
#
# Environment:
#   PYTHON                 interpreter to use (Python 3.11); found by itself otherwise
#   HVD_DEEPREDUCE_CACHE   where the built Horovod wheel is kept (default: ~/.cache/hvd_deepreduce)
#   MAKE_JOBS              compilers at once (default: number of processors)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
venv=$root/.venv
with_project=1
while [ $# -gt 0 ]; do
  case $1 in
    --venv) venv=${2:?--venv needs a folder}; shift 2 ;;
    --no-project) with_project=0; shift ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "setup: unknown argument '$1'; allowed are --venv DIR, --no-project, --help" >&2; exit 2 ;;
  esac
done

venv=$(realpath -m -- "$venv")
cache=${HVD_DEEPREDUCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hvd_deepreduce}
horovod_version=0.28.1
log_folder=$venv/setup-logs
step_number=0
step_count=7
temporary_log=
running=

say() { printf '%s\n' "$*"; }
fail() { # message, what to do
  printf '\nsetup: FAILED: %s\n       %s\n' "$1" "$2" >&2
  exit 1
}
trap 'rm -f "$temporary_log"' EXIT
interrupted() {
  # What runs is a process group of its own, which the terminal's Ctrl-C does not reach.
  [ -z "$running" ] || { kill -TERM -- "-$running" && wait "$running"; } 2>/dev/null || true
  printf '\nsetup: interrupted; run it again and it goes on from here\n' >&2
  exit 130
}
trap interrupted INT TERM

step() { step_number=$((step_number + 1)); printf '[%d/%d] %s' "$step_number" "$step_count" "$1"; }
done_already() { say " ... already there"; }

# Runs a command with its output in a log, a line of progress now and then, and the log's end when it fails.
logged() { # log name, advice, command...
  local name=$1 advice=$2 log pid start status=0 shown=0
  shift 2
  if [ -d "$venv" ]; then mkdir -p "$log_folder"; log=$log_folder/$name.log; else log=$(mktemp); temporary_log=$log; fi
  start=$SECONDS
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  running=$pid
  set +m
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    local elapsed=$((SECONDS - start))
    if [ -t 1 ]; then
      printf '\r\033[K[%d/%d] %s %d s  %.70s' "$step_number" "$step_count" "$name" "$elapsed" \
        "$(tail -c 300 "$log" | tr -c '[:print:]\n' ' ' | tail -n 1)"
    elif [ $((elapsed / 30)) -gt "$shown" ]; then
      shown=$((elapsed / 30)); printf ' %ds' "$elapsed"
    fi
  done
  wait "$pid" || status=$?
  running=
  if [ "$status" -ne 0 ]; then
    printf '\n--- the last lines of %s:\n' "$log" >&2
    tail -n 25 "$log" >&2
    temporary_log=
    fail "$name ended with status $status; the whole output is in $log" "$advice"
  fi
  say " ... done in $((SECONDS - start)) s"
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 python3; do
    if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = 3.11 ]; then
      command -v "$candidate"
      return
    fi
  done
}

# --- 1. Debian packages -------------------------------------------------------------------------------------------
missing_packages() {
  command -v g++ >/dev/null || echo g++
  command -v make >/dev/null || echo make
  command -v mpirun >/dev/null || echo openmpi-bin
  command -v mpicxx >/dev/null || echo libopenmpi-dev
  command -v cmake >/dev/null || echo cmake
  command -v ssh >/dev/null || echo openssh-client # Open MPI looks for it even when all ranks are local
  [ -e /usr/share/dataset/fashion-mnist ] || [ -e /usr/share/datasets/fashion-mnist ] ||
    dpkg -s dataset-fashion-mnist >/dev/null 2>&1 || echo dataset-fashion-mnist
  local python
  python=$(find_python)
  if [ -z "$python" ]; then
    echo python3.11 python3.11-dev python3.11-venv
  else
    "$python" -c 'import ensurepip' 2>/dev/null || echo python3.11-venv
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
      echo python3.11-dev
  fi
}

install_packages() { # package...
  local sudo=
  [ "$(id -u)" -eq 0 ] || sudo="sudo -n"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
}

step "Debian packages"
missing=$(missing_packages | tr '\n' ' ')
if [ -z "${missing// /}" ]; then
  done_already
else
  command -v apt-get >/dev/null ||
    fail "these programs are missing and there is no apt-get: $missing" "install them by hand, then run this again"
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null ||
    fail "root or password-less sudo is needed to install: $missing" "run: sudo apt-get install -y $missing"
  printf ': %s' "$missing"
  # shellcheck disable=SC2086
  logged apt "check the network and /etc/apt/sources.list; by hand: apt-get install $missing" install_packages $missing
fi

# --- 2. Virtual environment -----------------------------------------------------------------------------------------
step "virtual environment $venv"
python=$(find_python)
[ -n "$python" ] || fail "no Python 3.11 found" "install python3.11, or set PYTHON to one"
if [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version 2>/dev/null | grep -q 'python 3\.11'; then
  done_already
else
  if [ -n "$(ls -A "$venv" 2>/dev/null)" ] && [ ! -e "$venv/pyvenv.cfg" ]; then
    fail "$venv is not empty and is no virtual environment" "give another folder with --venv, or empty it yourself"
  fi
  "$python" -m venv --clear "$venv" || fail "python -m venv failed" "is python3.11-venv installed?"
  say " ... made with $("$python" --version)"
fi
py=$venv/bin/python

# A step is known to be done by a stamp that names what it was done from.
stamp_of() { cat "$@" | sha256sum | cut -c1-16; }
is_done() { [ "$(cat "$venv/stamp-$1" 2>/dev/null)" = "$2" ]; }
mark_done() { printf '%s\n' "$2" >"$venv/stamp-$1"; }

# --- 3. Frameworks ----------------------------------------------------------------------------------------------------
frameworks=$here/requirements-frameworks.txt
lock=$here/lock.txt
step "PyTorch and TensorFlow"
stamp=$(stamp_of "$frameworks" "$lock")
if is_done frameworks "$stamp"; then
  done_already
else
  logged frameworks "check the network and the free space of the disk, then run this again" \
    "$py" -m pip install --progress-bar off -c "$lock" -r "$frameworks"
  mark_done frameworks "$stamp"
fi
torch_version=$("$py" -c 'import torch; print(torch.__version__)')
case $torch_version in
  *+cpu) ;;
  *) say "      note: pip chose PyTorch $torch_version, the CUDA build (several GB); it works without a GPU too." ;;
esac

# --- 4. Horovod ---------------------------------------------------------------------------------------------------------
tensorflow_version=$("$py" -c 'import importlib.metadata as m; print(m.version("tensorflow-cpu"))')
wrapper=$here/cxx17
key=horovod-$horovod_version+torch-$torch_version+tensorflow-$tensorflow_version+$("$py" -c \
  'import sys, platform; print("py%d.%d-%s" % (*sys.version_info[:2], platform.machine()))')+mpi-$(mpirun --version |
  sed -n '1s/.* //p')+$(stamp_of "$wrapper")
wheels=$cache/wheels/$key

build_horovod() {
  local building
  mkdir -p "$wheels"
  building=$(mktemp -d "$wheels/building.XXXXXX")
  # Horovod's setup.py needs setuptools below 70 and PyTorch a newer one; so the old one is seen by this build alone.
  "$py" -m pip install --progress-bar off --no-deps --target "$building/site" "setuptools==69.5.1" || return
  # The wheel reaches its final name in one move, so an interrupted build leaves nothing that looks finished.
  env CXX="$wrapper" HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_TENSORFLOW=1 \
    HOROVOD_WITHOUT_MXNET=1 MAKEFLAGS="-j${MAKE_JOBS:-$(nproc)}" PATH="$venv/bin:$PATH" PYTHONPATH="$building/site" \
    "$py" -m pip wheel -v --no-build-isolation --no-cache-dir --no-deps -w "$building" "horovod==$horovod_version" &&
    mv "$building"/horovod-*.whl "$wheels/" && rm -rf "$building"
}

step "Horovod $horovod_version"
if is_done horovod "$key"; then
  done_already
else
  mkdir -p "$wheels"
  exec 9>"$wheels/lock"
  flock -n 9 || { printf ' ... waiting for another set-up that builds it'; flock 9; }
  if ! ls "$wheels"/horovod-*.whl >/dev/null 2>&1; then
    rm -rf "$wheels"/building.*
    printf ': building it for PyTorch %s and TensorFlow %s, about 8 minutes once' "$torch_version" "$tensorflow_version"
    logged horovod-build "look for 'error:' in the log; the compiler and Open MPI must be those of Debian 12" build_horovod
    printf '      installing the wheel'
  fi
  logged horovod-install "remove $wheels and run this again" \
    "$py" -m pip install --progress-bar off --no-deps --force-reinstall "$wheels"/horovod-*.whl
  "$py" -c 'import horovod.torch, horovod.tensorflow' 2>"$log_folder/horovod-import.log" >&2 ||
    fail "Horovod was built but cannot be imported; see $log_folder/horovod-import.log" "remove $wheels and run this again"
  exec 9>&-
  mark_done horovod "$key"
fi

# --- 5. Tools --------------------------------------------------------------------------------------------------------------
tools=$here/requirements-tools.txt
step "test tools"
stamp=$(stamp_of "$tools" "$lock")
if is_done tools "$stamp"; then
  done_already
else
  logged tools "check the network, then run this again" \
    "$py" -m pip install --progress-bar off -c "$lock" -r "$tools"
  mark_done tools "$stamp"
fi

# --- 6. The project -----------------------------------------------------------------------------------------------------------
step "hvd_deepreduce with its native core"
if [ "$with_project" -eq 0 ]; then
  say " ... left out as asked"
else
  # An editable install follows changed Python by itself; only changed C++ or packaging needs another one.
  stamp=$(cd "$root" && find setup.py pyproject.toml hvd_deepreduce/native -type f -print0 | sort -z |
    xargs -0 cat | sha256sum | cut -c1-16)
  if is_done project "$stamp" && (cd / && "$py" -c 'import hvd_deepreduce._native') 2>/dev/null; then
    done_already
  else
    logged project "look for 'error:' in the log" \
      "$py" -m pip install --progress-bar off --no-build-isolation --no-deps -e "$root"
    mark_done project "$stamp"
  fi
fi

# --- 7. The TensorFlow ops -----------------------------------------------------------------------------------------------
step "TensorFlow ops for TensorFlow $tensorflow_version"
if [ "$with_project" -eq 0 ]; then
  say " ... left out as asked"
else
  stamp=$tensorflow_version+$(cd "$root" && find hvd_deepreduce/native tf/hvd_deepreduce/tf/native -name '*.?pp' -print0 |
    sort -z | xargs -0 cat | sha256sum | cut -c1-16)
  if is_done ops "$stamp"; then
    done_already
  else
    # Used without them, gradients are coded in Python; first use would compile them, too.
    compile_ops() { cd / && "$py" -c 'from hvd_deepreduce.tf import native_library as ops; print(ops.compiled())'; }
    logged ops "look for 'error:' in the log" compile_ops
    mark_done ops "$stamp"
  fi
fi
say "Ready: $venv"
