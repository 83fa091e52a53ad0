"""Suggestions for the pod of a family, and what a simulation makes of documents."""

from collections.abc import Sequence
from typing import Any

from tests.explain.suggestions.families import POD

from kubestow.api.files import Document
from kubestow.api.pod import Pod
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Suggestion
from kubestow.explain.suggestions import find_suggestions
from kubestow.simulator.simulation import place
from kubestow.simulator.still import still_cluster
from kubestow.testing import ManualClock

CONFIG = SchedulerConfig(profiles=(ProfileConfig(),))


def documents_of(raw: Sequence[dict[str, Any]]) -> list[Document]:
    return [Document(each, f"document {number}") for number, each in enumerate(raw, start=1)]


def cluster_of(documents: Sequence[Document], gates: FeatureGates = DEFAULT_GATES) -> StillCluster:
    return still_cluster(documents, CONFIG, ManualClock(), gates=gates)


def waiting_pod(cluster: StillCluster) -> Pod:
    found = cluster.objects.pods.get("default", POD)
    assert found is not None
    return found


def suggestions_for(documents: Sequence[Document], limit: int = 99) -> tuple[Suggestion, ...]:
    cluster = cluster_of(documents)
    return find_suggestions(cluster, waiting_pod(cluster), limit=limit, of_kind=limit)


def node_in_simulation(documents: Sequence[Document], name: str = POD) -> str:
    """Where the pod is at the end of a simulation; "" if it still waits."""
    result = place(documents, CONFIG)
    return next(pod.node for pod in result.pods if pod.name.startswith(name))
