"""The kubectl commands that carry out a change, and what doing so causes.

An API server refuses to change most fields of some kinds: then the object is deleted and made
again, in one command. What admission and controllers add to pods (tolerations of nodes that are not
ready) is left out of templates.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.node import Node
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.api.taints import UNSCHEDULABLE_TAINT, taint_text
from kubestow.cluster.documents import is_list, is_object
from kubestow.explain.cluster import Origin, StillCluster
from kubestow.explain.explanation import ObjectPatch
from kubestow.explain.suggestions.owners import is_object_name
from kubestow.explain.suggestions.remedy import Remedy
from kubestow.plural import counted

_REMADE: Final = frozenset(
    ("Job", "PersistentVolume", "PersistentVolumeClaim", "ResourceClaim", "ResourceClaimTemplate")
)
_DEFAULTED_KEYS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_DEFAULTED_SECONDS: Final = 300
_OF_DAEMONS: Final = "node.kubernetes.io/"
# What a server has put into a Job; it would refuse them in a new one.
_JOB_LABELS: Final = ("batch.kubernetes.io~1controller-uid", "controller-uid")


def commands_of(
    cluster: StillCluster, change: Remedy, patches: Sequence[ObjectPatch]
) -> tuple[str, ...]:
    """The commands, in the order in which to run them."""
    changed_nodes = {
        new.metadata.name: new
        for new in change.objects
        if isinstance(new, Node) and cluster.find(new) is not None
    }
    found: list[str] = []
    for patch in patches:
        operation = patch.patch[0]
        if operation["path"] == "" and operation["op"] == "add":
            found.append(f"kubectl create -f - <<'EOF'\n{_json(operation['value'])}\nEOF")
        elif patch.kind == "Node" and patch.name in changed_nodes:
            found += _node_commands(cluster, changed_nodes[patch.name], patch)
        elif operation["path"] != "":
            found += _patch_commands(cluster, change, patch)
    return (*found, *_deletions(change.removed))


def move_commands(cluster: StillCluster, change: Remedy) -> tuple[str, ...]:
    """The commands that move one pod: its node is cordoned until the new one has another.

    A node that is cordoned already stays so.
    """
    (victim,) = change.removed
    assert isinstance(victim, Pod)
    node, name = shlex.quote(victim.spec.node_name), shlex.quote(victim.metadata.name)
    pods = f"pod -n {shlex.quote(victim.metadata.namespace)}"
    owner = controller_of(victim)
    if owner is not None and owner.kind == "StatefulSet":
        awaited = (
            f"kubectl wait --for=create {pods} {name} --timeout=60s",
            f"kubectl wait --for=condition=PodScheduled {pods} {name} --timeout=60s",
        )
    else:
        # Its replacement is made when the deletion begins; the waiting pod must not be awaited.
        labels = victim.metadata.labels
        chosen = shlex.quote(",".join(f"{key}={value}" for key, value in labels.items()))
        awaited = (f"kubectl wait --for=condition=PodScheduled {pods} -l {chosen} --timeout=60s",)
        if not labels or labels.items() <= change.pod.metadata.labels.items():
            awaited = ()
    deleted = (f"kubectl delete {pods} {name}", *awaited)
    found = cluster.objects.nodes.get(victim.spec.node_name)
    if found is not None and found.spec.unschedulable:
        return deleted
    return (f"kubectl cordon {node}", *deleted, f"kubectl uncordon {node}")


def effect_of(cluster: StillCluster, change: Remedy, origin: Origin | None) -> str:
    """What applying a change of the pod causes; empty if nothing else."""
    old = cluster.find(change.pod)
    if old == change.pod or old is None:
        return ""
    if origin is None:
        in_place = is_in_place(old, change.pod)
        return "" if in_place else "the pod is deleted and made again"
    name = f"{origin.kind} {origin.name}"
    pods = counted(_sibling_count(cluster, change.pod), "pod")
    match origin.kind:
        case "Deployment":
            return f"{name} replaces its {pods}, a few at a time"
        case "DaemonSet":
            return f"{name} replaces its {pods}, node by node"
        case "StatefulSet":
            return f"{name} replaces its {pods}, the last first; a pod that waits is deleted first"
        case "Job":
            return f"{name} is deleted with its {pods} and made again"
        case "CronJob":
            job = _job_of(change.pod)
            deleted = f"Job {job} is deleted with its {pods}; " if job else ""
            return f"{deleted}it holds from the next run of {name} on"
        case _:
            return f"it is for new pods of {name}; {change.pod.metadata.name} has to be deleted"


def template_operations(origin: Origin, operations: Iterable[JsonObject]) -> list[JsonObject]:
    """Operations on a pod as those on its template, without what was added to the pod."""
    return [
        {**each, "path": f"{origin.path}{each['path']}", **_cleaned(origin.kind, each)}
        for each in operations
    ]


def is_in_place(old: Pod, new: Pod) -> bool:
    """Whether an API server accepts the change of a pod: more tolerations, fewer gates."""
    kept = msgspec.structs.replace(
        new.spec,
        tolerations=old.spec.tolerations,
        scheduling_gates=old.spec.scheduling_gates,
    )
    before, after = old.spec.tolerations, new.spec.tolerations
    return kept == old.spec and after[: len(before)] == before


# --- nodes ---


def _node_commands(cluster: StillCluster, new: Node, patch: ObjectPatch) -> Iterator[str]:
    old = cluster.find(new)
    assert old is not None
    name = shlex.quote(new.metadata.name)
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield f"kubectl uncordon {name}"
    for taint in old.spec.taints:
        if taint not in new.spec.taints and taint.key != UNSCHEDULABLE_TAINT.key:
            yield f"kubectl taint nodes {name} {shlex.quote(taint_text(taint) + '-')}"
    for key, value in new.metadata.labels.items():
        if old.metadata.labels.get(key) != value and not key.startswith("-"):
            yield f"kubectl label nodes {name} {shlex.quote(f'{key}={value}')}"
    status = [each for each in patch.patch if each["path"].startswith("/status/")]
    if status:
        text = shlex.quote(_json(status))
        yield f"kubectl patch node {name} --subresource=status --type=json -p {text}"


# --- other objects ---


def _patch_commands(cluster: StillCluster, change: Remedy, patch: ObjectPatch) -> Iterator[str]:
    where = _where(patch)
    operations: list[JsonObject] = list(patch.patch)
    is_remade = patch.kind in _REMADE
    if patch.kind == "Pod":
        old = cluster.find(change.pod)
        assert old is not None
        is_remade = not is_in_place(old, change.pod)
        if not is_remade:
            operations = _appended(old, change.pod, operations)
    if patch.kind == "Job":
        operations += _without_server_fields()
    text = shlex.quote(_json(operations))
    if not is_remade:
        yield f"kubectl patch {where} --type=json -p {text}"
    else:
        yield (
            f"kubectl get {where} -o json | kubectl patch --local -f - --type=json -p {text} "
            f"-o json | kubectl replace --force -f -"
        )
    if patch.kind in ("ReplicaSet", "ReplicationController", "StatefulSet"):
        yield from _deletions((change.pod,))
    # Its pod would wait on, and where a CronJob forbids two at a time no other one would begin.
    if patch.kind == "CronJob" and (job := _job_of(change.pod)):
        yield f"kubectl delete job -n {shlex.quote(patch.namespace)} {shlex.quote(job)}"


def _appended(old: Pod, new: Pod, operations: Iterable[JsonObject]) -> list[JsonObject]:
    """Tolerations at the end of the list: a server refuses to replace it."""
    if not old.spec.tolerations or new.spec.tolerations == old.spec.tolerations:
        return list(operations)
    path = "/spec/tolerations"
    others = [each for each in operations if not each["path"].startswith(path)]
    added = new.spec.tolerations[len(old.spec.tolerations) :]
    return [
        *others,
        *({"op": "add", "path": f"{path}/-", "value": _plain(each)} for each in added),
    ]


def _without_server_fields() -> list[JsonObject]:
    labels = "/spec/template/metadata/labels"
    return [
        {"op": "remove", "path": "/spec/selector"},
        *({"op": "remove", "path": f"{labels}/{key}"} for key in _JOB_LABELS),
    ]


def _job_of(pod: Pod) -> str:
    """The name of the Job that the pod is of; "" if it is of none."""
    owner = controller_of(pod)
    return "" if owner is None or owner.kind != "Job" or not is_object_name(owner) else owner.name


def _deletions(removed: Iterable[ApiObject]) -> Iterator[str]:
    by_namespace: dict[str, list[str]] = {}
    for each in removed:
        by_namespace.setdefault(each.metadata.namespace, []).append(each.metadata.name)
    for namespace, names in by_namespace.items():
        yield f"kubectl delete pod -n {shlex.quote(namespace)} {' '.join(map(shlex.quote, names))}"


def _where(patch: ObjectPatch) -> str:
    group = patch.api_version.rpartition("/")[0]
    kind = patch.kind.lower()
    # With its group, for kinds that others may have as well.
    kind = f"{kind}.{group}" if "." in group else kind
    namespace = f" -n {shlex.quote(patch.namespace)}" if patch.namespace else ""
    return f"{shlex.quote(kind)} {shlex.quote(patch.name)}{namespace}"


# --- templates ---


def _cleaned(kind: str, operation: JsonObject) -> JsonObject:
    """The value of an operation without tolerations that the pod was given."""
    value = operation.get("value")
    if not operation["path"].endswith("/tolerations") or not is_list(value):
        return {}
    return {"value": [each for each in value if not _is_given(kind, each)]}


def _is_given(kind: str, toleration: object) -> bool:
    if not is_object(toleration) or toleration.get("operator") != "Exists":
        return False
    key: str = toleration.get("key", "")
    if kind == "DaemonSet" and key.startswith(_OF_DAEMONS):
        return True
    return key in _DEFAULTED_KEYS and toleration.get("tolerationSeconds") == _DEFAULTED_SECONDS


def _sibling_count(cluster: StillCluster, pod: Pod) -> int:
    owners = {each.uid for each in pod.metadata.owner_references if each.controller}
    pods = cluster.objects.pods.list_namespace(pod.metadata.namespace)
    return sum(
        each.metadata.name == pod.metadata.name
        or any(ref.controller and ref.uid in owners for ref in each.metadata.owner_references)
        for each in pods
    )


def _plain(value: object) -> JsonObject:
    return {key: each for key, each in msgspec.to_builtins(value).items() if each not in ("", None)}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
