"""Rejects nodes on which a requested host port is in use (spec 05 §5.3)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.ports import HostPort, UsedPorts, host_ports
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFilterResult
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases

_TAKEN: Final = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")
_PRE_FILTER: Final = "PreFilterNodePorts"
# Up to this many ports each has an array of its own, since other pods request it too.
PORTS_BY_THEMSELVES_MAX: Final = 8


class NodePorts:
    name: ClassVar[str] = "NodePorts"
    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.PODS, pod=PodReads.SPEC, basis=bases.host_ports)

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def events(self) -> Registrations:
        return [
            on(Resource.POD, Action.DELETE, _hint_for_deleted_pod),
            on(Resource.NODE, Action.ADD),
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        wanted = pod.host_ports
        if not wanted:
            return Status.skip()
        state.write(_PRE_FILTER, wanted)
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        wanted = wanted_ports(state)
        if len(wanted) > PORTS_BY_THEMSELVES_MAX:
            ports = UsedPorts(wanted)
            used = [info.used_ports.overlaps(ports) for info in nodes.infos()]
            return np.array(used, np.int64) if any(used) else None
        taken = _is_taken(nodes, wanted[0])
        for port in wanted[1:]:
            taken = taken | _is_taken(nodes, port)
        return taken.astype(np.int64) if taken.any() else None

    def sign_pod(self, pod: PodInfo) -> Fragments:
        """The numbers alone, of all init containers as well."""
        spec = pod.pod.spec
        numbers = {
            port.host_port
            for container in (*spec.containers, *spec.init_containers)
            for port in container.ports
        }
        return {"v1.Pod.Spec.HostPorts()": numbers - {0}}

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _TAKEN


def wanted_ports(state: CycleState) -> tuple[HostPort, ...]:
    """What PreFilter stored."""
    wanted: tuple[HostPort, ...] | None = state.get(_PRE_FILTER)
    if wanted is None:
        raise PluginError(f'reading "{_PRE_FILTER}" from cycleState: not found')
    return wanted


def _is_taken(nodes: Nodes, port: HostPort) -> BoolArray:
    """bool[node]: where the port is in use."""

    def compute(nodes: Nodes) -> BoolArray:
        taken = np.zeros(len(nodes), np.bool_)
        # Few pods use host ports: the others' nodes are looked at once for all ports.
        places = nodes.tracked("host ports", Depends.COUNTS, _has_ports).nonzero()[0]
        infos = nodes.infos()
        taken[places] = [infos[place].used_ports.conflicts(port) for place in places.tolist()]
        return taken

    return nodes.tracked(("host port", port), Depends.COUNTS, compute)


def _has_ports(nodes: Nodes) -> BoolArray:
    """bool[node]: where a host port is in use."""
    used = np.zeros(len(nodes), np.bool_)
    places = nodes.pod_count.nonzero()[0]
    infos = nodes.infos()
    used[places] = [bool(infos[place].used_ports) for place in places.tolist()]
    return used


def _hint_for_deleted_pod(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return Hint.SKIP
    freed = host_ports(old)
    if not freed:
        return Hint.SKIP
    is_wanted = UsedPorts(freed).overlaps(UsedPorts(host_ports(pod)))
    return Hint.QUEUE if is_wanted else Hint.SKIP
