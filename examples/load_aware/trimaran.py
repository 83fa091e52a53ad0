"""A plain reading of Trimaran's TargetLoadPacking, to compare with: one node at a time.

It fills nodes up to a target share of their CPU, as measured; beyond it nodes score less, the more
they use. Pods that were placed too late to be in the measurement are added by a prediction: their
CPU limits, else 1.5 times their requests, else one core. A node without a measurement gets 0.
"""

import math
from collections import deque
from typing import ClassVar, Final, NamedTuple

from kubestow.api.quantity import ZERO, Quantity
from kubestow.plugin import Handle, Node, NodeScore, PluginArgs, Pod

# A pod is taken as not measured until this long after it got its node.
REPORTING_S: Final = 60.0
# Pods that got their node earlier are not looked at again.
KEPT_S: Final = 300.0


class TargetLoadPackingArgs(PluginArgs, frozen=True, kw_only=True):
    target_utilization: int = 40
    default_requests_multiplier: float = 1.5
    default_request_milli: int = 1000


class _Placed(NamedTuple):
    uid: str
    time_s: float
    milli: int


class TargetLoadPacking(NodeScore):
    name: ClassVar[str] = "TargetLoadPacking"
    args_type: ClassVar[type[PluginArgs] | None] = TargetLoadPackingArgs

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._placed: dict[str, deque[_Placed]] = {}
        handle.objects.pods.subscribe(self._after_pod)

    def score_node(self, pod: Pod, node: Node) -> int:
        measured = self._measured(node.metadata.name)
        capacity = _milli(node.status.capacity.get("cpu", ZERO))
        if measured is None or capacity == 0:
            return 0
        used, time_s = measured
        missing = self._missing(node.metadata.name, time_s)
        return packed_score(
            100 * (used + self._predicted(pod) + missing) / capacity, self._args.target_utilization
        )

    def _measured(self, name: str) -> tuple[int, float] | None:
        """The CPU that the node used, and when that was measured."""
        usage = self._handle.usage
        slot = -1 if usage is None else int(usage.slots_of([name])[0])
        if usage is None or slot < 0:
            return None
        return int(usage.nodes.latest[0, slot]), int(usage.nodes.time_ns[slot]) / 1e9

    def _missing(self, name: str, measured_s: float) -> int:
        placed = self._placed.get(name, ())
        return sum(each.milli for each in placed if measured_s - each.time_s < REPORTING_S)

    def _predicted(self, pod: Pod) -> int:
        total = _milli((pod.spec.overhead or {}).get("cpu", ZERO))
        for container in pod.spec.containers:
            limits, requests = container.resources.limits or {}, container.resources.requests or {}
            if "cpu" in limits:
                total += _milli(limits["cpu"])
            elif "cpu" in requests:
                total += round(_milli(requests["cpu"]) * self._args.default_requests_multiplier)
            else:
                total += self._args.default_request_milli
        return total

    def _after_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Keep pods that got a node, and forget those that are gone."""
        if new is None:
            assert old is not None
            own = self._placed.get(old.spec.node_name)
            if own is not None:
                kept = (each for each in own if each.uid != old.metadata.uid)
                self._placed[old.spec.node_name] = deque(kept)
        elif new.spec.node_name and (old is None or not old.spec.node_name):
            now_s = self._handle.clock.now_ns() / 1e9
            own = self._placed.setdefault(new.spec.node_name, deque())
            while own and now_s - own[0].time_s > KEPT_S:
                own.popleft()
            own.append(_Placed(new.metadata.uid, now_s, self._predicted(new)))


def packed_score(percent: float, target: int) -> int:
    """0 to 100: highest where the node would use the target."""
    if percent > 100:
        return 0
    if percent > target:
        return math.floor(target * (100 - percent) / (100 - target) + 0.5)
    return math.floor((100 - target) * percent / target + target + 0.5)


def _milli(quantity: Quantity) -> int:
    return quantity.milli_value()
