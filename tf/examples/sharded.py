"""What every rank does a part of: going through the images, and comparing replicas."""

from pathlib import Path
from typing import NamedTuple

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from hvd_deepreduce.demo.idx import DataError, load_raw
from hvd_deepreduce.demo.replicas import identical_on_all_ranks


class Images(NamedTuple):
    """Training and test images (N, 28, 28, 1) of about zero mean and unit variance, with labels 0 to 9."""

    name: str
    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def load(folder: Path | None = None) -> Images:
    """See `load_raw`."""
    raw = load_raw(folder)
    mean, deviation = raw.train_images.mean(dtype=np.float64), raw.train_images.std(dtype=np.float64)
    train_images, test_images = (
        ((one[..., np.newaxis] - mean) / deviation).astype(np.float32) for one in (raw.train_images, raw.test_images)
    )
    return Images(raw.name, train_images, raw.train_labels, test_images, raw.test_labels)


def batches(images: Images, batch_size: int, seed: int) -> tf.data.Dataset:
    """Batches of this rank's shard, epoch after epoch, shuffled alike on every run with this seed."""
    count = len(images.train_labels) // hvd.size()
    if count < batch_size:
        raise DataError(f"a batch of {batch_size} is more than the {count} images of a rank")
    train_images, train_labels = tf.constant(images.train_images), tf.constant(images.train_labels)
    places = tf.data.Dataset.range(len(images.train_labels)).shard(hvd.size(), hvd.rank())
    places = places.shuffle(count, seed=seed).batch(batch_size, drop_remainder=True).repeat()
    # Whole batches are looked up at once: image by image would cost more than the training.
    return places.map(lambda at: (tf.gather(train_images, at), tf.gather(train_labels, at)))


def replicas_identical(model: tf.keras.Model) -> bool:
    """Whether all ranks hold the same parameters, bit for bit."""
    return identical_on_all_ranks((variable.numpy() for variable in model.variables), hvd.allgather_object)
