"""Which pods are siblings: pods of one workload are expected to use about the same."""

from typing import Final

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod

# A Deployment has a ReplicaSet for each version of its pods, named after the version's hash.
_HASH_LABEL: Final = "pod-template-hash"


def workload_of(pod: Pod) -> str:
    """`namespace/kind/name` of the pod's controller; "" if it has none.

    The ReplicaSets of one Deployment are one workload, so that pods of a new version are
    estimated by those of the version before. Jobs of a CronJob are not: the Job's name has no part
    that is known to be that of the CronJob.
    """
    controller = controller_of(pod)
    if controller is None:
        return ""
    kind, name = controller.kind, controller.name
    version = pod.metadata.labels.get(_HASH_LABEL, "")
    if kind == "ReplicaSet" and version and name.endswith(f"-{version}"):
        kind, name = "Deployment", name[: -len(version) - 1]
    return f"{pod.metadata.namespace}/{kind}/{name}"
