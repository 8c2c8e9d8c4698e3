"""Finds and reads the images the examples train on: Fashion-MNIST as IDX files, or scikit-learn's digits."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IMAGE_SIZE = 28
CLASSES = 10
DEBIAN_FOLDERS = (Path("/usr/share/datasets/fashion-mnist"), Path("/usr/share/dataset/fashion-mnist"))
DEBIAN_PACKAGE = "dataset-fashion-mnist"


class DataError(Exception):
    """A data set is missing or malformed; the message says which file and why."""


@dataclass(frozen=True)
class RawImages:
    """Training and test images (N, 28, 28) as they are, with labels 0 to 9."""

    name: str
    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def load_raw(folder: Path | None = None) -> RawImages:
    """Loads Fashion-MNIST from `folder`, or from Debian's package, or else scikit-learn's digits.

    A folder that was asked for and lacks the files is an error; only the default falls back to the digits.
    """
    if folder is not None:
        return _load_idx(folder)
    for candidate in DEBIAN_FOLDERS:
        if candidate.is_dir():
            return _load_idx(candidate)
    return _load_digits()


def _load_idx(folder: Path) -> RawImages:
    arrays = {part: read_idx(find_idx(folder, part)) for part in ("train-images", "train-labels")}
    arrays |= {part: read_idx(find_idx(folder, part)) for part in ("t10k-images", "t10k-labels")}
    for split in ("train", "t10k"):
        images, labels = arrays[f"{split}-images"], arrays[f"{split}-labels"]
        if images.ndim != 3 or images.shape[1:] != (IMAGE_SIZE, IMAGE_SIZE):
            raise DataError(f"{folder}: {split} images have shape {images.shape}, not (N, {IMAGE_SIZE}, {IMAGE_SIZE})")
        if labels.shape != images.shape[:1] or not len(labels) or labels.max() >= CLASSES:
            raise DataError(f"{folder}: {split} needs one label of 0 to {CLASSES - 1} for each of {len(images)} images")
    return RawImages(
        f"Fashion-MNIST from {folder}",
        arrays["train-images"].astype(np.float32),
        arrays["train-labels"].astype(np.int64),
        arrays["t10k-images"].astype(np.float32),
        arrays["t10k-labels"].astype(np.int64),
    )


def find_idx(folder: Path, part: str) -> Path:
    """Path of one of the four IDX files, under either spelling in use, compressed or not."""
    rank = "idx3" if part.endswith("images") else "idx1"
    names = [f"{part}{separator}{rank}-ubyte{ending}" for separator in "-." for ending in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder}: none of {', '.join(names)} is there")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Reads an IDX file of unsigned bytes: two zeros, type 8, dimensions, their lengths (big-endian), then the data."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: {error}") from error
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise DataError(f"{path}: no IDX file of unsigned bytes; it starts with {content[:4].hex(' ') or 'nothing'}")
    header = 4 + 4 * content[3]
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, header, 4))
    expected = header + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        raise DataError(f"{path}: {len(content)} bytes where shape {shape} needs {expected}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()


def _load_digits() -> RawImages:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            f"no images to train on: install Debian's {DEBIAN_PACKAGE}, give --data DIR, or pip install scikit-learn"
        ) from None
    digits = load_digits()
    # The nearest of eight pixels.
    nearest = np.arange(IMAGE_SIZE) * 8 // IMAGE_SIZE
    images = digits.images.astype(np.float32)[:, nearest][:, :, nearest]
    labels = digits.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = order[:297], order[297:]
    return RawImages(
        f"scikit-learn's digits (for Fashion-MNIST install {DEBIAN_PACKAGE} or give --data)",
        images[train],
        labels[train],
        images[test],
        labels[test],
    )
