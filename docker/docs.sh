#!/usr/bin/env bash
# Builds the site of README.md and docs/ into build/site, with MkDocs in an environment of its own; `make docs` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
needed=docker/requirements-docs.txt
environment=build/docs-env
if ! cmp -s "$needed" "$environment/installed.txt"; then
  python3 -m venv --clear "$environment"
  "$environment/bin/python" -m pip install -q -r "$needed"
  cp "$needed" "$environment/installed.txt"
fi
# The theme would print what it thinks of the next MkDocs.
NO_MKDOCS_2_WARNING=1 "$environment/bin/mkdocs" build --strict --quiet
echo "build/site/index.html: $(find build/site -name '*.html' | wc -l) pages"
