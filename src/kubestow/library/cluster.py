"""A cluster that stands still, to explain pods in it and to place them one by one."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.api.pod import DEFAULT_SCHEDULER_NAME, Pod, assign, is_assigned, key_of
from kubestow.apiserver.writes.admission import validated
from kubestow.apiserver.writes.defaults import apply_defaults
from kubestow.clock import SystemClock
from kubestow.cluster.resources import PODS
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.errors import ApiError, InputError, PluginError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation
from kubestow.explain.many import explain_many, waiting_pods
from kubestow.explain.many_explanation import ManyExplanation
from kubestow.explain.pod import explain_pod, unplaced
from kubestow.explain.suggestions import with_suggestions
from kubestow.framework.plugin import Plugin
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.library.sources import Source, documents_of, scheduler_of
from kubestow.notebook import html_table
from kubestow.plural import counted
from kubestow.simulator.input.changes import parse_selector
from kubestow.simulator.still import still_cluster


class LoadedCluster:
    """The nodes, pods and other objects at one moment; only `place` and `assign` change them."""

    def __init__(self, cluster: StillCluster) -> None:
        self._cluster = cluster

    def __repr__(self) -> str:
        pods = self._cluster.objects.pods
        waiting_count = sum(not is_assigned(pod) for pod in pods)
        return (
            f"<LoadedCluster: {counted(len(self.nodes), 'node')}, {counted(len(pods), 'pod')}, "
            f"{waiting_count} waiting>"
        )

    def _repr_html_(self) -> str:
        pods = self._cluster.objects.pods
        rows = ((pod.metadata.namespace, pod.metadata.name, pod.spec.node_name) for pod in pods)
        return html_table(repr(self)[1:-1], ("namespace", "name", "node"), rows, len(pods))

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, in the order in which they are looked at."""
        return list(self._cluster.refresh().names)

    @property
    def pods(self) -> list[str]:
        """All pods as NAMESPACE/NAME."""
        return [key_of(pod) for pod in self._cluster.objects.pods]

    @property
    def waiting_pods(self) -> list[str]:
        """The pods without a node, as NAMESPACE/NAME."""
        return [key_of(pod) for pod in self._cluster.objects.pods if not is_assigned(pod)]

    @property
    def columns(self) -> Nodes:
        """The nodes as arrays, as plugins read them; valid until the next placement."""
        return nodes_of(self._cluster.refresh())

    def explain(self, pod: str, *, node: str = "", suggestions: bool = True) -> Explanation:
        """Why a pod (NAMESPACE/NAME, or NAME in "default") is where it is, or waits.

        `node` asks every filter about that node. Raises InputError if there is no such pod or node.
        """
        found = self._pod(pod)
        if node and self._cluster.objects.nodes.get(node) is None:
            raise InputError(f'there is no node "{node}"')
        explanation = explain_pod(self._cluster, found, node=node)
        if suggestions and explanation.outcome in ("Unschedulable", "Gated"):
            explanation = with_suggestions(self._cluster, found, explanation)
        return explanation

    def explain_waiting(
        self, *, namespace: str = "", selector: str = "", suggestions: bool = True
    ) -> ManyExplanation:
        """Why pods wait, all of them or those of a namespace or with labels ("app=web"): grouped by
        cause, and by the change that places most of them. Raises InputError for a wrong selector.
        """
        labels = parse_selector(selector) if selector else None
        pods = [
            pod
            for pod in waiting_pods(self._cluster)
            if namespace in ("", pod.metadata.namespace)
            and (labels is None or labels.matches(pod.metadata.labels))
        ]
        return explain_many(self._cluster, pods, has_remedies=suggestions)

    def decide(self, pod: str) -> FrozenDecision:
        """An attempt to place a pod, as arrays; a placed pod is taken off its node for it.

        Raises InputError if there is no such pod, or another scheduler places it.
        """
        found = self._pod(pod)
        if self._cluster.profile_of(found) is None:
            raise InputError(f'no profile has the schedulerName "{found.spec.scheduler_name}"')
        if not is_assigned(found):
            return self._cluster.decide(found).freeze()
        waiting, *others = unplaced(self._cluster, found)
        assert isinstance(waiting, Pod)
        with self._cluster.changed(waiting, *others):
            return self._cluster.decide(waiting).freeze()

    def assign(self, pod: str, node: str) -> None:
        """Put a waiting pod on a node, from now on; whether it fits is not checked.

        Raises InputError if there is no such pod or node, or the pod has a node.
        """
        found = self._pod(pod)
        if is_assigned(found):
            raise InputError(f'the pod "{pod}" is on node "{found.spec.node_name}"')
        if self._cluster.objects.nodes.get(node) is None:
            raise InputError(f'there is no node "{node}"')
        self._cluster.put(assign(found, node))

    def place(self, pod: str | JsonObject) -> str:
        """Place one pod, of the cluster or a new one given as an object; return its node.

        Reserve of the plugins runs, and the pod is counted on its node from then on; Permit and
        binding are left out, and no pod is evicted. Returns "" if the pod fits nowhere, which
        changes nothing. Raises InputError if the pod is not one that waits, or another scheduler
        places it, and PluginError if the attempt fails.
        """
        found = self._pod(pod) if isinstance(pod, str) else self._new_pod(pod)
        if is_assigned(found):
            raise InputError(f'pod "{found.metadata.name}" is on "{found.spec.node_name}" already')
        if self._cluster.profile_of(found) is None:
            raise InputError(f'no profile has the schedulerName "{found.spec.scheduler_name}"')
        decision = self._cluster.place(found)
        if decision.status is not None and not decision.status.is_rejected:
            raise PluginError(decision.message)
        return decision.node_name

    def plugin(self, name: str, *, scheduler_name: str = DEFAULT_SCHEDULER_NAME) -> Plugin:
        """The plugin of this name that a profile has, to read what it keeps. Raises InputError."""
        profile = self._cluster.scheduler.profiles.get(scheduler_name)
        found = None if profile is None else profile.plugins.get(name)
        if found is None:
            raise InputError(f'no profile "{scheduler_name}" has a plugin "{name}"')
        return found

    def _new_pod(self, manifest: JsonObject) -> Pod:
        kind = manifest.get("kind")
        if kind != "Pod":
            raise InputError(f"the object to place is of kind {kind!r}, expected a Pod")
        try:
            pod = validated(PODS, apply_defaults(manifest))
        except ApiError as error:
            raise InputError(str(error)) from error
        assert isinstance(pod, Pod)
        namespace, name = pod.metadata.namespace or "default", pod.metadata.name
        if self._cluster.objects.pods.get(namespace, name) is not None:
            raise InputError(f'there is a pod "{namespace}/{name}" already')
        uid = pod.metadata.uid or f"{namespace}/{name}"
        metadata = msgspec.structs.replace(pod.metadata, namespace=namespace, uid=uid)
        return msgspec.structs.replace(pod, metadata=metadata)

    def _pod(self, key: str) -> Pod:
        namespace, slash, name = key.rpartition("/")
        found = self._cluster.objects.pods.get(namespace if slash else "default", name)
        if found is None:
            raise InputError(f'there is no pod "{key}"')
        return found


def load_cluster(
    *sources: Source,
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    strict: bool = False,
) -> LoadedCluster:
    """A cluster from files, directories and objects, as `kubestow simulate -f` reads them.

    `config` is a file with a KubeSchedulerConfiguration, `feature_gates` are texts such as
    "GangScheduling=true". What a cluster would refuse of files is left out with an InputWarning, as
    are fields that Kubernetes does not have; with `strict` that is an error. Raises InputError.
    """
    loaded, gates = scheduler_of(config, feature_gates)
    cluster = still_cluster(
        documents_of(sources, strict=strict, gates=gates),
        loaded.config,
        SystemClock(),
        registry=loaded.registry,
        gates=gates,
    )
    return LoadedCluster(cluster)
