#!/usr/bin/env bash
# Writes docker/lock.txt from what is installed for the given Python; `make lock` calls it:
#
#     docker/lock.sh PYTHON
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: docker/lock.sh PYTHON, .venv/bin/python for instance; or 'make lock'" >&2; exit 2; }
file=$(dirname "${BASH_SOURCE[0]}")/lock.txt
trap 'rm -f "$file.new"' EXIT
{
  echo "# Every Python package of the environment that the tests run in, with its version: what 'pip freeze' says in .venv."
  echo "# docker/setup.sh installs under these constraints, so a build today and one next year differ in nothing."
  echo "# 'make lock' writes it anew."
  # The project and Horovod have versions of their own elsewhere; of a local version such as +cpu pip makes its own choice.
  "$1" -m pip freeze --local --all | grep -v -i -e '^-e' -e '^# editable' -e '^hvd' -e "^horovod" -e "^pip==" | sed 's/+[a-z0-9.]*$//' | sort -f
} >"$file.new"
mv "$file.new" "$file"
