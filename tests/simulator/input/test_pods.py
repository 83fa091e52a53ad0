"""Pods lose their place, or leave the cluster with everything that was theirs."""

from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.simulator.input.pods import PodKey, evicted, without_placements, without_pods


def documents(*raw: dict[str, Any]) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def placed(name: str, *, metadata: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"nodeName": "n", "containers": []},
        "status": status,
    }


@pytest.mark.parametrize(
    ("pod", "is_forgotten"),
    [
        pytest.param(placed("a", phase="Running"), True, id="running"),
        pytest.param(placed("a"), True, id="without-status"),
        pytest.param(placed("a", phase="Succeeded"), False, id="ended"),
        pytest.param(
            placed("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False, id="ending"
        ),
        pytest.param(
            placed("a", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
            False,
            id="static",
        ),
    ],
)
def test_placements_are_forgotten(pod: dict[str, Any], is_forgotten: bool) -> None:
    (after,) = without_placements(documents(pod))
    assert ("nodeName" not in after.raw["spec"]) == is_forgotten
    assert "nodeName" in pod["spec"]
    if is_forgotten:
        assert after.raw["status"] == {}


def test_devices_of_forgotten_pods_are_free_again() -> None:
    def claim(name: str, *pods: str) -> dict[str, Any]:
        reserved = [{"resource": "pods", "name": pod} for pod in pods]
        status = {"allocation": {"devices": {}}, "reservedFor": reserved}
        return {"kind": "ResourceClaim", "metadata": {"name": name}, "status": status}

    statuses = [{"name": "gpu", "resourceClaimName": "c"}]
    pod = placed("a", phase="Running", resourceClaimStatuses=statuses)
    ended = placed("b", phase="Failed")
    given = documents(pod, ended, claim("mine", "a"), claim("shared", "a", "b"), claim("unused"))
    after = [document.raw for document in without_placements(given)]
    # Its claims keep their names: no controller makes them again.
    assert after[0]["status"] == {"resourceClaimStatuses": statuses}
    assert [("status" in one) for one in after[2:]] == [False, True, True]


def named(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


OWNED: dict[str, Any] = {"ownerReferences": [{"kind": "Pod", "name": "a"}]}


def with_volumes() -> list[Document]:
    """Pod "a" with an ephemeral volume of its own and one that it shares with pod "b"."""
    pod = placed("a", metadata={"uid": "old"}, phase="Running")
    other = placed("b", phase="Running")
    shared = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    pod["spec"]["volumes"] = [{"name": "tmp", "ephemeral": {}}, shared]
    other["spec"]["volumes"] = [shared]
    return documents(
        pod,
        other,
        named("PersistentVolumeClaim", "a-tmp", metadata=OWNED, spec={"volumeName": "pv-tmp"}),
        named("PersistentVolumeClaim", "data", spec={"volumeName": "pv-data"}),
        named("PersistentVolume", "pv-tmp", spec={"persistentVolumeReclaimPolicy": "Delete"}),
        named("PersistentVolume", "pv-data", spec={"persistentVolumeReclaimPolicy": "Delete"}),
        *(
            named(
                "VolumeAttachment",
                f"at-{volume}",
                spec={"nodeName": "n", "source": {"persistentVolumeName": volume}},
            )
            for volume in ("pv-tmp", "pv-data")
        ),
        named("ResourceClaim", "a-gpu", metadata=OWNED),
        named(
            "ResourceClaim",
            "both",
            status={"reservedFor": [{"name": "a"}, {"name": "b"}], "allocation": {}},
        ),
    )


def test_what_belongs_to_a_removed_pod_goes_with_it() -> None:
    after = without_pods(with_volumes(), {PodKey("default", "a")})
    names = [document.raw["metadata"]["name"] for document in after]
    assert names == ["b", "data", "pv-data", "at-pv-data", "both"]
    assert after[-1].raw["status"]["reservedFor"] == [{"name": "b"}]


def test_an_evicted_pod_is_a_new_one_without_a_node() -> None:
    after = evicted(with_volumes(), {PodKey("default", "a")})
    names = [document.raw["metadata"]["name"] for document in after]
    assert names == ["a", "b", "data", "pv-data", "at-pv-data", "both"]
    pod = after[0].raw
    # Another pod, which has been through admission.
    assert pod["metadata"]["uid"] == "old-again"
    assert "nodeName" not in pod["spec"]
    assert "status" not in pod


def test_volumes_of_forgotten_pods_are_detached() -> None:
    kinds = [document.raw["kind"] for document in without_placements(with_volumes())]
    assert "VolumeAttachment" not in kinds
    assert kinds.count("PersistentVolume") == 2
