"""Every exception of the project; all derive from `DeepReduceError`."""


class DeepReduceError(Exception):
    """Base class: catch this to catch whatever the project raises on purpose."""


class InvalidSettingError(DeepReduceError, ValueError):
    """A setting, or a value handed in by the caller, is not allowed; the message lists what is."""


class CorruptPayloadError(DeepReduceError, ValueError):
    """Bytes from the wire that no encoder of this version makes."""


class TruncatedPayloadError(CorruptPayloadError):
    """Bytes from the wire that end too early."""


class UnknownCodecError(CorruptPayloadError):
    """A frame names a codec id that this version, or these settings, do not have."""


class UnsupportedVersionError(CorruptPayloadError):
    """A bundle of another version of the wire format."""


class SettingsMismatchError(DeepReduceError):
    """Ranks were started with different settings, parameters or package versions."""


class UnsupportedOperationError(DeepReduceError):
    """Horovod was asked for a reduction that gathered gradients can't take part in (Min, Max, Product, Adasum)."""


class UnknownGradientError(DeepReduceError):
    """A gradient that belongs to none of the named parameters."""


class ChangedGradientError(DeepReduceError):
    """A gradient was changed after it was handed over and before it was summed: the change would be lost."""


class RemoteRankError(DeepReduceError):
    """Another rank failed; the message holds its rank and its own words."""


class StateMismatchError(DeepReduceError, ValueError):
    """A saved state is of another rank, model or setting; the message says which."""


class CollectiveTimeoutError(DeepReduceError, TimeoutError):
    """Another rank did not take part in a collective within the time limit."""
