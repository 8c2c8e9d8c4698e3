"""What users pass as `compression=` to `hvd.DistributedOptimizer`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import horovod.torch as hvd
import torch
from horovod.torch.compression import Compressor

from hvd_deepreduce.checks import quoted, require_flag, require_number
from hvd_deepreduce.contracts import IndexCodec, Memory, Sparsifier, ValueCodec
from hvd_deepreduce.errors import DeepReduceError, InvalidSettingError, UnknownGradientError, UnsupportedOperationError
from hvd_deepreduce.settings import (
    DEFAULT_BUCKET_BYTES,
    DEFAULT_INDEX,
    DEFAULT_MEMORY,
    DEFAULT_MIN_NUMEL,
    DEFAULT_SPARSIFIER,
    DEFAULT_TIMEOUT_S,
    DEFAULT_VALUE,
    Settings,
    require_options,
)
from hvd_deepreduce.timeline import Timeline
from hvd_deepreduce.torch import arrays, checkpoint
from hvd_deepreduce.torch.parameters import NamedParameters
from hvd_deepreduce.torch.session import Session
from hvd_deepreduce.torch.tensors import TensorState

NamedTensors = Iterable[tuple[str, torch.Tensor]]


class _Context(NamedTuple):
    """What `decompress` gets back from `compress`."""

    state: TensorState | None
    gradient: torch.Tensor


class DeepReduce(Compressor):  # type: ignore[misc]
    """Sparsifies gradients with error feedback and codes support and values apart (DeepReduce, arXiv 2102.03112).

    Args:
        named_parameters: what `model.named_parameters()` gives; the same names, shapes and order on every rank.
        sparsifier: which elements to keep, `topk(density=0.01)` for instance.
        index: how their positions are coded, `rice` for instance.
        value: how their values are coded, `qsgd(bits=7)` for instance.
        memory: what becomes of the rest: `residual` (error feedback), `none`, or what a sparsifier needs.
        name: tells compressors in one process apart; the same on every rank.
        seed: of the stochastic codecs; the same on every rank. The user's generators are never touched.
        min_numel: tensors of fewer elements are left to Horovod, and so are those that are not floating-point.
        bucket_bytes: tensors of at most so many dense bytes together share one collective.
        process_set: the optimizer's, if it has one.
        timeout: seconds to wait for the other ranks before an error.
        threads: how many threads code the tensors of a bucket; the bytes are the same for any number.
        overlap: whether gradients are coded on a thread of their own while the backward pass goes on; by default where
            the machine has more cores than ranks, or gradients are on a GPU.
        loss_scale: what the loss is multiplied by at the moment, `GradScaler.get_scale` for instance: residuals are
            then kept unscaled. See also `rollback`.
        timeline: where to record when gradients were coded, waited for and decoded.

    Each stage is text or the settings object it names, `topk(density=0.01)` or `TopK(density=0.01)`;
    `InvalidSettingError` lists what is allowed, and so does `hvd-deepreduce codecs`. Gradients may be float16,
    bfloat16, float32 or float64; residuals are float32, float64 for the last.

    Errors are collective: when one rank fails, every rank raises, with tensor, rank and cause.
    """

    def __init__(
        self,
        named_parameters: NamedTensors | None = None,
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
        overlap: bool | None = None,
        loss_scale: Callable[[], float] | None = None,
        timeline: Timeline | None = None,
    ):
        require_options(name, min_numel=min_numel, bucket_bytes=bucket_bytes, timeout=timeout, threads=threads)
        if overlap is not None:
            require_flag("DeepReduce", "overlap", overlap)
        if timeline is not None and not isinstance(timeline, Timeline):
            raise InvalidSettingError(f"DeepReduce: timeline={quoted(timeline)}; needed is a hvd_deepreduce.Timeline")
        self.settings = Settings.of(sparsifier, index, value, memory, seed)
        self._min_numel = min_numel
        self._options: dict[str, Any] = {
            "name": name,
            "min_numel": min_numel,
            "bucket_bytes": bucket_bytes,
            "timeout": timeout,
            "threads": threads,
            "overlap": overlap,
        }
        self._loss_scale = loss_scale
        self._timeline = timeline
        self._process_set = process_set
        self._attached: tuple[NamedParameters, Session] | None = None
        # Autograd may run hooks on threads of its own.
        self._lock = threading.RLock()
        if named_parameters is not None:
            self.attach(named_parameters)

    def attach(
        self,
        named_parameters: NamedTensors,
        process_set: Any = None,
        loss_scale: Callable[[], float] | None = None,
    ) -> None:
        """Gives a model to a compressor that has none: one that was unpickled, or made without `named_parameters`.

        Pickling carries neither a process set nor a function, so give both again where there were any.
        """
        if self._attached is not None:
            raise InvalidSettingError(
                "attach(): this DeepReduce has a model already; make another one for another model"
            )
        process_set = process_set or self._process_set or hvd.global_process_set
        if not isinstance(process_set, hvd.ProcessSet):
            raise InvalidSettingError(
                f"DeepReduce: process_set={quoted(process_set)}; needed is a horovod.torch.ProcessSet"
            )
        self._loss_scale = loss_scale or self._loss_scale
        self._process_set = process_set
        parameters = NamedParameters(named_parameters)
        session = Session(
            self._options["name"],
            self.settings,
            parameters,
            min_numel=self._min_numel,
            bucket_bytes=self._options["bucket_bytes"],
            process_set=process_set,
            timeout_s=self._options["timeout"],
            threads=self._options["threads"],
            overlap=self._options["overlap"],
            timeline=self._timeline,
        )
        self._attached = parameters, session

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles settings only: residuals are a rank's own (`state_dict`), the model is the caller's (`attach`)."""
        return _from_settings, (self.settings.to_dict(), self._options)

    @classmethod
    def from_string(
        cls, named_parameters: NamedTensors | None, text: str, *, seed: int = 0, **options: Any
    ) -> DeepReduce:
        """From the one-string form, `topk(density=0.01)+rice+qsgd(bits=7)`; `options` are the constructor's other ones.

        Parts left out at the end take their defaults; a fourth part names the memory.
        """
        return cls(named_parameters, *Settings.from_string(text).stages, seed=seed, **options)

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, _Context | torch.Tensor | None]:
        """Encodes a gradient and hands Horovod a probe to reduce in its place.

        Waits for no other rank, but at the very first call, which compares settings.
        """
        if tensor.requires_grad:
            self._refuse_adasum(tensor)
        given = tensor
        session = self._session
        with self._lock:
            session.begin()
            if tensor.numel() < self._min_numel or arrays.dtype_name(tensor) is None:
                # Horovod cannot reduce bfloat16 tensors of PyTorch.
                return (tensor.float(), tensor) if tensor.dtype is torch.bfloat16 else (tensor, None)
            if arrays.overlaps_itself(tensor):
                tensor = tensor.clone()
            state = None
            try:
                state = self._state_of(given)
                session.put(state, tensor, self.current_scale(), given)
            except Exception as error:  # the wing's edge: an error on one rank must reach all
                session.fail(state.spec.name if state else None, error)
            return session.probe_tensor(), _Context(state, tensor)

    def decompress(self, tensor: torch.Tensor, ctx: _Context | torch.Tensor | None) -> torch.Tensor:
        """Decodes the gradients of all ranks into the gradient's own storage and returns it."""
        if ctx is None:
            return tensor
        if isinstance(ctx, torch.Tensor):
            return ctx.copy_(tensor)
        with self._lock:
            self._session.fetch(ctx.state, tensor.tolist())
        return ctx.gradient

    def stats(self) -> dict[str, Any]:
        """What this rank sent so far: `settings`, `steps`, `collectives`, a list `tensors`, `total` and `pass_through`.

        Every tensor and the total have `numel`, `kept`, `dense_bytes`, `index_bytes`, `value_bytes`, `sent_bytes`,
        `relative_volume` (sent / dense bytes), `bits_per_kept`, `encode_ms`, `decode_ms`, `wait_ms`, summed over the
        steps. `sent_bytes` of a tensor are those of its frames; of the total they are those of the bundles, headers
        included (`bundle_bytes`), and of the probes (`probe_bytes`). `wait_ms` is the time spent waiting for frames,
        of this rank and of others, booked on the first tensor of a bucket that asks. `pass_through` counts the tensors
        left to Horovod, in bytes per step. `rank` and `size` are those of the process set, None where it has none;
        `since` is when counting began, in seconds since the epoch.
        """
        with self._lock:
            return {**self._place(), **self._session.statistics.as_dict()}

    def errors(self) -> dict[str, float | None]:
        """How far what this rank sent in the last step was from what it had to send, by tensor; call it between steps.

        L2 norm of what was not sent / that of gradient and residual together; None for a tensor that was all zero or
        not finite. Empty without error feedback, and after `rollback()`. Costs a pass over the residuals.
        """
        with self._lock:
            return self._session.errors()

    def report(self) -> str:
        """The statistics as a table, per step."""
        with self._lock:
            return self._session.statistics.as_table()

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals and step counters; call it between steps, and save one for each rank.

        Training that goes on from it sends the very frames it would have sent without the interruption.
        """
        with self._lock:
            return checkpoint.save(self._session)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict` of the same rank; every rank must load its own, saved after the same step.

        Raises `StateMismatchError`, and changes nothing, for a state of another rank, model or setting.
        """
        with self._lock:
            checkpoint.load(self._session, state)

    def rollback(self) -> None:
        """Takes the last step's sending back: for a step that the optimizer skipped, on every rank.

        When one gradient overflows under loss scaling, the step is skipped for all tensors, and what the others had
        sent would be lost; now it stays in their residuals. Call it between steps.
        """
        with self._lock:
            self._session.take_back()

    @property
    def attached(self) -> bool:
        """Whether it has a model."""
        return self._attached is not None

    @property
    def options(self) -> Mapping[str, Any]:
        """What was given beside the stages, `name` and `timeout` for instance."""
        return self._options

    def flush(self) -> None:
        """Sends at once what waits for Horovod to ask; for one who leaves the job in the middle of a step."""
        with self._lock:
            self._session.flush()

    def _place(self) -> dict[str, int | None]:
        self._require_attached()
        if not hvd.is_initialized() or not self._process_set.included():
            return {"rank": None, "size": None}
        return {"rank": self._process_set.rank(), "size": self._process_set.size()}

    def current_scale(self) -> float:
        """What gradients are multiplied by at the moment; see `loss_scale`."""
        if self._loss_scale is None:
            return 1.0
        scale = float(self._loss_scale())
        require_number("DeepReduce", "loss_scale()", scale, minimum=2.0**-126)
        return scale

    @property
    def _parameters(self) -> NamedParameters:
        return self._require_attached()[0]

    @property
    def _session(self) -> Session:
        return self._require_attached()[1]

    def _require_attached(self) -> tuple[NamedParameters, Session]:
        if self._attached is None:
            raise DeepReduceError("this DeepReduce has no model yet: call attach(model.named_parameters())")
        return self._attached

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


def _from_settings(settings: dict[str, Any], options: dict[str, Any]) -> DeepReduce:
    """Unpickles."""
    return DeepReduce(None, **settings, **options)
