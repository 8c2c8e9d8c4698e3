"""Brings the pages that stand beside the code into the site, and turns links between them around.

In the repository README.md points to docs/options.md, and that to ../torch/examples/mixed_precision.py; in the site the
one is index.md, and the other a copy under sources/. MkDocs calls these functions by their names.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
# Pages of the site that are not in docs/, by their place in the repository.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "hvd_deepreduce/wire/FORMAT.md": "format.md",
}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
_FENCE = re.compile(r"^\s*```")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages, and a copy of every file of the project that a page points to."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    places = {file.src_uri: _place(file.src_uri) for file in files if file.src_uri.endswith(".md")}
    for place in places.values():
        for link in _LINK.findall((ROOT / place).read_text(encoding="utf-8")):
            path = _in_repository(link[1], place)
            if path and _in_site(path).startswith("sources/") and files.get_file_from_path(_in_site(path)) is None:
                files.append(File.generated(config, _in_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links around; code is left alone."""
    place = _place(page.file.src_uri)
    here = posixpath.dirname(page.file.src_uri)
    lines, in_code = [], False
    for line in markdown.split("\n"):
        in_code ^= bool(_FENCE.match(line))
        lines.append(line if in_code else _LINK.sub(lambda link: _turned(link, place, here), line))
    return "\n".join(lines)


def _turned(link: re.Match[str], place: str, here: str) -> str:
    path = _in_repository(link[2], place)
    if path is None:
        return link[0]
    return link[1] + posixpath.relpath(_in_site(path), here or ".") + link[3]


def _place(page: str) -> str:
    """Where a page of the site stands in the repository."""
    return {target: source for source, target in PAGES.items()}.get(page, f"docs/{page}")


def _in_repository(link: str, place: str) -> str | None:
    """The path that a link names, or None for an address, and for what is not there: MkDocs warns of that."""
    if "://" in link or link.startswith("mailto:"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    return path if (ROOT / path).is_file() else None


def _in_site(path: str) -> str:
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"sources/{path}"
