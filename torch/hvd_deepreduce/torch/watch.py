"""The watch over gathers under way; see `hvd_deepreduce.watch`."""

import horovod.torch as hvd

from hvd_deepreduce.torch.collectives import late_message
from hvd_deepreduce.torch.shutdown import shutdown
from hvd_deepreduce.watch import Watch


def _complete(handle: int) -> bool:
    try:
        return bool(hvd.poll(handle))
    except ValueError:  # Horovod was shut down meanwhile, and has forgotten it
        return True


watch = Watch(shutdown, _complete, late_message)
