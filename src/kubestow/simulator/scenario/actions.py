"""What a scenario does to a cluster: nodes close, fail, come and go; workloads are scaled.

Actions write to the API as an administrator does, and the controllers do the rest: a node whose
kubelet stops is marked as lost after a while, gets taints, and loses its pods.

An action on nodes returns the nodes it changed, so that what it did can be undone for these.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.files import Document
from kubestow.api.labels import Selector
from kubestow.api.meta import JsonObject
from kubestow.apiserver.eviction import TOO_MANY_REQUESTS
from kubestow.apiserver.memory import LOADED_FIRST, MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object, objects_in, value_at
from kubestow.cluster.resources import NODES, PODS, ApiResource
from kubestow.errors import ApiError, ConflictError, InputError, NotFoundError
from kubestow.plural import counted
from kubestow.simulator.controllers.owner_controller import controller_reference
from kubestow.simulator.kubelet_switch import KUBELET, STOPPED, is_stopped
from kubestow.simulator.pod_owner import controllers_above
from kubestow.simulator.scenario.source import near
from kubestow.simulator.scenario.world import ScenarioWorld

# How long a drain waits before it evicts a pod again whose budget allowed no disruption.
DRAIN_RETRY_S: Final = 5.0
# How long a node is away for an upgrade, and how often it is checked whether it is empty.
UPGRADE_S: Final = 120.0
UPGRADE_CHECK_S: Final = 5.0
_MIRROR: Final = "kubernetes.io/config.mirror"


class NodeTarget(NamedTuple):
    """The nodes an action is about."""

    name: str | None = None
    selector: Selector | None = None
    random: int | None = None
    # The selector as it is written.
    text: str = ""

    def choose(
        self,
        world: ScenarioWorld,
        rng: np.random.Generator,
        is_meant: Callable[[StoredObject], bool],
    ) -> list[StoredObject]:
        """The nodes, by name; of those that `is_meant`, if they are not named.

        InputError if there is none of that name, or none with these labels; of some at random
        there may be none left.
        """
        if self.name is not None:
            return [_node(world, self.name)]
        nodes = sorted(world.store.objects_of(NODES), key=lambda stored: stored.name)
        matching = [node for node in nodes if self._matches(node)]
        if not matching and self.text and self.random is None:
            raise InputError(f"no node has the labels {self.text} then")
        chosen = [node for node in matching if is_meant(node)]
        if self.random is None or self.random >= len(chosen):
            return chosen
        indexes: list[int] = sorted(rng.choice(len(chosen), self.random, replace=False).tolist())
        return [chosen[index] for index in indexes]

    def _matches(self, node: StoredObject) -> bool:
        labels = as_object(node.metadata.get("labels"))
        return self.selector is None or self.selector.matches(labels)


def _node(world: ScenarioWorld, name: str) -> StoredObject:
    found = world.store.find(NODES, "", name)
    if found is None:
        names = [stored.name for stored in world.store.objects_of(NODES)]
        raise InputError(f'there is no node "{name}" then{near(name, names)}')
    return found


# Changes one node; called with its name again to undo.
NodeChange = Callable[[ScenarioWorld, str], None]


class NodeAction(NamedTuple):
    """One kind of change of nodes."""

    do: NodeChange
    # Whether a node that is not named can be chosen: one that is failed does not fail again.
    is_meant: Callable[[StoredObject], bool] = lambda node: True
    undo: NodeChange | None = None


# --- Nodes --------------------------------------------------------------------------------------


def cordon(world: ScenarioWorld, name: str) -> None:
    _patch_node(world, name, {"spec": {"unschedulable": True}})
    world.note("cordon", name)


def uncordon(world: ScenarioWorld, name: str) -> None:
    if world.store.find(NODES, "", name) is None:
        return  # It left meanwhile.
    _patch_node(world, name, {"spec": {"unschedulable": None}})
    world.note("uncordon", name)


def drain(world: ScenarioWorld, name: str) -> None:
    """As `kubectl drain --force --ignore-daemonsets`."""
    _patch_node(world, name, {"spec": {"unschedulable": True}})
    pods = [pod for pod in world.store.objects_of(PODS) if is_drained(pod, name)]
    world.note("drain", name, counted(len(pods), "pod"))
    for pod in pods:
        _evict(world, pod)


def is_drained(pod: StoredObject, node_name: str) -> bool:
    """Whether a drain of the node evicts the pod."""
    if value_at(pod.document, "spec", "nodeName") != node_name:
        return False
    owner = controller_reference(pod.document)
    is_daemon = owner is not None and owner.get("kind") == "DaemonSet"
    return not is_daemon and _MIRROR not in as_object(pod.metadata.get("annotations"))


def _evict(world: ScenarioWorld, pod: StoredObject) -> None:
    newest = world.store.find(PODS, *pod.key)
    if newest is None or newest.uid != pod.uid or "deletionTimestamp" in newest.metadata:
        return
    try:
        world.evict(newest)
    except (NotFoundError, ConflictError):
        return
    except ApiError as error:
        if error.code != TOO_MANY_REQUESTS:
            raise
        world.later(DRAIN_RETRY_S, partial(_evict, world, pod), is_work=True)


def upgrade(world: ScenarioWorld, nodes: Sequence[tuple[str, float]]) -> None:
    """Upgrade nodes one after the other; the numbers are the seconds that each is away.

    A node is drained, is away once it is empty, and is open again when it is back.
    """
    if not nodes:
        return
    (name, away_s), *rest = nodes
    world.note("upgrade", name)
    drain(world, name)
    world.later(UPGRADE_CHECK_S, partial(_restart, world, name, away_s, rest), is_work=True)


def _restart(
    world: ScenarioWorld, name: str, away_s: float, rest: Sequence[tuple[str, float]]
) -> None:
    if world.store.find(NODES, "", name) is None:
        upgrade(world, rest)
    elif any(is_drained(pod, name) for pod in world.store.objects_of(PODS)):
        again = partial(_restart, world, name, away_s, rest)
        world.later(UPGRADE_CHECK_S, again, is_work=True)
    else:
        fail(world, name)
        world.later(away_s, partial(_come_back, world, name, rest), is_work=True)


def _come_back(world: ScenarioWorld, name: str, rest: Sequence[tuple[str, float]]) -> None:
    repair(world, name)
    uncordon(world, name)
    upgrade(world, rest)


def fail(world: ScenarioWorld, name: str) -> None:
    """The machine loses power: its kubelet is silent."""
    _patch_node(world, name, {"metadata": {"annotations": {KUBELET: STOPPED}}})
    world.note("fail", name)


def repair(world: ScenarioWorld, name: str) -> None:
    if world.store.find(NODES, "", name) is None:
        return
    _patch_node(world, name, {"metadata": {"annotations": {KUBELET: None}}})
    world.note("repair", name)


def leave(world: ScenarioWorld, name: str) -> None:
    """The node is deleted; its pods follow (`pod_gc`)."""
    with suppress(NotFoundError):
        world.store.delete(NODES, "", name)
    world.note("leave", name)


def is_running(node: StoredObject) -> bool:
    return not is_stopped(node.document)


def is_failed(node: StoredObject) -> bool:
    return is_stopped(node.document)


def is_open(node: StoredObject) -> bool:
    return not value_at(node.document, "spec", "unschedulable")


def is_closed(node: StoredObject) -> bool:
    return not is_open(node)


def _patch_node(world: ScenarioWorld, name: str, patch: JsonObject) -> None:
    _node(world, name)
    world.store.patch(NODES, "", name, patch, "merge")


def taint(world: ScenarioWorld, name: str, *, taints: Sequence[JsonObject]) -> None:
    node = _node(world, name)
    added = {(one["key"], one["effect"]) for one in taints}
    kept = [one for one in _taints(node) if (one.get("key"), one.get("effect")) not in added]
    _patch_node(world, name, {"spec": {"taints": [*kept, *taints]}})
    world.note("taint", name, ", ".join(map(_taint_text, taints)))


def untaint(world: ScenarioWorld, name: str, *, taints: Sequence[JsonObject]) -> None:
    node = world.store.find(NODES, "", name)
    if node is None:
        return
    removed = {(one["key"], one["effect"]) for one in taints}
    kept = [one for one in _taints(node) if (one.get("key"), one.get("effect")) not in removed]
    _patch_node(world, name, {"spec": {"taints": kept or None}})
    world.note("untaint", name, ", ".join(map(_taint_text, taints)))


def _taints(node: StoredObject) -> list[JsonObject]:
    return objects_in(value_at(node.document, "spec", "taints"))


def _taint_text(taint: JsonObject) -> str:
    value = taint.get("value")
    return f"{taint['key']}{f'={value}' if value else ''}:{taint['effect']}"


# --- Pods ---------------------------------------------------------------------------------------


class PodTarget(NamedTuple):
    """The pods that a step or an expectation is about; without any field, all of them."""

    # As Kind/name, the kind of a controller or Pod.
    owner: str | None = None
    selector: Selector | None = None
    namespace: str | None = None
    # The selector as it is written.
    text: str = ""

    def choose(self, store: MemoryCluster) -> list[StoredObject]:
        """The pods, in the order of their creation."""
        return [pod for pod in store.objects_of(PODS) if self.matches(store, pod)]

    def matches(self, store: MemoryCluster, pod: StoredObject) -> bool:
        namespace, name = pod.key
        if self.namespace is not None and namespace != self.namespace:
            return False
        labels = as_object(pod.metadata.get("labels"))
        if self.selector is not None and not self.selector.matches(labels):
            return False
        if self.owner is None:
            return True
        above = controllers_above(store, pod.document, namespace)
        return self.owner == f"Pod/{name}" or any(each.name == self.owner for each in above)


def evict_pods(world: ScenarioWorld, target: PodTarget) -> None:
    """Evict pods as the eviction API does; those whose budget allows none are tried again."""
    pods = target.choose(world.store)
    if not pods:
        raise InputError("there are no such pods then")
    world.note("evict", target.owner or "pods", counted(len(pods), "pod"))
    for pod in pods:
        _evict(world, pod)


# --- Objects ------------------------------------------------------------------------------------


def join(world: ScenarioWorld, nodes: Sequence[JsonObject]) -> None:
    for node in nodes:
        name: str = node["metadata"]["name"]
        if world.store.find(NODES, "", name) is not None:
            raise InputError(f'there is a node "{name}" already; give the new ones another name')
        world.store.load([node])
        world.note("join", name)


class ObjectTarget(NamedTuple):
    kind: str
    api_version: str
    namespace: str
    name: str

    def find(self, world: ScenarioWorld) -> StoredObject:
        resource = self._resource(world)
        namespace = self.namespace if resource.namespaced else ""
        found = world.store.find(resource, namespace, self.name)
        if found is None:
            names = [one.name for one in world.store.objects_of(resource)]
            place = f' in namespace "{namespace}"' if namespace else ""
            hint = near(self.name, names)
            raise InputError(f'there is no {self.kind} "{self.name}"{place} then{hint}')
        return found

    def _resource(self, world: ScenarioWorld) -> ApiResource:
        for resource in world.store.resources:
            if resource.kind == self.kind and self.api_version in ("", resource.api_version):
                return resource
        kinds = [resource.kind for resource in world.store.resources]
        raise InputError(f'there is no kind "{self.kind}"{near(self.kind, kinds)}')


def scale(world: ScenarioWorld, target: ObjectTarget, replicas: int) -> None:
    owner = target.find(world)
    before = value_at(owner.document, "spec", "replicas")
    world.store.patch(owner.resource, *owner.key, {"spec": {"replicas": replicas}}, "merge")
    world.note("scale", f"{target.kind}/{target.name}", f"{before} to {replicas}")


def apply(world: ScenarioWorld, documents: Sequence[JsonObject]) -> None:
    """Create the objects, or merge what is given into those that exist."""
    for document in documents:
        served = world.store.served.of_kind(document.get("apiVersion", ""), document["kind"])
        resource, metadata = served.stored, as_object(document.get("metadata"))
        namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
        name: str = metadata.get("name") or ""
        if name and world.store.find(resource, namespace, name) is not None:
            merged = {**document, "metadata": _without_version(metadata)}
            world.store.patch(resource, namespace, name, merged, "merge")
        else:
            world.store.load([document])
        world.note("apply", f"{document['kind']}/{name or metadata.get('generateName', '')}")


def _without_version(metadata: JsonObject) -> JsonObject:
    """The metadata of a manifest read from a cluster, whose versions and UIDs are others."""
    return {key: each for key, each in metadata.items() if key not in ("resourceVersion", "uid")}


def apply_loaded(world: ScenarioWorld, documents: Sequence[Document]) -> None:
    """Apply objects of files; kinds that the cluster does not serve are left out."""
    ranks = {kind: rank for rank, kind in enumerate(LOADED_FIRST)}
    for document in sorted(documents, key=lambda one: ranks.get(one.raw["kind"], len(ranks))):
        raw = document.raw
        try:
            world.store.served.of_kind(raw.get("apiVersion", ""), raw["kind"])
        except NotFoundError:
            world.note("ignored", raw["kind"])
            continue
        try:
            apply(world, [raw])
        except ApiError as error:
            raise InputError(f"{document.source}: {error}") from error


def delete(world: ScenarioWorld, target: ObjectTarget) -> None:
    world.remove(target.find(world))
    world.note("delete", f"{target.kind}/{target.name}")


NODE_ACTIONS: Final = {
    "cordon": NodeAction(cordon, is_open, uncordon),
    "uncordon": NodeAction(uncordon, is_closed),
    "drain": NodeAction(drain, is_open, uncordon),
    "fail": NodeAction(fail, is_running, repair),
    "repair": NodeAction(repair, is_failed),
    "leave": NodeAction(leave),
}
