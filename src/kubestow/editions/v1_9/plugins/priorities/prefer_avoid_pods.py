"""NodePreferAvoidPodsPriority: a node may name controllers to avoid (spec 05 §13, §18)."""

from typing import Final

import msgspec
import numpy as np

from kubestow.api.meta import Object, OwnerReference
from kubestow.api.node import Node
from kubestow.api.owners import controller_of
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.index.nodes import Nodes

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDABLE_KINDS: Final = ("ReplicationController", "ReplicaSet")


class _PodSignature(Object, frozen=True, kw_only=True):
    pod_controller: OwnerReference | None = None


class _AvoidEntry(Object, frozen=True, kw_only=True):
    pod_signature: _PodSignature = _PodSignature()


class _Avoided(Object, frozen=True, kw_only=True):
    prefer_avoid_pods: tuple[_AvoidEntry, ...] = ()


_DECODER: Final = msgspec.json.Decoder(_Avoided)


class NodePreferAvoidPodsPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        owner = controller_of(attempt.pod.pod)
        if owner is None or owner.kind not in AVOIDABLE_KINDS:
            return np.full(len(nodes), MAX_PRIORITY, np.int64)
        kind, uid = owner.kind, owner.uid

        def compute(nodes: Nodes) -> IntArray:
            return np.array(
                [0 if avoids(node, kind, uid) else MAX_PRIORITY for node in nodes.node_objects()],
                np.int64,
            )

        return nodes.tracked(("v1.9 avoided", kind, uid), Depends.NODE, compute)


def avoids(node: Node, kind: str, uid: str) -> bool:
    text = node.metadata.annotations.get(ANNOTATION)
    if not text:
        return False
    try:
        avoided = _DECODER.decode(text)
    except msgspec.DecodeError:
        return False  # An invalid annotation has no effect.
    controllers = (entry.pod_signature.pod_controller for entry in avoided.prefer_avoid_pods)
    return any(
        controller is not None and controller.kind == kind and controller.uid == uid
        for controller in controllers
    )
