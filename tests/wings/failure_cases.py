"""Every fault that is tested with real jobs: how it is made and what ranks must say; docs/failures.md lists them."""

from __future__ import annotations

from dataclasses import dataclass, field

TIMEOUT_S = 5.0
# How long a message may take where nothing has to time out: a step, on a machine that does other things too.
_AT_ONCE_S = 10.0


@dataclass(frozen=True)
class Fault:
    name: str
    title: str
    says: tuple[str, ...]
    """What each rank that is left must say, in parts; "{rank}" is its own rank."""
    script: str = "absent.py"
    arguments: tuple[str, ...] = ()
    """Of a fault that ends the job. One without is caught by the script, which goes on to the next."""
    launcher: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What is said in place of that by the launcher, by backend."""
    within_s: float = _AT_ONCE_S
    """How long the message may take after the fault,"""
    over_within_s: float = 15.0
    """and how long the job may go on after the message."""
    codes: tuple[int, ...] = (1,)
    """How the first rank may end."""

    @property
    def caught(self) -> bool:
        return not self.arguments

    def shown(self, backend: str) -> str:
        parts = self.launcher.get(backend, self.says)
        return " … ".join(part.replace("{rank}", "0") for part in parts)


_OPERATIONS = tuple(
    Fault(
        op.lower(),
        f"`op=hvd.{op}`",
        (f"UnsupportedOperationError: tensor '{op.lower()}.4.", f"op={op} {what}"),
        "faults.py",
    )
    for op, what in [
        ("Min", "cannot be computed from sparse gradients"),
        ("Max", "cannot be computed from sparse gradients"),
        ("Product", "cannot be computed from sparse gradients"),
        ("Adasum", "hands over parameters instead of gradients"),
    ]
)

_MISMATCHES = (
    Fault(
        "settings",
        "Other settings on one rank",
        ("SettingsMismatchError: settings is 'topk(density=0.02)", "on rank 1 and 'topk(density=0.01)", "on rank 0"),
        "faults.py",
    ),
    Fault(
        "min_numel",
        "Another `min_numel=` on one rank",
        ("SettingsMismatchError: min_numel is 10 on rank 1 and 30 on rank 0",),
        "faults.py",
    ),
    Fault(
        "nothing_on_one_rank",
        "A `min_numel=` so large that one rank compresses nothing",
        ("SettingsMismatchError: min_numel is 1000000000 on rank 1 and 30 on rank 0", "0 tensors are compressed"),
        "faults.py",
    ),
    Fault(
        "package_version",
        "Another package version on one rank",
        ("SettingsMismatchError: package version is '0.0.9' on rank 1 and",),
        "hostile.py",
    ),
    Fault(
        "name",
        "Another `name=` on one rank (`timeout=3`)",
        ("CollectiveTimeoutError: DeepReduce 'name.{rank}', comparing settings: not every rank took part within 3 s",),
        "faults.py",
        within_s=3 + _AT_ONCE_S,
    ),
)

_CHANGES = (
    Fault(
        "clipped",
        "Gradients clipped between `backward()` and `step()`",
        ("ChangedGradientError: tensor 'clipped.", "its gradient was changed between backward() and step()"),
        "faults.py",
    ),
)

_EXCEPTIONS = (
    Fault(
        "exception",
        "An exception while one rank encodes",
        ("rank 1: tensor 'exception.2.weight': KeyError: 'residual'",),
        "faults.py",
    ),
    Fault(
        "unknown",
        "A gradient of no named parameter",
        ("UnknownGradientError: rank {rank}: gradient 'unknown.2.weight'", "belongs to none of the 5 named parameters"),
        "faults.py",
    ),
    Fault(
        "unknown_on_one_rank",
        "The same, on one rank alone",
        ("rank 1: gradient 'unknown_on_one_rank.2.weight'", "belongs to none of the 6 named parameters"),
        "faults.py",
    ),
)

_BYTES = (
    Fault(
        "damaged",
        "A bit flipped in a bundle",
        ("CorruptPayloadError: bucket 2, step 2, rank 1", ": checksum is", "it was damaged"),
        "hostile.py",
    ),
    Fault(
        "damaged_frame",
        "A bit flipped in a frame, and the checksum made to fit",
        ("TruncatedPayloadError: tensor 'damaged_frame.0.weight'", "step 2, rank 1", "runs past the end"),
        "hostile.py",
    ),
    Fault(
        "unknown_codec",
        "A frame of another codec, and the checksum made to fit",
        ("UnknownCodecError: tensor 'unknown_codec.0.weight', rank 1: index codec id",),
        "hostile.py",
    ),
    Fault(
        "truncated",
        "A bundle that ends early",
        ("TruncatedPayloadError: bucket 2, step 2, rank 1", ": length is"),
        "hostile.py",
    ),
    Fault(
        "step_before",
        "The bundle of the step before, sent again",
        ("CorruptPayloadError: bucket 2, step 2, rank 1", ": bundle is of step 1; expected was 2"),
        "hostile.py",
    ),
    Fault(
        "wire_version",
        "A bundle of another wire format version",
        ("UnsupportedVersionError: bucket 2, step 2, rank 1", ": wire format version 17; this is version 1"),
        "hostile.py",
    ),
)

_LATE = f"not every rank took part within {TIMEOUT_S:g} s (timeout=)"
_LATE_BUCKET = f"bucket 0 of step 2: {_LATE}"
_STOPPED = "HorovodInternalError: Horovod has been shut down"
# Ten seconds of grace for Horovod's shutdown, then as many for Gloo's launcher to kill what does not end by itself.
_HUNG_S = 30.0

_ABSENCES = (
    Fault(
        "killed",
        "A rank is killed (`SIGKILL`) in mid-step",
        (_STOPPED,),
        arguments=("killed", "midway"),
        launcher={"mpi": ("mpirun noticed that process rank 1", "exited on signal 9 (Killed)")},
        codes=(137,),
    ),
    Fault("raised", "The user's script raises on one rank", (_STOPPED,), arguments=("raised", "midway")),
    Fault("left", "A rank ends early by `sys.exit(0)`", (_STOPPED,), arguments=("left", "midway")),
    Fault(
        "stalled",
        "A rank stalls before any gradient of a step; the others sit in Horovod's `synchronize()`",
        (f"{_LATE_BUCKET}", "Shutting Horovod down (rank {rank} of", _STOPPED),
        arguments=("stalled", "early"),
        within_s=TIMEOUT_S + _AT_ONCE_S,
    ),
    Fault(
        "stalled_midway",
        "A rank stalls between two gradients of a bucket",
        (f"CollectiveTimeoutError: DeepReduce 'deepreduce', {_LATE_BUCKET}",),
        arguments=("stalled", "midway"),
        within_s=TIMEOUT_S + _AT_ONCE_S,
    ),
    Fault(
        "stalled_shut_down",
        "A rank stalls, and the others' script catches Horovod's error and calls `hvd.shutdown()`",
        (_LATE_BUCKET, "Shutting Horovod down (rank {rank} of"),
        arguments=("stalled", "early", "--shut-down"),
        within_s=TIMEOUT_S + _AT_ONCE_S,
        over_within_s=_HUNG_S,
        codes=(1, 75),  # two threads that shut Horovod down at once mostly hang, not always
    ),
    Fault(
        "stopped",
        "A rank is stopped (`SIGSTOP`) in mid-step",
        (_LATE_BUCKET, "Shutting Horovod down (rank {rank} of", "Horovod does not shut down within 10 s"),
        arguments=("stopped", "early"),
        within_s=TIMEOUT_S + _AT_ONCE_S,
        over_within_s=_HUNG_S,
        codes=(75,),
    ),
    Fault(
        "stopped_first",
        "A rank is stopped before its first gradient",
        (f"comparing settings: {_LATE}", "Horovod does not shut down within 10 s"),
        arguments=("stopped", "first"),
        within_s=TIMEOUT_S + _AT_ONCE_S,
        over_within_s=_HUNG_S,
        codes=(75,),
    ),
)

# Of the TensorFlow wing, whose errors come out of a graph: what counts is in their text.
TF_FAULTS = (
    Fault(
        "tf_settings",
        "Other settings on one rank",
        ("SettingsMismatchError: settings is 'topk(density=0.02)", "on rank 1 and 'topk(density=0.01)", "on rank 0"),
        "tf_faults.py",
        within_s=3 * _AT_ONCE_S,  # a step is traced meanwhile
    ),
    Fault(
        "tf_package_version",
        "Another package version on one rank",
        ("SettingsMismatchError: package version is '0.0.9' on rank 1 and",),
        "tf_faults.py",
        within_s=3 * _AT_ONCE_S,  # a step is traced meanwhile
    ),
    Fault(
        "tf_damaged",
        "A bit flipped in a bundle",
        ("CorruptPayloadError: bucket 0, step 2, rank 1: checksum is", "it was damaged"),
        "tf_faults.py",
    ),
    Fault(
        "tf_scale",
        "A `loss_scale=` that is 0 on one rank",
        ("rank 1: DeepReduce: loss_scale()=0.0; allowed is 1.17549e-38 or more",),
        "tf_faults.py",
    ),
    Fault(
        "tf_none",
        "A variable that one rank's loss does not use in a step",
        (
            "DeepReduceError: DeepReduce 'tf_none': the gradient of '1.other' is dense on rank 0, none on rank 1",
            "in a step all ranks must have gradients of the same variables",
        ),
        "tf_faults.py",
    ),
    Fault(
        "tf_table",
        "The same, of a table with sparse gradients",
        ("DeepReduceError: DeepReduce 'tf_table.rows': the gradient of '1.other' is sparse on rank 0, none on rank 1",),
        "tf_faults.py",
    ),
    Fault(
        "killed",
        "A rank is killed (`SIGKILL`) in mid-step",
        ("UnknownError: Graph execution error", "Horovod has been shut down"),
        "tf_faults.py",
        ("killed",),
        codes=(137,),
    ),
    Fault(
        "stalled",
        "A rank stalls in mid-step",
        (
            f"DeepReduce 'stalled', {_LATE_BUCKET}",
            "Shutting Horovod down (rank {rank} of",
            "Horovod has been shut down",
        ),
        "tf_faults.py",
        ("stalled",),
        within_s=TIMEOUT_S + _AT_ONCE_S,
        over_within_s=_HUNG_S,
    ),
    Fault(
        "joined",
        "A rank calls `hvd.join()`, and the others go on",
        ("UnsupportedOperationError: DeepReduce 'joined': 1 of 2 ranks take part in a step",),
        "tf_faults.py",
        ("joined",),
        over_within_s=_HUNG_S,
    ),
)

FAULTS = (*_OPERATIONS, *_MISMATCHES, *_CHANGES, *_EXCEPTIONS, *_BYTES, *_ABSENCES)
# The end of one that is caught above, in a script that does not catch it.
UNCAUGHT = Fault(
    "exception",
    "The end of a job by an error of DeepReduce",
    ("rank 1: tensor 'exception.2.weight': KeyError: 'residual'", "(raised by rank {rank} of 2)"),
    "faults.py",
    arguments=("--die", "exception"),
)
