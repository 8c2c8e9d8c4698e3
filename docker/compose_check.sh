#!/usr/bin/env bash
# Runs the three roles of docker/compose.yaml without a Docker engine: each as processes in a network namespace, a host
# name and a process tree of its own, joined by a bridge that leads nowhere else. As root; `make compose-check` calls it.
#
#   docker/compose_check.sh [gloo|mpi]...     both when none is named
#
# Environment:
#   STEPS   of the training (default: 40)
#   IMAGE   the image whose files the roles see (default: localhost/hvd_deepreduce:cpu where buildah has it, else this
#           machine's own files, with .venv)
set -euo pipefail
cd "$(dirname "$0")/.."
backends=("$@")
[ $# -gt 0 ] || backends=(gloo mpi)
for program in ip sshd unshare; do
  PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
    { echo "compose-check: no $program: apt-get install iproute2 openssh-server util-linux" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "compose-check: needs root" >&2; exit 1; }

tag=hvd$$
roles=(launcher worker1 worker2)
work=$(mktemp -d)
chmod 755 "$work"
declare -A root mounted pid
image=${IMAGE:-localhost/hvd_deepreduce:cpu}
[ -n "${IMAGE:-}" ] || buildah inspect --type image "$image" >/dev/null 2>&1 || image=

# The process that began the role, and its child, the first of the role's process tree, with which all others end. Left to
# itself the child would go on in the image, where it has become another user since.
end_role() { # name
  pkill -KILL --parent "${pid[$1]}" || true
  kill -KILL "${pid[$1]}" 2>/dev/null || true
  wait "${pid[$1]}" 2>/dev/null || true
  unset "pid[$1]"
}

clean() {
  local role
  for role in "${!pid[@]}"; do end_role "$role"; done
  wait 2>/dev/null || true
  for role in "${roles[@]}"; do
    ip netns del "$tag-$role" 2>/dev/null || true
    rm -rf "/etc/netns/$tag-$role"
    [ -z "${root[$role]:-}" ] || buildah rm "${root[$role]}" >/dev/null
  done
  rmdir /etc/netns 2>/dev/null || true
  ip link del "$tag" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

# A network of their own: a bridge without an address, so that even this machine is not on it.
ip link add "$tag" type bridge
ip link set "$tag" up
number=1
for role in "${roles[@]}"; do
  number=$((number + 1))
  ip netns add "$tag-$role"
  ip link add "$tag-$number" type veth peer name eth0 netns "$tag-$role"
  ip link set "$tag-$number" master "$tag" up
  ip -n "$tag-$role" link set lo up
  ip -n "$tag-$role" address add "10.77.7.$number/24" dev eth0
  ip -n "$tag-$role" link set eth0 up
  echo "10.77.7.$number $role" >>"$work/names"
done
for role in "${roles[@]}"; do
  mkdir -p "/etc/netns/$tag-$role"
  { echo "127.0.0.1 localhost"; cat "$work/names"; } >"/etc/netns/$tag-$role/hosts"
done

if [ -n "$image" ]; then
  for role in "${roles[@]}"; do
    root[$role]=$(buildah from --pull-never "$image")
    mounted[$role]=$(buildah mount "${root[$role]}")
  done
fi

# Becomes a role: what Docker would do, by unshare. Its files are those of the image, or of this machine with a home and a
# /tmp of its own. `end_role` ends all its processes.
role() { # name, backend, command...
  local name=$1 backend=$2 files=${mounted[$1]:-}
  shift 2
  exec ip netns exec "$tag-$name" unshare --mount --uts --ipc --pid --fork --kill-child \
    env ROLE="$name" FILES="$files" HELLO="$work/hello" VENV="$PWD/.venv" PROJECT="$PWD" BACKEND="$backend" bash -euc '
      hostname "$ROLE"
      variables=(TF_CPP_MIN_LOG_LEVEL=3 OMP_NUM_THREADS=1 HVD_DEEPREDUCE_BACKEND="$BACKEND" HVD_DEEPREDUCE_HELLO=/run/hello)
      if [ -n "$FILES" ]; then
        mount -t proc proc "$FILES/proc"
        mount --rbind /dev "$FILES/dev"
        mount -t tmpfs tmpfs "$FILES/dev/shm"
        mkdir -p "$FILES/run/hello"
        mount --bind "$HELLO" "$FILES/run/hello"
        cp /etc/hosts "$FILES/etc/hosts"
        exec chroot --userspec=1000:1000 "$FILES" env -i "${variables[@]}" HOME=/home/hvd USER=hvd \
          PATH=/opt/hvd_deepreduce/bin:/usr/local/bin:/usr/bin:/bin sh -c "cd ~/hvd_deepreduce && exec \"\$@\"" sh "$@"
      fi
      mount -t proc proc /proc
      mkdir -p ~/.ssh /run/hello
      mount -t tmpfs tmpfs ~/.ssh
      mount --bind "$HELLO" /run/hello
      mount -t tmpfs tmpfs /tmp
      cd "$PROJECT"
      exec env -i "${variables[@]}" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HOME="$HOME" USER=root \
        PATH="$VENV/bin:$PROJECT/docker:/usr/local/bin:/usr/bin:/bin" "$@"
    ' bash "$@"
}

for backend in "${backends[@]}"; do
  start=$SECONDS
  rm -rf "$work/hello"
  mkdir -m 1777 "$work/hello"
  for worker in worker1 worker2; do
    (role "$worker" "$backend" worker "$worker") >"$work/$worker.log" 2>&1 &
    pid[$worker]=$!
  done
  echo "== $backend, ${image:-files of this machine}"
  if ! (role launcher "$backend" launcher "worker1 worker2" python torch/examples/fashion_mnist.py --steps="${STEPS:-40}"); then
    tail -n 20 "$work"/worker*.log >&2
    exit 1
  fi
  for worker in worker1 worker2; do
    grep -q "Accepted publickey" "$work/$worker.log" || { echo "compose-check: nobody came to $worker by ssh" >&2; exit 1; }
    end_role "$worker"
  done
  [ -z "$(grep -rl PRIVATE "$work/hello")" ] || { echo "compose-check: a private key is shared" >&2; exit 1; }
  echo "== $backend: two workers trained, started by ssh from a third ($((SECONDS - start)) s)"
done
