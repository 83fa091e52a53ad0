"""Nodes that name controllers whose pods they want to avoid (spec 05 §13, §18)."""

from typing import Final

import msgspec

from kubestow.api.meta import Object, OwnerReference
from kubestow.api.node import Node

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDABLE_KINDS: Final = ("ReplicationController", "ReplicaSet")


class _PodSignature(Object, frozen=True, kw_only=True):
    pod_controller: OwnerReference | None = None


class _AvoidEntry(Object, frozen=True, kw_only=True):
    pod_signature: _PodSignature = _PodSignature()


class _Avoided(Object, frozen=True, kw_only=True):
    prefer_avoid_pods: tuple[_AvoidEntry, ...] = ()


_DECODER: Final = msgspec.json.Decoder(_Avoided)


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
