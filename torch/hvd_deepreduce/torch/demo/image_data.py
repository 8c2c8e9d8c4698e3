"""The images of `hvd_deepreduce.demo.idx` as PyTorch likes them."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from hvd_deepreduce.demo.idx import load_raw


@dataclass(frozen=True)
class Images:
    """Training and test images (N, 1, 28, 28) of about zero mean and unit variance, with labels 0 to 9."""

    name: str
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load(folder: Path | None = None) -> Images:
    """See `load_raw`."""
    raw = load_raw(folder)
    train_images, test_images = (torch.from_numpy(one).unsqueeze(1) for one in (raw.train_images, raw.test_images))
    deviation, mean = torch.std_mean(train_images)
    return Images(
        raw.name,
        (train_images - mean) / deviation,
        torch.from_numpy(raw.train_labels),
        (test_images - mean) / deviation,
        torch.from_numpy(raw.test_labels),
    )
