"""Which pods are nominated to which node (spec 02 §11).

A pod that preempted others gets a nominated node and comes back to the queue. Until it is placed,
filters of other pods count its requests there. The nomination is here before the API shows it.

Not here: what a nomination means for filters (`framework`), when it is made (`engine`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo

# Finds the newest known version of a pod: (namespace, name) -> pod, None if there is none.
PodLister = Callable[[str, str], Pod | None]


class Nominator:
    """Nominated pods per node in the order of nomination.

    `find` gives a waiting pod of the queue's containers by key.
    """

    def __init__(self, *, find: Callable[[str], PodInfo | None], pod_lister: PodLister) -> None:
        self._find = find
        self._pod_lister = pod_lister
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, _Nominated]] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def nominated_nodes(self) -> Sequence[str]:
        """The nodes that have nominated pods; "" is among them after an empty override."""
        return list(self._pods_on)

    def add(self, pod: Pod, *, override: str | None = None) -> None:
        """Record the pod's nomination.

        `override` is the result of an attempt, "" to clear; without it the pod's own status counts.
        A pod that is deleted or bound meanwhile gets no nomination.
        """
        self.delete(pod)
        node_name = pod.status.nominated_node_name if override is None else override
        if override is None and not node_name:
            return
        meta = pod.metadata
        newest = self._pod_lister(meta.namespace, meta.name)
        if newest is None or newest.spec.node_name:
            return
        # An empty override is recorded, too, so that `update` keeps it while the API still shows
        # no nomination.
        self._put(pod, node_name)

    def update(self, old: Pod, new: Pod) -> None:
        """Replace the pod by a newer version; it goes to the end of its node's list."""
        override = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            # The update does not concern the nomination, which the status may not show yet.
            override = self._node_of.get(old.metadata.uid)
        self.delete(old)
        self.add(new, override=override)

    def _put(self, pod: Pod, node_name: str) -> None:
        meta = pod.metadata
        self._node_of[meta.uid] = node_name
        self._pods_on.setdefault(node_name, {})[meta.uid] = _Nominated(meta.namespace, meta.name)

    def delete(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        nominated = self._pods_on[node_name]
        del nominated[uid]
        if not nominated:
            del self._pods_on[node_name]

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        """The queue's own records of the pods nominated to the node: valid until the next `await`.

        For a pod in no container (in flight, or just bound) only the name is known: it has priority
        0 and no requests.
        """
        nominated = self._pods_on.get(node_name)
        if nominated is None:
            return ()
        return [
            self._find(f"{namespace}/{name}") or _stub(namespace, name, uid)
            for uid, (namespace, name) in nominated.items()
        ]


class _Nominated(NamedTuple):
    namespace: str
    name: str


def _stub(namespace: str, name: str, uid: str) -> PodInfo:
    return PodInfo(Pod(metadata=ObjectMeta(namespace=namespace, name=name, uid=uid)))
