"""Writes the golden vectors of new cases, and refuses to change an old one: `make golden`."""

import sys
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from golden import vectors
    from golden.accept_cases import ACCEPTS
    from golden.reject_cases import REJECTS

    wrong = 0
    wanted = {"accepts": {name: vectors.complete(case) for name, case in ACCEPTS.items()}, "rejects": REJECTS}
    for folder, cases in wanted.items():
        (vectors.FOLDER / folder).mkdir(exist_ok=True)
        for name, fields in cases.items():
            path = vectors.FOLDER / folder / f"{name}.txt"
            text = vectors.write(fields)
            if not path.exists():
                path.write_text(text, encoding="utf-8")
                print(f"new: {folder}/{name}")
            elif vectors.read(path) != vectors.read_text(text):
                wrong += 1
                changed = [
                    key for key, value in vectors.read_text(text).items() if vectors.read(path).get(key) != value
                ]
                print(f"refused: {folder}/{name} would change its {', '.join(changed)}", file=sys.stderr)
        for path in sorted((vectors.FOLDER / folder).glob("*.txt")):
            if path.stem not in cases:
                wrong += 1
                print(f"stray: {folder}/{path.name} belongs to no case", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
