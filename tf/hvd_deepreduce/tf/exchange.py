"""All gradients of one call of Horovod's on their way: encoded, gathered and decoded in the graph it is called in.

Horovod asks for one gradient at a time, within a conditional branch each. All of them are known at the first question,
so everything is built then, outside of the branch: per bucket one encoding, one named gather and one decoding. In the
branches stay the probes, which tell whether Horovod's reduction was the one that gradients were decoded for.

Errors surface while decoding, on all ranks alike, and at a point where none of the call's collectives is half done:
every gather of the call is complete before the first decoding, and what Horovod reduces itself, probes included, waits
for the last one. Else one rank would wait for a collective that another, which has given up, will never begin.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import horovod.tensorflow as hvd
import tensorflow as tf

from hvd_deepreduce.errors import UnsupportedOperationError
from hvd_deepreduce.probe import Probe
from hvd_deepreduce.tf import arrays
from hvd_deepreduce.tf.collectives import gather, node_name
from hvd_deepreduce.tf.host_coder import HostCoder
from hvd_deepreduce.tf.loss_scale import LossScale
from hvd_deepreduce.tf.native_coder import NativeCoder
from hvd_deepreduce.tf.parameters import HorovodCall
from hvd_deepreduce.tf.tensors import TensorState, TensorTable, compressible

if TYPE_CHECKING:
    from hvd_deepreduce.tf.session import Session

_TOLERANCE = 1e-5
Coder = HostCoder | NativeCoder


class Exchange:
    """See the module; one per traced call."""

    def __init__(
        self,
        session: Session,
        call: HorovodCall,
        table: TensorTable,
        coder: Coder,
        probe: Probe,
        min_numel: int,
        scale: LossScale,
        *,
        number: int,
    ):
        """`number` tells it from earlier ones of its graph: a step may compute gradients several times."""
        self.session = session
        self._gradients = call.gradients
        self._probe = probe
        self._factor = 1.0 if call.op == hvd.Sum else 1.0 / probe.size
        self._scale = scale
        self._number = number
        self._states: dict[int, TensorState] = {}
        """By place in the call."""
        for place, (gradient, variable) in enumerate(zip(call.gradients, call.variables, strict=True)):
            if gradient is not None and compressible(gradient, variable, min_numel):
                self._states[place] = table.state_of(gradient, variable, place)
        self._outputs, present = self._build(coder, call)
        self.complete = [present, *self._outputs.values()]
        """What the next of this graph has to wait for."""
        with tf.control_dependencies(self.complete):
            # Read from a variable: TensorFlow would reduce a constant once, and take the result for one ever after.
            self._handed = tf.identity(session.probe.read_value())

    def has(self, tensor: tf.Tensor) -> bool:
        """Whether a gradient is one of the call's."""
        return any(one is tensor for one in self._gradients)

    def hand_over(self, tensor: tf.Tensor) -> tf.Tensor:
        """What Horovod is to reduce in a gradient's place."""
        place = self._place_of(tensor)
        if place in self._states:
            return tf.identity(self._handed, name=self._node_name("probe", place))
        with self._outside(tensor), tf.control_dependencies([self._handed]):
            # Horovod cannot reduce bfloat16.
            dense = tf.cast(tensor, tf.float32) if tensor.dtype == tf.bfloat16 else tensor
            return tf.identity(dense, name=self._node_name("dense", place))

    def take_back(self, tensor: tf.Tensor, reduced: tf.Tensor) -> tf.Tensor:
        """What a gradient became, given what Horovod made of what it was handed."""
        place = self._place_of(tensor)
        if place not in self._states:
            return tf.cast(reduced, tensor.dtype)
        expected = tf.constant([self._factor * value for value in self._probe.sums], tf.float32)
        as_expected = tf.reduce_all(tf.abs(reduced - expected) <= _TOLERANCE * tf.abs(expected))
        spec = self._states[place].spec

        def result() -> tf.Tensor:
            return arrays.from_flat(self._outputs[place], spec, tensor.dtype, self._scale.value)

        def refuse() -> tf.Tensor:
            refuse = partial(self._refuse, spec.name)
            return tf.ensure_shape(tf.numpy_function(refuse, [reduced], tensor.dtype, stateful=False), spec.shape)

        return tf.cond(as_expected, result, refuse)

    def _build(self, coder: Coder, call: HorovodCall) -> tuple[dict[int, tf.Tensor], tf.Tensor]:
        buckets: dict[int, dict[int, int]] = {}
        for place, state in self._states.items():
            buckets.setdefault(state.bucket, {})[state.member] = place
        # The time limit of a bucket counts from its encoding, which waits for no other rank.
        present = self.session.roll_call.call(call.gradients, call.variables, watched=bool(buckets))
        gathered, steps = {}, {}
        with tf.control_dependencies(coder.begin()):
            for number, members in sorted(buckets.items()):
                flats = {
                    member: arrays.to_flat(self._gradients[place], self._states[place].spec, self._scale.value)
                    for member, place in sorted(members.items())
                }
                bundle, steps[number] = coder.encode(number, flats, self._scale.trouble)
                with tf.control_dependencies([present]):
                    bundle = tf.identity(bundle)
                gathered[number] = gather(bundle, f"{self.session.name}.bucket.{number}", self.session.process_set)
        outputs: dict[int, tf.Tensor] = {}
        with tf.control_dependencies(list(gathered.values())):
            for number, members in sorted(buckets.items()):
                decoded = coder.decode(number, sorted(members), gathered[number], steps[number], self._factor)
                outputs |= {members[member]: flat for member, flat in decoded.items()}
        return outputs, present

    def _refuse(self, tensor: str, reduced: Any) -> NoReturn:
        factor = self._probe.factor(reduced.tolist())  # raises for what is neither sum nor average
        raise UnsupportedOperationError(
            f"tensor {tensor!r}: Horovod multiplied the sum by {factor:.6g}, and not by {self._factor:.6g} as its own "
            "op= said: this version of Horovod is unknown to DeepReduce"
        )

    def _place_of(self, tensor: tf.Tensor) -> int:
        [place] = [place for place, one in enumerate(self._gradients) if one is tensor][:1]
        return place

    def _node_name(self, what: str, place: int) -> str:
        # Those of several exchanges may be under way at once.
        number = f".{self._number}" if self._number else ""
        return node_name(f"{self.session.name}.{what}.{place}{number}")

    @staticmethod
    def _outside(tensor: tf.Tensor) -> Any:
        return tensor.graph.as_default() if hasattr(tensor, "graph") else tf.name_scope("deepreduce")
