#!/usr/bin/env bash
# Makes the image that docker/cpu.Dockerfile begins with out of Debian's packages, for machines that reach no image
# registry: debian_bare:12 in buildah's store. As root.
set -euo pipefail
name=localhost/debian_bare:12
! buildah inspect --type image "$name" >/dev/null 2>&1 || { echo "base: $name ... already there"; exit 0; }
folder=$(mktemp -d)
container=
trap '[ -z "$container" ] || buildah rm "$container" >/dev/null; rm -rf "$folder"' EXIT
debootstrap --variant=minbase bookworm "$folder" >&2
# As Debian's own image has it: with security updates, and without what can be had again.
cp /etc/apt/sources.list.d/debian.sources "$folder/etc/apt/sources.list.d/" 2>/dev/null && : >"$folder/etc/apt/sources.list"
rm -rf "$folder"/var/lib/apt/lists/* "$folder"/var/cache/apt/archives/*.deb "$folder"/var/log/*.log
container=$(buildah from scratch)
buildah add -q "$container" "$folder" / >/dev/null
buildah config --cmd /bin/bash "$container"
buildah commit -q "$container" "$name" >/dev/null
echo "base: $name"
