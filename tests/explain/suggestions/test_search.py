"""Suggestions for generated pods of every family of reasons."""

from collections import Counter
from typing import Any

import pytest
from tests.cache.dice import Dice
from tests.explain.suggestions.brute_force import measure_of, smallest
from tests.explain.suggestions.families import FAMILIES, HOSTNAME, POD, container, node, pod
from tests.explain.suggestions.trials import (
    cluster_of,
    documents_of,
    node_in_simulation,
    suggestions_for,
    waiting_pod,
)

from kubestow.config.feature_gates import FeatureGates
from kubestow.explain.cluster import StillCluster
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import SUGGESTIONS_MAX, find_suggestions, with_suggestions
from kubestow.explain.suggestions.apply import applied
from kubestow.explain.suggestions.search import find_remedies

# Kinds that the seeds of a family lead to, so that a family cannot become empty unnoticed.
EXPECTED = {
    "requests": {"LowerRequest"},
    "extended": {"LowerRequest"},
    "full": {"LowerRequest", "DeletePods", "AddNode"},
    "pod_limit": {"RaisePodLimit", "DeletePods", "AddNode"},
    "taints": {"AddToleration", "RemoveTaint", "AddNode"},
    "cordoned": {"Uncordon", "AddToleration", "AddNode"},
    "selector": {"AddLabel", "ChangeNodeSelector", "DropNodeSelector"},
    "node_affinity": {"AddLabel", "ChangeNodeAffinity", "DropNodeAffinity"},
    "pod_affinity": {"DropPodAffinity", "DropPodAffinity+DropPodAffinity"},
    "anti_affinity": {"DropPodAntiAffinity", "DeletePods", "AddNode"},
    "others_anti_affinity": {"DeletePods", "AddNode"},
    "spread": {"RaiseMaxSkew", "ScheduleAnyway", "Uncordon", "DeletePods", "AddNode"},
    "ports": {"ChangeHostPort", "DropHostPort", "DeletePods", "AddNode"},
    "bound_volume": {"MoveVolume", "ChangeStorageClass", "Uncordon"},
    "provisioned": {"ChangeStorageClass"},
    "unbound_claim": {"ChangeStorageClass", "LowerStorageRequest"},
    "volume_limits": {"RaiseVolumeLimit", "DeletePods", "AddNode"},
    "devices": {"LowerDeviceCount", "DropDeviceSelector"},
    "gates": {"RemoveSchedulingGates", "RemoveSchedulingGates+LowerRequest"},
    "mixed": {"Uncordon+LowerRequest", "AddToleration+LowerRequest"},
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_with_each_suggestion_a_simulation_places_the_pod(family: str) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(7):
        documents = documents_of(FAMILIES[family](Dice(seed)))
        for suggestion in suggestions_for(documents):
            assert suggestion.verified
            kinds[suggestion.kind] += 1
            # Most kinds come again and again; a simulation takes much longer than the search.
            if kinds[suggestion.kind] == 1:
                assert node_in_simulation(applied(documents, suggestion)), (seed, suggestion)
    assert EXPECTED[family] <= kinds.keys()


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "gates"])
def test_no_smaller_single_change_is_missing(family: str) -> None:
    compared: Counter[str] = Counter()
    for seed in range(6):
        cluster = cluster_of(documents_of(FAMILIES[family](Dice(seed))))
        waiting = waiting_pod(cluster)
        if cluster.decide(waiting).is_scheduled:
            continue
        changes = [
            found.change for found in find_remedies(cluster, waiting, limit=999, of_kind=999)
        ]
        found = dict[tuple[str, str], tuple[int, ...]]()
        for change in changes:
            if "+" not in change.kind:
                key, measure = measure_of(waiting, change)
                found[key] = min(found.get(key, measure), measure)
        everything = smallest(cluster, waiting)
        for key, measure in everything.items():
            compared[key[0]] += 1
            assert found.get(key, (1 << 60,)) <= measure, (seed, key)
        assert not everything or all("+" not in change.kind for change in changes), seed
    assert compared


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cluster_is_the_same_afterwards(family: str) -> None:
    cluster = cluster_of(documents_of(FAMILIES[family](Dice(3))))
    waiting = waiting_pod(cluster)
    before = state_of(cluster)
    find_suggestions(cluster, waiting)
    assert state_of(cluster) == before


def state_of(cluster: StillCluster) -> Any:
    """Everything that decisions depend on."""
    snapshot = cluster.refresh()
    columns = snapshot.columns
    arrays = (columns.block, columns.pod_count, columns.unschedulable, columns.features)
    decision = cluster.decide(waiting_pod(cluster)).freeze().to_document()
    return (
        snapshot.names,
        list(map(id, snapshot.nodes)),
        [[id(pod.pod) for pod in info.pods] for info in snapshot.node_infos],
        [array[..., : len(snapshot)].tobytes() for array in arrays],
        cluster.scheduler.cache.node_tree.list(),
        {
            cls.__name__: {
                (each.metadata.namespace, each.metadata.name): id(each)
                for each in cluster.objects.store(cls)
            }
            for cls in cluster.objects.types()
        },
        [decision.get(key) for key in ("feasible", "rejected", "absent", "status")],
    )


def test_suggestions_are_limited_and_the_smallest_come_first() -> None:
    nodes = [
        node(f"n{number}", taints=[{"key": f"team-{number}", "effect": "NoSchedule"}])
        for number in range(20)
    ]
    cluster = cluster_of(documents_of([*nodes, pod(POD)]))
    waiting = waiting_pod(cluster)
    kinds = [each.kind for each in find_suggestions(cluster, waiting)]
    assert kinds == ["AddToleration"] * 3 + ["RemoveTaint"] * 3
    assert len(find_suggestions(cluster, waiting, of_kind=9)) == SUGGESTIONS_MAX
    sizes = [each.change.size for each in find_remedies(cluster, waiting, limit=99, of_kind=99)]
    assert sizes == sorted(sizes)


def test_a_change_that_helps_on_many_nodes_is_one_suggestion() -> None:
    nodes = [node(f"n{number}", cordoned=True) for number in range(5)]
    texts = [each.text for each in suggestions_for(documents_of([*nodes, pod(POD)]))]
    assert texts[0] == "uncordon n0 (or one of 4 others): the pod then fits on n0"
    assert sum(text.startswith("uncordon") for text in texts) == 1


def test_nothing_is_suggested_for_a_pod_that_fits() -> None:
    assert suggestions_for(documents_of([node("n0"), pod(POD)])) == ()


def test_without_nodes_the_smallest_node_is_computed() -> None:
    needed = pod(POD, requests={"cpu": "12", "memory": "48Gi"}, nodeSelector={"disk": "ssd"})
    documents = documents_of([needed])
    (found,) = suggestions_for(documents)
    assert found.text == (
        "add a node with at least cpu 12, memory 48Gi, label disk=ssd: the pod then fits on "
        "node-new"
    )
    assert node_in_simulation(applied(documents, found)) == "node-new"


def test_what_was_tried_is_said_where_nothing_is_found() -> None:
    """No class makes volumes for the claim."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    cluster = cluster_of(documents_of([node("n0"), pod(POD, volumes=[volume])]))
    waiting = waiting_pod(cluster)
    explanation = with_suggestions(cluster, waiting, explain_pod(cluster, waiting))
    assert explanation.suggestions == ()
    assert "missing claims and classes" in explanation.tried
    assert "nothing was found. Tried: names" in str(explanation)


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        pytest.param(
            [node("node-3", cpu="3500m"), pod(POD, containers=[container("app", {"cpu": "8"})])],
            "lower the cpu request of container app from 8 to 3500m: the pod then fits on node-3",
            id="request",
        ),
        pytest.param(
            [
                node("a", cpu="4"),
                pod("x", on="a", requests={"cpu": "2"}),
                pod("y", on="a", requests={"cpu": "1500m"}),
                pod(POD, requests={"cpu": "2"}, priority=0),
            ],
            "delete the pod default/x on a, which frees 2 cpu: the pod then fits on a",
            id="deletion",
        ),
        pytest.param(
            [node("a"), pod(POD, schedulingGates=[{"name": "g1"}, {"name": "g2"}])],
            "remove the scheduling gates g1, g2: the pod then fits on a",
            id="gates",
        ),
        pytest.param(
            [
                node("a", cpu="2", labels={"disk": "hdd"}),
                pod(POD, requests={"cpu": "3"}, nodeSelector={"disk": "ssd"}),
            ],
            "select nodes with disk=hdd instead of disk=ssd, and lower the cpu request of container"
            " main from 3 to 2: the pod then fits on a",
            id="pair",
        ),
    ],
)
def test_texts_are_one_plain_sentence(documents: list[dict[str, Any]], text: str) -> None:
    assert text in [each.text for each in suggestions_for(documents_of(documents))]


def test_a_new_node_may_be_the_second_change() -> None:
    """Pods of the app are nowhere, and no node has room."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    full = [
        node("n0", cpu="4"),
        *(pod(f"r{number}", on="n0", requests={"cpu": "1"}, priority=9) for number in range(4)),
    ]
    documents = documents_of([*full, pod(POD, requests={"cpu": "2"}, affinity=near)])
    (found,) = suggestions_for(documents)
    assert found.kind == "DropPodAffinity+AddNode"
    assert node_in_simulation(applied(documents, found)) == "n0-new"


def test_two_changes_are_looked_for_only_if_no_single_one_helps() -> None:
    tainted = node("a", taints=[{"key": "x", "effect": "NoSchedule"}], cordoned=True)
    alone = suggestions_for(documents_of([tainted, pod(POD)]))
    assert "AddToleration+Uncordon" in {each.kind for each in alone}
    both = suggestions_for(documents_of([tainted, node("b", cordoned=True), pod(POD)]))
    assert all("+" not in each.kind for each in both)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
def test_a_pod_of_a_workload_is_changed_in_the_template(kind: str) -> None:
    labels = {"app": "web"}
    restarts = {"restartPolicy": "Never"} if kind == "Job" else {}
    made = pod("t", requests={"cpu": "8"}, nodeSelector={"disk": "ssd"}, **restarts)
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    workload = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": made["spec"]}, **selector},
    }
    documents = documents_of([node("n0", labels={"disk": "ssd"}), workload])
    cluster = cluster_of(documents)
    (waiting,) = cluster.objects.pods
    found, more = find_suggestions(cluster, waiting)
    assert (found.kind, more.kind) == ("LowerRequest", "AddNode")
    (patch,) = found.patches
    assert (patch.api_version, patch.kind, patch.name) == (workload["apiVersion"], kind, "web")
    (operation,) = patch.patch
    assert operation["path"] == "/spec/template/spec/containers/0/resources/requests"
    assert node_in_simulation(applied(documents, found), name="web") == "n0"


def test_a_member_of_a_gang_is_tried_with_its_gang() -> None:
    """Room for one pod is no help to a gang of two."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    member = {"schedulingGroup": {"podGroupName": "g"}, "requests": {"cpu": "3"}}
    documents = documents_of(
        [
            node("n0", cpu="4", cordoned=True),
            node("n1", cpu="8", cordoned=True),
            group,
            pod(POD, **member),
            pod("second", **member),
        ]
    )
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    cluster = cluster_of(documents, gates=gates)
    texts = [each.text for each in find_suggestions(cluster, waiting_pod(cluster))]
    assert "uncordon n0: the pod then fits on n0" not in texts
    assert "uncordon n1: the pod then fits on n1" in texts
