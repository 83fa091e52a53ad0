"""A cluster is changed on its way into a simulation."""

from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.simulator.input.changes import InputChanges, NodesLike
from kubestow.simulator.workloads import expand_workloads

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web"}]},
}


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": "u",
            "labels": {
                "kubernetes.io/hostname": name,
                "pool": "blue",
                "csi.example.com/node": name,
            },
        },
        "spec": {"providerID": "cloud:1", **spec},
        "status": {"capacity": {"cpu": "4", "pods": "10"}, "images": [{"names": ["web"]}]},
    }


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"template": TEMPLATE, **spec},
    }


def pod(name: str, node_name: str, owner: str = "ReplicaSet", **metadata: Any) -> dict[str, Any]:
    owners = [{"kind": owner, "name": "web", "controller": True}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": owners, **metadata},
        "spec": {"nodeName": node_name, "containers": []},
    }


def changed(changes: InputChanges, *raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The objects after the changes and after loading, by name."""
    given = [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]
    after = expand_workloads(changes.apply(given).documents)
    result = {f"{one.raw['kind']}/{one.raw['metadata']['name']}": one.raw for one in after}
    assert len(result) == len(after)
    return result


def notes(changes: InputChanges, *raw: dict[str, Any]) -> list[str]:
    return changes.apply([Document(one, "all.yaml") for one in raw]).notes


def test_a_cordoned_node_is_closed_to_new_pods() -> None:
    taint = {"key": "team", "value": "db", "effect": "NoSchedule"}
    after = changed(InputChanges(cordon=("a",)), node("a", taints=[taint]), node("b"))
    assert after["Node/a"]["spec"]["unschedulable"] is True
    closed = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert after["Node/a"]["spec"]["taints"] == [taint, closed]
    assert "unschedulable" not in after["Node/b"]["spec"]


def test_pods_of_a_drained_node_wait_unless_nothing_makes_them_again() -> None:
    raw = (
        node("a"),
        pod("moves", "a"),
        pod("stays", "b"),
        pod("daemon", "a", "DaemonSet"),
        pod("bare", "a", ""),
        pod("static", "a", "Node", annotations={"kubernetes.io/config.mirror": "x"}),
    )
    drained = InputChanges(drain=("a",))
    after = changed(drained, *raw)
    on_nodes = {
        name: "nodeName" in one["spec"] for name, one in after.items() if one["kind"] == "Pod"
    }
    assert on_nodes == {
        "Pod/moves": False,
        "Pod/stays": True,
        "Pod/daemon": True,
        "Pod/static": True,
    }
    assert after["Node/a"]["spec"]["unschedulable"] is True
    assert notes(drained, *raw) == [
        '"a" drained: 1 pod to place again, 1 without a controller removed'
    ]


def test_added_nodes_are_new_and_have_daemons() -> None:
    slice_ = {
        "kind": "ResourceSlice",
        "metadata": {"name": "gpus"},
        "spec": {"nodeName": "a", "driver": "d", "pool": {"name": "a", "resourceSliceCount": 1}},
    }
    csi = {
        "kind": "CSINode",
        "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "a", "topologyKeys": []}]},
    }
    team = {"key": "team", "effect": "PreferNoSchedule"}
    ill = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    after = changed(
        InputChanges(add_nodes=(NodesLike(2, "a"),)),
        node("a", unschedulable=True, taints=[team, ill]),
        csi,
        slice_,
        workload("DaemonSet", "web"),
        pod("web-x", "a", "DaemonSet"),
    )
    new = after["Node/a-copy-2"]
    assert new["metadata"] == {
        "name": "a-copy-2",
        "labels": {
            "kubernetes.io/hostname": "a-copy-2",
            "pool": "blue",
            "csi.example.com/node": "a-copy-2",
        },
    }
    assert new["spec"] == {"taints": [team]}
    assert new["status"] == {"capacity": {"cpu": "4", "pods": "10"}}
    assert after["CSINode/a-copy-2"]["spec"]["drivers"][0]["nodeID"] == "a-copy-2"
    assert after["ResourceSlice/gpus-a-copy-1"]["spec"]["nodeName"] == "a-copy-1"
    assert after["ResourceSlice/gpus-a-copy-1"]["spec"]["pool"]["name"] == "a-copy-1"
    pods = [name for name in after if name.startswith("Pod/")]
    assert pods == ["Pod/web-x", "Pod/web-a-copy-1", "Pod/web-a-copy-2"]


def test_names_of_added_nodes_are_free() -> None:
    after = changed(InputChanges(add_nodes=(NodesLike(1, "a"),)), node("a"), node("a-copy-1"))
    assert "Node/a-copy-2" in after


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param((workload("Deployment", "web", replicas=2),), id="deployment"),
        pytest.param((workload("ReplicaSet", "web"),), id="replica-set"),
        pytest.param((workload("Job", "web", parallelism=2),), id="job"),
        pytest.param((workload("DaemonSet", "web"), node("a")), id="daemon-set"),
        pytest.param(
            (workload("ReplicaSet", "web"), pod("web-1", "", labels={"app": "web"})), id="its-pods"
        ),
    ],
)
def test_pods_are_removed_and_not_made_again(raw: tuple[dict[str, Any], ...]) -> None:
    after = changed(InputChanges(remove_pods=("app=web",)), *raw)
    assert not [name for name in after if name.startswith("Pod/")]


def test_only_pods_that_match_are_removed() -> None:
    after = changed(
        InputChanges(remove_pods=("app in (web,api),tier!=db",)),
        pod("gone", "n", labels={"app": "web"}),
        pod("kept", "n", labels={"app": "web", "tier": "db"}),
        workload("Deployment", "web"),
        workload("ReplicaSet", "web"),
    )
    assert [name for name in after if name.startswith("Pod/")] == ["Pod/kept"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (InputChanges(cordon=("aa",)), 'there is no node "aa" among the 2 of the cluster'),
        (InputChanges(drain=("nod",)), 'no node "nod" among the 2 .*; did you mean "node"'),
        (InputChanges(add_nodes=(NodesLike(1, "x"),)), 'there is no node "x"'),
        (InputChanges(add_nodes=(NodesLike(0, "a"),)), "cannot add 0 nodes, expected 1 to"),
        (InputChanges(remove_pods=("app=none",)), 'no pod has labels that match "app=none"'),
        (InputChanges(remove_pods=("a b",)), 'label selector "a b": .*; expected, for example'),
        (InputChanges(remove_pods=("",)), "the label selector is empty"),
    ],
)
def test_wrong_changes_are_refused(changes: InputChanges, message: str) -> None:
    with pytest.raises(InputError, match=message):
        changed(changes, node("a"), node("node"), pod("p", "a", labels={"app": "web"}))
