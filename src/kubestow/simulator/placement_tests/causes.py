"""Why an expectation does not hold: the decision on a pod, and a change that helps, tried."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import PODS
from kubestow.explain.cluster import Origin, StillCluster, key_of
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import find_suggestions
from kubestow.explain.suggestions.remedy import DELETE_PODS
from kubestow.simulator.placement_tests.history import is_live
from kubestow.simulator.placement_tests.judged import message_of
from kubestow.simulator.placement_tests.results import Cause, ExpectationVerdict
from kubestow.simulator.placement_tests.state import PlacedCluster
from kubestow.simulator.pod_owner import controllers_above
from kubestow.simulator.still import objects_of

# Pods of one verdict that are explained.
EXPLAINED_PODS: Final = 2


def with_causes(
    cluster: PlacedCluster, verdicts: Sequence[ExpectationVerdict]
) -> list[ExpectationVerdict]:
    """The verdicts; those that do not hold with the decisions behind them."""
    explainer: _Explainer | None = None
    explained: list[ExpectationVerdict] = []
    for verdict in verdicts:
        if verdict.holds or not verdict.pods:
            explained.append(verdict)
            continue
        explainer = explainer or _Explainer(cluster)
        causes = tuple(map(explainer.cause, verdict.pods[:EXPLAINED_PODS]))
        causes = tuple(cause for cause in causes if cause is not None)
        explained.append(msgspec.structs.replace(verdict, causes=causes))
    return explained


class _Explainer:
    """The cluster of a case, standing still."""

    def __init__(self, cluster: PlacedCluster) -> None:
        self._cluster = cluster
        self._still: StillCluster | None = None
        scheduler = cluster.scheduler
        if scheduler.is_modern:
            clock = cluster.run.clock
            # An empty cluster behind the client: nothing is sent to it.
            client = MemoryClient(MemoryCluster(clock))
            self._still = StillCluster(
                scheduler.config,
                client,
                clock,
                registry=scheduler.registry,
                gates=scheduler.gates,
            )
            self._still.load(objects_of(cluster.store))

    def cause(self, key: str) -> Cause | None:
        """The decision on a pod; None if it is gone or going."""
        namespace, _, name = key.partition("/")
        stored = self._cluster.store.find(PODS, namespace, name)
        pod = None if stored is None else stored.typed
        if not isinstance(pod, Pod) or not is_live(pod):
            return None
        source = source_of(self._cluster, pod)
        if self._still is None:
            return Cause(pod=key, decision=message_of(pod), source=source)
        is_waiting = not pod.spec.node_name
        explanation = explain_pod(self._still, pod, is_as_of_now=is_waiting)
        decision = message_of(pod) if is_waiting else ""
        cause = Cause(pod=key, decision=decision or explanation.summary, source=source)
        if not is_waiting or self._still.profile_of(pod) is None:
            return cause
        self._set_origin(pod)
        suggestions = find_suggestions(self._still, pod)
        if not suggestions:
            return cause
        # Deleting others is no change of a manifest: it comes last.
        best = min(suggestions, key=lambda each: DELETE_PODS in each.kind)
        return msgspec.structs.replace(
            cause, suggestion=best.text, patches=best.patches, commands=best.commands
        )

    def _set_origin(self, pod: Pod) -> None:
        """Have a change of the pod written as one of the template that it was made from."""
        top = _topmost(self._cluster, pod)
        if top is not None and self._still is not None:
            names = (top.resource.api_version, top.resource.kind, *top.key)
            self._still.origins[key_of(pod)] = Origin(*names, "/spec/template")


def source_of(cluster: PlacedCluster, pod: Pod) -> str:
    """Where the manifest of a pod, or of what made it, is written; empty if that is unknown."""
    top = _topmost(cluster, pod)
    if top is None:
        return cluster.case.sources.get(("Pod", pod.metadata.namespace, pod.metadata.name), "")
    return cluster.case.sources.get((top.resource.kind, *top.key), "")


def _topmost(cluster: PlacedCluster, pod: Pod) -> StoredObject | None:
    stored = cluster.store.find(PODS, pod.metadata.namespace, pod.metadata.name)
    if stored is None:
        return None
    above = list(controllers_above(cluster.store, stored.document, stored.key[0]))
    return above[-1].stored if above else None
