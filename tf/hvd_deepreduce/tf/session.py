"""One compressor's part in the job: its tensors' state, and the exchange of all gradients of a step."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from hvd_deepreduce import agreement
from hvd_deepreduce.errors import DeepReduceError, InvalidSettingError, SettingsMismatchError, UnsupportedOperationError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.probe import Probe
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.statistics import Statistics
from hvd_deepreduce.tf import loss_scale, native_library
from hvd_deepreduce.tf.collectives import gather_now
from hvd_deepreduce.tf.exchange import Coder, Exchange
from hvd_deepreduce.tf.host_coder import HostCoder
from hvd_deepreduce.tf.introduction import introduce
from hvd_deepreduce.tf.native_coder import NativeCoder
from hvd_deepreduce.tf.parameters import HorovodCall, call_of, guard
from hvd_deepreduce.tf.roll_call import RollCall
from hvd_deepreduce.tf.tensors import Kept, TensorTable, compressible

_FAREWELL_S = 10.0
_EXCHANGES = "_hvd_deepreduce_exchanges"
_OPS = {hvd.Adasum: "Adasum", hvd.Min: "Min", hvd.Max: "Max", hvd.Product: "Product"}


class Session:
    """See the module; one per `DeepReduce`."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        kept: Kept,
        *,
        min_numel: int,
        bucket_bytes: int,
        process_set: Any,
        timeout_s: float,
        threads: int,
        ask_scale: Callable[[], Any] | None,
        custom_op: bool,
    ):
        self.name = name
        self.min_numel = min_numel
        self.statistics = Statistics(str(settings), [], [])
        self.process_set = process_set
        self._settings = settings
        self._kept = kept
        self._shaping = {"min_numel": min_numel, "bucket_bytes": bucket_bytes}
        self._timeout_s = timeout_s
        self._threads = threads
        self._ask_scale = ask_scale
        self._custom_op = custom_op
        self._tensors: TensorTable | None = None
        self._coder: Coder | None = None
        self._probe = Probe(0, 1)
        self.probe: Any = None
        """What Horovod is handed in a gradient's place, as a variable."""
        self.roll_call: Any = None
        self._eager: list[Exchange] = []

    def exchange_of(self, tensor: tf.Tensor, *, alone: bool = False) -> Exchange | None:
        """The exchange that a gradient takes part in; begun when it is the first one of its call.

        None where this rank exchanges nothing, with itself only if `alone`: its call is traced, and never run.
        """
        graph = getattr(tensor, "graph", None) if not isinstance(tensor, tf.__internal__.EagerTensor) else None
        known = self._eager if graph is None else _exchanges_in(graph)
        for exchange in known:
            if exchange.session is self and exchange.has(tensor):
                return exchange
        call = call_of(tensor)
        _refuse(call)
        process_set = self._agreed_process_set(call)
        if not process_set.included() or (process_set.size() == 1 and not alone):
            return None
        with tf.init_scope():
            table, coder = self._begin(call, process_set)
            self.roll_call.claim(graph)
            guard(call.function, table.variables, lambda variable: compressible(None, variable, self.min_numel))
        # Outside of Horovod's conditional branch, where all gradients of the call are at hand.
        earlier = [one for one in known if one.session is self]
        scope: AbstractContextManager[Any] = nullcontext() if graph is None else graph.as_default()
        after = [] if graph is None or not earlier else earlier[-1].complete
        with scope, tf.device("CPU"), tf.control_dependencies(after):
            scale = loss_scale.asked(self._ask_scale)
            exchange = Exchange(self, call, table, coder, self._probe, self.min_numel, scale, number=len(earlier))
        if graph is None:
            known.clear()
        known.append(exchange)
        return exchange

    def _begin(self, call: HorovodCall, process_set: Any) -> tuple[TensorTable, Coder]:
        """At the first call: compares settings with the other ranks, who must do the same within the time limit."""
        rank, size = process_set.rank(), process_set.size()
        if self._tensors is not None and self._coder is not None:
            if (rank, size) != (self._probe.rank, self._probe.size):
                raise DeepReduceError(
                    f"this was rank {self._probe.rank} of {self._probe.size} and is rank {rank} of {size} now: make a "
                    "new DeepReduce after Horovod was started anew"
                )
            return self._tensors, self._coder
        tensors = TensorTable(call, self._settings, self.min_numel, self._shaping["bucket_bytes"])
        try:
            introduce(self.name, self._settings, tensors.specs, process_set, self._timeout_s, **self._shaping)
        except SettingsMismatchError as error:
            with suppress(DeepReduceError):  # the error at hand matters more than who else heard of it
                self._farewell()
            raise SettingsMismatchError(f"{error} (raised by rank {rank} of {size})") from error
        self._probe = Probe(rank, size)
        self.probe = tf.Variable(self._probe.values(), dtype=tf.float32, trainable=False)
        self.roll_call = RollCall(self.name, process_set, self._timeout_s, self._farewell)
        self.roll_call.allocate()
        self.statistics = Statistics(str(self._settings), tensors.specs, tensors.pass_through)
        said = agreement.identity(self.name, self._settings, tensors.specs, rank=rank, size=size, **self._shaping)
        identity = json.dumps(said)
        self._kept.identity = tf.Variable(identity, trainable=False)
        for number in range(len(tensors.plan)):
            self._kept.steps[str(number)] = tf.Variable(0, dtype=tf.int64, trainable=False)
        tensors.allocate(self._kept, self.statistics.tensors)
        self._coder = host = HostCoder(
            self.name,
            self._settings,
            tensors,
            self._kept,
            self.statistics,
            rank=rank,
            size=size,
            identity=identity,
            threads=self._threads,
            timeout_s=self._timeout_s,
            farewell=self._farewell,
        )
        library = native_library.load() if self._custom_op and NativeCoder.can(self._settings) else None
        if library is not None:
            self._coder = NativeCoder(host, library)
        self._tensors = tensors
        return tensors, self._coder

    def _agreed_process_set(self, call: HorovodCall) -> Any:
        theirs = call.process_set or self.process_set or hvd.global_process_set
        if self.process_set is None:
            self.process_set = theirs
        if theirs.process_set_id != self.process_set.process_set_id:
            raise InvalidSettingError(
                f"DeepReduce {self.name!r}: the gradients are of process set {theirs.ranks}, DeepReduce's is "
                f"{self.process_set.ranks}: give it the optimizer's process_set, or none"
            )
        return self.process_set

    def counted(self) -> Statistics:
        """The statistics, up to date."""
        if self._coder is not None:
            self._coder.sync()
        return self.statistics

    def take_back(self) -> None:
        """Gives back to the residuals what this rank sent in the last step."""
        if (coder := self._at_rest("rollback()")) is None:
            return
        pipeline = Pipeline(self._settings)
        for state, frame, draw in coder.last_sent():
            slots = {slot: variable.numpy() for slot, variable in state.slots.items()}
            pipeline.restore(frame, state.spec, slots, draw)
            for slot, variable in state.slots.items():
                variable.assign(slots[slot])
        coder.forget()

    def errors(self) -> dict[str, float | None]:
        """Of the tensors of the last step, by name; empty without error feedback."""
        if (coder := self._at_rest("errors()")) is None:
            return {}
        pipeline = Pipeline(self._settings)
        return {
            state.spec.name: pipeline.error_of(frame, state.spec, state.slots["residual"].numpy(), draw)
            for state, frame, draw in coder.last_sent()
            if "residual" in state.slots
        }

    def _at_rest(self, caller: str) -> Coder | None:
        """The coder, if there was a first step; raises while gradients are under way."""
        if self._coder is not None and self._coder.under_way:
            raise DeepReduceError(f"{caller}: gradients are under way; call it between steps")
        return self._coder

    def _farewell(self) -> None:
        gather_now(b"\n", f"{self.name}.farewell", "farewell", self.process_set, min(self._timeout_s, _FAREWELL_S))


def _exchanges_in(graph: Any) -> list[Exchange]:
    """Those of all compressors; they live as long as the graph that their tensors are of."""
    if not hasattr(graph, _EXCHANGES):
        setattr(graph, _EXCHANGES, [])
    known: list[Exchange] = getattr(graph, _EXCHANGES)
    return known


def _refuse(call: HorovodCall) -> None:
    """What can be seen before any gradient travels, and is the same on all ranks."""
    if call.op in _OPS:
        raise UnsupportedOperationError(
            f"op={_OPS[call.op]} cannot be computed from sparse gradients; allowed are op=Average and op=Sum"
        )
