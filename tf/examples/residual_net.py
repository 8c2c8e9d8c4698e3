"""A small residual network for 28 x 28 images: a million parameters, nearly all of them in one dense layer."""

from functools import partial

import tensorflow as tf


def make_residual_net(classes: int = 10) -> tf.keras.Model:
    """Convolution stem, one residual block, a second convolution, two dense layers: 1,020,010 parameters.

    The net of the PyTorch example, with weights drawn as there: uniform, up to 1 / sqrt(inputs). No normalisation
    layers, so the parameters are the whole state.
    """
    weights = partial(tf.keras.initializers.VarianceScaling, 1 / 3, "fan_in", "uniform")

    def convolution(channels: int, name: str, **options: object) -> tf.keras.layers.Layer:
        return tf.keras.layers.Conv2D(channels, 3, padding="same", kernel_initializer=weights(), name=name, **options)

    def dense(units: int, name: str, **options: object) -> tf.keras.layers.Layer:
        return tf.keras.layers.Dense(units, kernel_initializer=weights(), name=name, **options)

    images = tf.keras.Input((28, 28, 1))
    features = convolution(16, "stem", strides=2, activation="relu")(images)
    block = convolution(16, "block_second")(convolution(16, "block_first", activation="relu")(features))
    features = tf.keras.layers.ReLU()(tf.keras.layers.Add()([features, block]))
    features = convolution(32, "narrow", strides=2, activation="relu")(features)
    hidden = dense(640, "hidden", activation="relu")(tf.keras.layers.Flatten()(features))
    return tf.keras.Model(images, dense(classes, "output", dtype="float32")(hidden))
