"""The object that a person edits to change a pod: the workload that its owner references lead to.

A pod of a Deployment belongs to a ReplicaSet, which belongs to the Deployment; one of a CronJob to
a Job. Kinds that are not known are named, but where their template is cannot be said. An API server
accepts any text in an owner reference: what is no name of an object is part of no command.
"""

import re
from typing import Final

from kubestow.api.meta import OwnerReference
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.explain.cluster import Origin, StillCluster, key_of

_HASH_LABEL: Final = "pod-template-hash"
_TEMPLATE: Final = "/spec/template"
_NAME: Final = re.compile(r"[a-z0-9][-a-z0-9.]*")
# Where the template of pods is in each kind.
TEMPLATES: Final = {
    "CronJob": "/spec/jobTemplate/spec/template",
    "DaemonSet": _TEMPLATE,
    "Deployment": _TEMPLATE,
    "Job": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
}


def origin_of(cluster: StillCluster, pod: Pod) -> Origin | None:
    """The workload of a pod, with an empty path if it is of a kind that is not known; None for a
    pod without one."""
    made = cluster.origins.get(key_of(pod))
    if made is not None:
        upper = cluster.job_owners.get((made.namespace, made.name)) if made.kind == "Job" else None
        return made if upper is None else _origin(upper, made.namespace)
    owner = controller_of(pod)
    if owner is None or owner.kind == "Node":
        return None
    upper = _upper(cluster, pod, owner)
    if upper is not None:
        owner = upper
    return _origin(owner, pod.metadata.namespace)


def _origin(owner: OwnerReference, namespace: str) -> Origin:
    path = TEMPLATES.get(owner.kind, "") if is_object_name(owner) else ""
    return Origin(owner.api_version, owner.kind, namespace, owner.name, path)


def is_object_name(owner: OwnerReference) -> bool:
    """Whether an object can have this name, and a kind this group."""
    group = owner.api_version.rpartition("/")[0]
    return all(_NAME.fullmatch(text) for text in (owner.name, group or "core"))


def _upper(cluster: StillCluster, pod: Pod, owner: OwnerReference) -> OwnerReference | None:
    """The owner of the owner, if there is one."""
    namespace = pod.metadata.namespace
    if owner.kind == "Job":
        return cluster.job_owners.get((namespace, owner.name))
    if owner.kind != "ReplicaSet":
        return None
    replica_set = cluster.objects.replica_sets.get(namespace, owner.name)
    upper = None if replica_set is None else controller_of(replica_set)
    if upper is not None:
        return upper
    # Not listed, or made of files: a Deployment gives its ReplicaSets a suffix, and the pods a
    # label with it.
    name, _, suffix = owner.name.rpartition("-")
    if name and suffix == pod.metadata.labels.get(_HASH_LABEL):
        return OwnerReference(api_version="apps/v1", kind="Deployment", name=name, controller=True)
    return None
