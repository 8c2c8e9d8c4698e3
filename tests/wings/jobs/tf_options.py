"""Everything Horovod's optimizers and tape for TensorFlow can be asked for: equal replicas, equal to the oracle.

One job for all of it, or for the parts that are named: to start TensorFlow takes seconds.
"""

from __future__ import annotations

import argparse
import os
import time

import horovod.tensorflow as hvd
import tensorflow as tf
from tf_optimizer_options import check_basics, check_keras, check_load_model, check_optimizer_of_version_1
from tf_refusals import check_refusals
from tf_skipped_steps import check_mixed_precision, check_rollback, check_skipped_step
from tf_tape_options import (
    SUBSET,
    check_dtypes,
    check_eager,
    check_not_finite,
    check_process_set,
    check_settings_of_every_kind,
    check_two_gradients_in_one_function,
    check_two_models,
    check_words,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*")
    chosen = parser.parse_args().parts
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    tf.config.threading.set_intra_op_parallelism_threads(1)
    hvd.init()
    subset = hvd.add_process_set(list(SUBSET)) if hvd.size() == 3 else None
    checks = {
        "basics": check_basics,
        "keras": check_keras,
        "eager": check_eager,
        "version_1": check_optimizer_of_version_1,
        "dtypes": check_dtypes,
        "process_set": lambda: check_process_set(subset),
        "words": check_words,
        "not_finite": check_not_finite,
        "mixed_precision": check_mixed_precision,
        "skipped_step": check_skipped_step,
        "rollback": lambda: [check_rollback(custom_op) for custom_op in (True, False)],
        "settings": check_settings_of_every_kind,
        "two_models": check_two_models,
        "two_gradients": check_two_gradients_in_one_function,
        "load_model": check_load_model,
        "refusals": check_refusals,
    }
    for name in chosen or checks:
        start = time.monotonic()
        checks[name]()
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    # The first to end would take the others with it.
    hvd.allreduce(tf.zeros(1), name="end")
    print("OPTIONS ok")


if __name__ == "__main__":
    main()
