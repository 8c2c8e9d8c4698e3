"""What users pass as `compression=` to `hvd.DistributedOptimizer`."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import horovod.torch as hvd
import torch
from horovod.torch.compression import Compressor

from hvd_deepreduce.checks import require_integer, require_number
from hvd_deepreduce.contracts import IndexCodec, Memory, Sparsifier, ValueCodec
from hvd_deepreduce.errors import InvalidSettingError, UnknownGradientError, UnsupportedOperationError
from hvd_deepreduce.settings import DEFAULT_INDEX, DEFAULT_MEMORY, DEFAULT_SPARSIFIER, DEFAULT_VALUE, Settings
from hvd_deepreduce.torch import arrays
from hvd_deepreduce.torch.parameters import NamedParameters
from hvd_deepreduce.torch.session import Session
from hvd_deepreduce.torch.tensors import TensorState

DEFAULT_MIN_NUMEL = 1024
DEFAULT_BUCKET_BYTES = 16 * 2**20
DEFAULT_TIMEOUT_S = 300.0


class _Context(NamedTuple):
    """What `decompress` gets back from `compress`."""

    state: TensorState | None
    gradient: torch.Tensor


class DeepReduce(Compressor):  # type: ignore[misc]
    """Sparsifies gradients with error feedback and codes support and values apart (DeepReduce, arXiv 2102.03112).

    Args:
        named_parameters: what `model.named_parameters()` gives; the same names, shapes and order on every rank.
        sparsifier: which elements to keep: `none`, `topk(density=...)`, `threshold(value=...)`.
        index: how their positions are coded: `raw`, `bitmap`, `rice`.
        value: how their values are coded: `raw`, `fp16`, `bf16`, `qsgd(bits=..., bucket=...)`.
        memory: what becomes of the rest: `residual` (error feedback) or `none`.
        name: tells compressors in one process apart; the same on every rank.
        seed: of the stochastic codecs; the same on every rank. The user's generators are never touched.
        min_numel: tensors of fewer elements are left to Horovod, and so are those that are not floating-point.
        bucket_bytes: tensors of at most so many dense bytes together share one collective.
        process_set: the optimizer's, if it has one.
        timeout: seconds to wait for the other ranks before an error.
        threads: how many threads code the tensors of a bucket; the bytes are the same for any number.

    Each stage is text or the settings object it names, `topk(density=0.01)` or `TopK(density=0.01)`;
    `InvalidSettingError` lists what is allowed. Gradients may be float16, bfloat16, float32 or float64; residuals are
    float32, float64 for the last.

    Errors are collective: when one rank fails, every rank raises, with tensor, rank and cause.
    """

    def __init__(
        self,
        named_parameters: Iterable[tuple[str, torch.Tensor]],
        sparsifier: str | Sparsifier = DEFAULT_SPARSIFIER,
        index: str | IndexCodec = DEFAULT_INDEX,
        value: str | ValueCodec = DEFAULT_VALUE,
        memory: str | Memory = DEFAULT_MEMORY,
        *,
        name: str = "deepreduce",
        seed: int = 0,
        min_numel: int = DEFAULT_MIN_NUMEL,
        bucket_bytes: int = DEFAULT_BUCKET_BYTES,
        process_set: Any = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        threads: int = 1,
    ):
        require_integer("DeepReduce", "min_numel", min_numel, minimum=1, maximum=2**63 - 1)
        require_integer("DeepReduce", "bucket_bytes", bucket_bytes, minimum=1, maximum=2**63 - 1)
        require_integer("DeepReduce", "threads", threads, minimum=1, maximum=256)
        require_number("DeepReduce", "timeout", timeout, minimum=0.001)
        if not isinstance(name, str) or not name:
            raise InvalidSettingError(f"DeepReduce: name={name!r}; needed is text that is not empty")
        self.settings = Settings.of(sparsifier, index, value, memory, seed)
        self._min_numel = min_numel
        self._parameters = NamedParameters(named_parameters)
        self._session = Session(
            name,
            self.settings,
            self._parameters,
            min_numel=min_numel,
            bucket_bytes=bucket_bytes,
            process_set=hvd.global_process_set if process_set is None else process_set,
            timeout_s=timeout,
            threads=threads,
        )
        # Autograd may run hooks on threads of its own.
        self._lock = threading.RLock()

    @classmethod
    def from_string(
        cls, named_parameters: Iterable[tuple[str, torch.Tensor]], text: str, *, seed: int = 0, **options: Any
    ) -> DeepReduce:
        """From the one-string form, `topk(density=0.01)+rice+qsgd(bits=7)`; `options` are the constructor's other ones.

        Parts left out at the end take their defaults; a fourth part names the memory.
        """
        settings = Settings.from_string(text)
        stages = (settings.sparsifier, settings.index, settings.value, settings.memory)
        return cls(named_parameters, *stages, seed=seed, **options)

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, _Context | None]:
        """Encodes a gradient and hands Horovod a probe to reduce in its place.

        Waits for no other rank, but at the very first call, which compares settings.
        """
        if tensor.requires_grad:
            self._refuse_adasum(tensor)
        if tensor.numel() < self._min_numel or arrays.dtype_name(tensor) is None:
            return tensor, None
        with self._lock:
            self._session.begin()
            state = None
            try:
                state = self._state_of(tensor)
                self._session.put(state, tensor)
            except Exception as error:  # the wing's edge: an error on one rank must reach all
                self._session.fail(state.spec.name if state else None, error)
            return self._session.probe_tensor(), _Context(state, tensor)

    def decompress(self, tensor: torch.Tensor, ctx: _Context | None) -> torch.Tensor:
        """Decodes the gradients of all ranks into the gradient's own storage and returns it."""
        if ctx is None:
            return tensor
        with self._lock:
            self._session.fetch(ctx.state, tensor.tolist())
        return ctx.gradient

    def stats(self) -> dict[str, Any]:
        """What this rank sent so far: `settings`, `steps`, `collectives`, a list `tensors`, `total` and `pass_through`.

        Every tensor and the total have `numel`, `kept`, `dense_bytes`, `index_bytes`, `value_bytes`, `sent_bytes`,
        `relative_volume` (sent / dense bytes), `bits_per_kept`, `encode_ms`, `decode_ms`, `wait_ms`, summed over the
        steps. `sent_bytes` of a tensor are those of its frames; of the total they are those of the bundles, headers
        included (`bundle_bytes`), and of the probes (`probe_bytes`). `wait_ms` is the time spent waiting for the frames
        of other ranks, booked on the first tensor of a bucket that asks. `pass_through` counts the tensors left to
        Horovod, in bytes per step.
        """
        with self._lock:
            return self._session.statistics.as_dict()

    def report(self) -> str:
        """The statistics as a table, per step."""
        with self._lock:
            return self._session.statistics.as_table()

    def _refuse_adasum(self, parameter: torch.Tensor) -> NoReturn:
        """Horovod's Adasum optimizer reduces changes of parameters, and does so on all ranks alike."""
        with self._lock:
            self._session.leave(
                UnsupportedOperationError(
                    f"tensor {self._parameters.name_of(parameter)!r}: op=Adasum hands over parameters instead of "
                    "gradients; allowed are op=Average and op=Sum"
                )
            )

    def _state_of(self, gradient: torch.Tensor) -> TensorState:
        place = self._parameters.place_of_gradient(gradient)
        if place is None:
            raise UnknownGradientError(
                f"gradient {self._parameters.describe(gradient)} belongs to none of the {len(self._parameters.names)} "
                "named parameters: give DeepReduce the same named_parameters as the optimizer"
            )
        return self._session.tensors.at(place)
