"""What every rank does a part of: going through the images, testing the model, and comparing replicas."""

from collections.abc import Iterator
from itertools import count

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, TensorDataset

from hvd_deepreduce.demo.idx import DataError
from hvd_deepreduce.demo.replicas import identical_on_all_ranks
from hvd_deepreduce.torch.demo.image_data import Images

EVALUATION_BATCH = 500


def endless_batches(images: Images, batch_size: int, seed: int) -> Iterator[list[Tensor]]:
    """Batches of this rank's shard, epoch after epoch, shuffled alike on every run with this seed."""
    dataset = TensorDataset(images.train_images, images.train_labels)
    shard = DistributedSampler[int](dataset, hvd.size(), hvd.rank(), seed=seed, drop_last=True)
    if len(shard) < batch_size:
        raise DataError(f"a batch of {batch_size} is more than the {len(shard)} images of a rank")
    # Whole batches are looked up at once: image by image would cost more than the training.
    loader = DataLoader(dataset, sampler=BatchSampler(shard, batch_size, drop_last=True), batch_size=None)
    for epoch in count():
        shard.set_epoch(epoch)
        yield from loader


@torch.no_grad()
def accuracy_on_test_images(model: nn.Module, images: Images) -> float:
    """Share of all test images that the model tells right; a rank looks at its part of them."""
    right = torch.zeros(1)
    for first in range(hvd.rank() * EVALUATION_BATCH, len(images.test_labels), hvd.size() * EVALUATION_BATCH):
        part = slice(first, first + EVALUATION_BATCH)
        right += (model(images.test_images[part]).argmax(1) == images.test_labels[part]).sum()
    return float(hvd.allreduce(right, name="right", op=hvd.Sum)) / len(images.test_labels)


def replicas_identical(model: nn.Module) -> bool:
    """Whether all ranks hold the same parameters, bit for bit."""
    parameters = (parameter.detach().numpy() for parameter in model.parameters())
    return identical_on_all_ranks(parameters, hvd.allgather_object)
