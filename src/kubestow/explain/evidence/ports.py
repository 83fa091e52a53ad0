"""Which pod has a host port that this one asks for (NodePorts)."""

from kubestow.api.ports import UsedPorts
from kubestow.explain.evidence.context import NodeView
from kubestow.explain.evidence.facts import Port


def taken_ports(view: NodeView, _: str) -> list[Port]:
    found: list[Port] = []
    for wanted in dict.fromkeys(view.pod.host_ports):
        holder = next(
            (pod for pod in view.info.pods if UsedPorts(pod.host_ports).conflicts(wanted)), None
        )
        if holder is not None:
            found.append(
                Port(port=wanted.port, protocol=wanted.protocol, ip=wanted.ip, pod=holder.key)
            )
    return found
