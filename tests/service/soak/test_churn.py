"""What a soak does to a cluster: new values all the time, and a cluster that stays as large."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES, PODS
from kubestow.service.soak.churn import HOPELESS_MAX, PODS_PER_NODE, Churn
from kubestow.service.soak.nodes import COMMON, node_documents
from kubestow.service.soak.pod_draft import PodDraft
from kubestow.service.soak.unseen import HINDRANCES, TRAITS, fill_unseen
from kubestow.testing import ManualClock

NODE_COUNT = 3


def draft(number: int) -> PodDraft:
    return PodDraft(number, "default", np.random.default_rng(number), ["node-0"])


def churning(steps: int) -> tuple[MemoryCluster, Churn]:
    clock = ManualClock()
    cluster = MemoryCluster(clock, history_max=10)
    churn = Churn(cluster, clock, np.random.default_rng(0), nodes=NODE_COUNT, pods_per_s=1)
    for _ in range(steps):
        churn.step()
    return cluster, churn


@pytest.mark.parametrize("trait", [*TRAITS, *HINDRANCES], ids=lambda trait: trait.__name__)
def test_the_api_server_accepts_pods_of_every_trait(trait: Callable[[PodDraft], None]) -> None:
    cluster = MemoryCluster(ManualClock())
    cluster.load([*COMMON, *node_documents(0)])
    for number in range(2):
        made = draft(number)
        fill_unseen(made)
        trait(made)
        cluster.load(made.companions)
        cluster.create(PODS, made.document())


def values_in(value: Any) -> Iterator[str]:
    """All texts in a document, keys too."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from values_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from values_in(part)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("trait", TRAITS, ids=lambda trait: trait.__name__)
def test_every_trait_brings_new_values(trait: Callable[[PodDraft], None]) -> None:
    def texts(number: int) -> set[str]:
        made = draft(number)
        before = set(values_in(made.document()))
        trait(made)
        return {*values_in(made.document()), *values_in(made.companions)} - before

    first, second = texts(1), texts(2)
    bare = {"_node_selector", "_chip", "_seat", "_ephemeral_claim", "_host_ports"}
    # These name a node, whose name is new at times, or numbers; or bring an object of a new name.
    assert first != second or trait.__name__ in bare


def test_the_cluster_stays_as_large() -> None:
    cluster, churn = churning(800)
    assert churn.created_count == 800
    pods_max = NODE_COUNT * PODS_PER_NODE + HOPELESS_MAX
    counts = cluster.statistics().object_counts
    assert counts.pop("nodes") == NODE_COUNT
    assert counts.pop("pods") <= pods_max
    # Only some pods have objects of their own, and those go with them.
    assert max(counts.values()) < pods_max / 4


def test_nodes_are_replaced_by_others() -> None:
    cluster, churn = churning(100)
    before = {stored.name for stored in cluster.objects_of(NODES)}
    for _ in range(300):
        churn.step()
    assert before.isdisjoint(stored.name for stored in cluster.objects_of(NODES))
    assert {
        stored.name
        for stored in cluster.objects_of(cluster.resources.of_kind("storage.k8s.io/v1", "CSINode"))
    } == {stored.name for stored in cluster.objects_of(NODES)}
