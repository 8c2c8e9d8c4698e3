#!/usr/bin/env bash
# Builds docker/cpu.Dockerfile without a Docker engine, by buildah on a base made of Debian's packages, and tries the
# image: what it holds, a training on two ranks under MPI and under Gloo, and the tests. As root; `make docker-check`
# calls it.
#
#   docker/check.sh [build|contents|train|test]...     all four when none is named
#   docker/check.sh gpu                                builds docker/gpu.Dockerfile with this machine's CUDA toolkit, and
#                                                      trains in it, on the CPU
#
# Environment:
#   PIP_CERT, PIP_FIND_LINKS   the certificates, and a folder of wheels, that this machine's pip needs; RUN sees them
#   PIP_EXTRA_INDEX_URL        likewise
#   MAKE_JOBS                  compilers at once (default: number of processors)
#   CUDA_HOME                  the toolkit (default: /usr/local/cuda)
#   COLD=1                     build from nothing: no layer and no Horovod of an earlier build
set -euo pipefail
cd "$(dirname "$0")/.."
image=localhost/hvd_deepreduce:cpu
parts=("$@")
[ $# -gt 0 ] || parts=(build contents train test)

for program in buildah debootstrap; do
  command -v "$program" >/dev/null || { echo "docker-check: no $program: apt-get install buildah debootstrap" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "docker-check: needs root" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

# What pip is told by the environment of this machine, with the files that it names under /run/machine in the build:
# at their own places they could be in the way of packages.
machine=$(mktemp -d)
container=
trap '[ -z "$container" ] || buildah rm "$container" >/dev/null; rm -rf "$machine"' EXIT
given=(--volume "$machine/pip.conf:/etc/pip.conf:ro")
index=()
echo '[global]' >"$machine/pip.conf"
while IFS='=' read -r name value; do
  words=()
  for word in $value; do
    if [ -e "$word" ]; then
      # A wheel of PyTorch without CUDA at hand: no need to name where there is one.
      ! ls "$word"/torch-*+cpu-*.whl >/dev/null 2>&1 || index=(--build-arg TORCH_INDEX=)
      inside=/run/machine/${#given[@]}
      given+=(--volume "$word:$inside:ro")
      word=$inside
    fi
    words+=("$word")
  done
  [ -z "$value" ] || echo "$(tr 'A-Z_' 'a-z-' <<<"${name#PIP_}") = ${words[*]}" >>"$machine/pip.conf"
done < <(env | grep '^PIP_')

build() {
  local start=$SECONDS layers=(--layers)
  [ -z "${COLD:-}" ] || { layers=(--no-cache); rm -rf /var/tmp/buildah-cache; }
  say "build $image${COLD:+, from nothing}"
  docker/bare_base.sh
  buildah build --isolation chroot "${layers[@]}" --build-arg BASE=localhost/debian_bare:12 --build-arg MAKE_JOBS="${MAKE_JOBS:-}" \
    "${index[@]}" "${given[@]}" -f docker/cpu.Dockerfile -t "$image" .
  say "built in $((SECONDS - start)) s; size $(buildah images --format '{{.Size}}' "$image")"
}

run() { # command...
  [ -n "$container" ] || container=$(buildah from --pull-never "$image")
  # Gloo looks the machine's own name up, which Docker would have put into /etc/hosts.
  buildah run --isolation chroot --hostname localhost "$container" -- "$@"
}

contents() {
  say "what the image holds"
  run sh -euc '
    fail() { echo "docker-check: $*" >&2; exit 1; }
    [ "$(id -un)" = hvd ] || fail "it runs as $(id -un)"
    for empty in /var/lib/apt/lists /var/cache/apt/archives /root/.cache /home/hvd/.cache /var/cache/hvd_deepreduce /tmp; do
      found=$(find "$empty" -type f ! -name lock 2>/dev/null | head -3)
      [ -z "$found" ] || fail "it holds $found"
    done
    found=$(find / -xdev \( -name "*.o" -o -name "ssh_host_*" -o -name "id_*" -path "*ssh*" -o -name .ccache \) \
      -not -path "/proc/*" -not -path "/usr/lib/*" 2>/dev/null | head -3)
    [ -z "$found" ] || fail "it holds $found"
    python - <<END
import pathlib
import hvd_deepreduce
from hvd_deepreduce.tf import native_library
for path in hvd_deepreduce.__file__, native_library.compiled():
    assert pathlib.Path(path).is_relative_to("/opt/hvd_deepreduce"), path
END
    while read -r pin; do
      case $pin in "#"*) continue ;; esac
      dpkg-query -W -f "\${Package}=\${Version}\n" | grep -q "^${pin%\*}" || fail "$pin is not what is installed"
    done <docker/debian-run.txt
    pip freeze --local | grep -v -i -e "^hvd" -e "^horovod" | sed "s/+cpu\$//" >/tmp/frozen
    unpinned=$(grep -v -x -i -F -f docker/lock.txt /tmp/frozen || true)
    rm /tmp/frozen
    [ -z "$unpinned" ] || fail "not in docker/lock.txt: $unpinned"
    echo "a user, no caches, no package lists, no keys; $(dpkg-query -W | wc -l) packages of Debian, $(pip freeze --local | wc -l) of Python, pinned"
    du -xsh /opt/hvd_deepreduce /usr /home/hvd 2>/dev/null'
}

train() {
  local start=$SECONDS
  say "train"
  run smoke-test
  echo "in $((SECONDS - start)) s"
}

tests() {
  local start=$SECONDS
  say "tests"
  run pytest -q -p no:cacheprovider tests --pyargs hvd_deepreduce
  echo "in $((SECONDS - start)) s"
}

gpu() {
  local start=$SECONDS toolkit
  toolkit=$(realpath "${CUDA_HOME:-/usr/local/cuda}")
  [ -x "$toolkit/bin/nvcc" ] || { echo "docker-check: no CUDA toolkit in $toolkit" >&2; exit 1; }
  say "build localhost/hvd_deepreduce:gpu, with $("$toolkit/bin/nvcc" --version | sed -n 's/.*release //p')"
  docker/bare_base.sh
  container=$(buildah from scratch)
  buildah add -q "$container" "$toolkit" /usr/local/cuda >/dev/null
  buildah commit -q "$container" localhost/cuda_toolkit:local >/dev/null
  # The wheels of this machine are PyTorch's for the CPU, and pip would take them first.
  sed -i '/^find-links/d' "$machine/pip.conf"
  buildah build --isolation chroot --layers --build-arg BASE=localhost/debian_bare:12 --build-arg MAKE_JOBS="${MAKE_JOBS:-}" \
    --build-arg CUDA=localhost/cuda_toolkit:local "${given[@]}" -f docker/gpu.Dockerfile -t localhost/hvd_deepreduce:gpu .
  say "built in $((SECONDS - start)) s; size $(buildah images --format '{{.Size}}' localhost/hvd_deepreduce:gpu)"
  image=localhost/hvd_deepreduce:gpu
  buildah rm "$container" >/dev/null
  container=
  # Without a GPU its Horovod trains on the CPU, and so shows that all it was linked with is there.
  run smoke-test 20
}

for part in "${parts[@]}"; do
  case $part in
    build | contents | train | gpu) "$part" ;;
    test) tests ;;
    *) echo "docker-check: unknown part '$part'; allowed are build, contents, train, test, gpu" >&2; exit 2 ;;
  esac
done
