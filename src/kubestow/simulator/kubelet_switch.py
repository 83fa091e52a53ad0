"""How a node is made to fail: an annotation stops its simulated kubelet.

    kubectl annotate node node-0 kubestow.io/kubelet=stopped      the node is lost
    kubectl annotate node node-0 kubestow.io/kubelet-             and comes back

A stopped kubelet renews no lease and neither starts nor ends pods, as if the machine had no power.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, value_at

KUBELET: Final = "kubestow.io/kubelet"
STOPPED: Final = "stopped"


def is_stopped(node: JsonObject) -> bool:
    return as_object(value_at(node, "metadata", "annotations")).get(KUBELET) == STOPPED
