"""The watch over gathers under way; see `hvd_deepreduce.watch`.

TensorFlow gives no handle of a collective in a graph: it is begun when its bundle is made, and over when its result is
read.
"""

import itertools

from hvd_deepreduce.tf.collectives import late_message
from hvd_deepreduce.tf.shutdown import shutdown
from hvd_deepreduce.watch import Watch

_numbers = itertools.count()
_under_way: set[int] = set()


def begin(what: str, timeout_s: float) -> int:
    """Watches a gather until `end` is called with what this returns."""
    handle = next(_numbers)
    _under_way.add(handle)
    _watch.begin(handle, what, timeout_s)
    return handle


def end(handle: int) -> None:
    """The gather is complete."""
    _under_way.discard(handle)
    _watch.end(handle)


_watch = Watch(shutdown, lambda handle: handle not in _under_way, late_message)
give_up = _watch.give_up
