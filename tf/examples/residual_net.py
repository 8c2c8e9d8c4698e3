"""A small residual network for 28 x 28 images: a million parameters, nearly all of them in one dense layer."""

import tensorflow as tf


def make_residual_net(classes: int = 10) -> tf.keras.Model:
    """Convolution stem, one residual block, a second convolution, two dense layers: 1,020,010 parameters.

    The net of the PyTorch example. No normalisation layers, so the parameters are the whole state.
    """
    layers = tf.keras.layers
    images = tf.keras.Input((28, 28, 1))
    features = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu", name="stem")(images)
    block = layers.Conv2D(16, 3, padding="same", activation="relu", name="block_first")(features)
    block = layers.Conv2D(16, 3, padding="same", name="block_second")(block)
    features = layers.ReLU()(layers.Add()([features, block]))
    features = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu", name="narrow")(features)
    hidden = layers.Dense(640, activation="relu", name="hidden")(layers.Flatten()(features))
    return tf.keras.Model(images, layers.Dense(classes, dtype="float32", name="output")(hidden))
