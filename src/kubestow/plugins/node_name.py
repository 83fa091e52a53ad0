"""Rejects all other nodes for a pod that names its node (spec 05 §5.1)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.node_match import name_matches
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases

_OTHER_NODE: Final = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName:
    name: ClassVar[str] = "NodeName"
    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE, pod=PodReads.SPEC, basis=bases.named_node)

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def events(self) -> Registrations:
        return [on(Resource.NODE, Action.ADD)]

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        wanted = pod.pod.spec.node_name
        return (~name_matches(nodes, wanted)).astype(np.int64) if wanted else None

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return {"v1.Pod.Spec.NodeName": pod.pod.spec.node_name}

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _OTHER_NODE
