"""The last pods that were evicted, by preemption, a drain or a lost node, and where they went.

A pod that is evicted has the condition DisruptionTarget when it ends. The next pod of its
controller that gets a node is taken for its replacement: together they are a move.
"""

from collections import OrderedDict
from typing import Final

import msgspec

from kubestow.api.meta import object_ref
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, first_condition, is_terminating, priority_of

EVICTIONS_MAX: Final = 500
_CONDITION: Final = "DisruptionTarget"
MESSAGE_LENGTH_MAX: Final = 400


class LoggedEviction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One pod.

    time          milliseconds since 1970
    node          where it was
    reason        of its condition, such as PreemptionByScheduler
    replacement   the pod that came for it, with its node; empty as long as none did
    """

    id: int
    time: int
    pod: str
    node: str
    priority: int
    reason: str
    message: str
    replacement: str = ""
    to_node: str = ""


class EvictionLog:
    def __init__(self) -> None:
        # By the UID of the pod, in the order in which they began.
        self._evictions: OrderedDict[str, LoggedEviction] = OrderedDict()
        # UIDs of evicted pods by that of their controller, as long as they have no replacement.
        self._open: dict[str, list[str]] = {}
        self._count = 0

    def newest_first(self) -> tuple[LoggedEviction, ...]:
        return tuple(reversed(self._evictions.values()))

    def pod_changed(self, old: Pod | None, new: Pod | None, time_ms: int) -> None:
        """Note what the change of a pod means, if it means anything."""
        pod = new or old
        assert pod is not None
        if pod.spec.node_name and (new is None or is_terminating(new)):
            self._ended(pod, time_ms)
        elif new is not None and new.spec.node_name and (old is None or not old.spec.node_name):
            self._placed(new)

    def _ended(self, pod: Pod, time_ms: int) -> None:
        condition = first_condition(pod.status.conditions, _CONDITION)
        uid = pod.metadata.uid
        if condition is None or condition.status != "True" or uid in self._evictions:
            return
        self._count += 1
        self._evictions[uid] = LoggedEviction(
            id=self._count,
            time=time_ms,
            pod=object_ref(pod.metadata),
            node=pod.spec.node_name,
            priority=priority_of(pod),
            reason=condition.reason,
            message=condition.message[:MESSAGE_LENGTH_MAX],
        )
        owner = controller_of(pod)
        if owner is not None:
            self._open.setdefault(owner.uid, []).append(uid)
        if len(self._evictions) > EVICTIONS_MAX:
            self._drop_oldest()

    def _placed(self, pod: Pod) -> None:
        owner = controller_of(pod)
        waiting = None if owner is None else self._open.get(owner.uid)
        if owner is None or not waiting:
            return
        uid = waiting.pop(0)
        if not waiting:
            del self._open[owner.uid]
        self._evictions[uid] = msgspec.structs.replace(
            self._evictions[uid],
            replacement=object_ref(pod.metadata),
            to_node=pod.spec.node_name,
        )

    def _drop_oldest(self) -> None:
        uid, _ = self._evictions.popitem(last=False)
        for owner, waiting in list(self._open.items()):
            if uid in waiting:
                waiting.remove(uid)
                if not waiting:
                    del self._open[owner]
