"""Named allgathers of bytes over Horovod: within a graph, and outside of one with a time limit."""

from __future__ import annotations

import re
import threading
import zlib
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from hvd_deepreduce.errors import CollectiveTimeoutError, RemoteRankError
from hvd_deepreduce.tf.shutdown import shutdown

_CAUSES = "another rank is slow, has stopped, or has another name= or process_set=, or no DeepReduce at all"


def gather(bundle: tf.Tensor, name: str, process_set: Any) -> tf.Tensor:
    """The bundles of all ranks, in rank order, as one uint8 tensor."""
    gathered = hvd.allgather(bundle, name=node_name(name), ignore_name_scope=True, process_set=process_set)
    # Its length is known to no one before it is there.
    gathered.set_shape([None])
    return gathered


def gather_now(data: bytes, name: str, what: str, process_set: Any, timeout_s: float) -> bytes:
    """The contributions of all ranks, outside of any graph; raises `CollectiveTimeoutError` when some don't come.

    `data` is not empty: empty contributions have hung backends.
    """
    result: list[bytes | Exception] = []

    def run() -> None:
        try:
            tensor = tf.constant(np.frombuffer(data, np.uint8))
            gathered = hvd.allgather(tensor, name=node_name(name), ignore_name_scope=True, process_set=process_set)
            result.append(gathered.numpy().tobytes())
        except Exception as error:  # handed to the thread that waits
            result.append(error)

    # A thread of its own: Horovod's call has no time limit, and TensorFlow's is not to be left in a graph's context.
    thread = threading.Thread(target=run, name="deepreduce gather", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not result:
        shutdown.limit()
        raise CollectiveTimeoutError(late_message(what, timeout_s))
    [outcome] = result
    if isinstance(outcome, Exception):
        raise RemoteRankError(f"{what}: {_CAUSES}. Horovod says: {outcome}") from outcome
    return outcome


def late_message(what: str, timeout_s: float) -> str:
    """What to say of a gather that some rank did not take part in."""
    return f"{what}: not every rank took part within {timeout_s:g} s (timeout=): {_CAUSES}"


def node_name(text: str) -> str:
    """A name that TensorFlow allows, and that is another one for another text.

    >>> node_name("deepreduce.bucket.0")
    'deepreduce.bucket.0'
    """
    allowed = re.sub(r"[^A-Za-z0-9_.\-]", "_", text)
    if allowed == text and re.match(r"[A-Za-z0-9.]", text):
        return text
    return f"n{zlib.crc32(text.encode()):08x}_{allowed}"
