"""References of claims and volumes follow the new UIDs of loaded objects."""

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from kubestow.simulator.loaded_claims import relink_claims
from kubestow.testing import ManualClock

POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "d"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def claim(volume: str = "", **metadata: object) -> JsonObject:
    spec: JsonObject = {"accessModes": ["ReadWriteOnce"]}
    if volume:
        spec["volumeName"] = volume
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "d", **metadata},
        "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}},
    }


def volume(phase: str = "Bound", uid: str = "uid-there", name: str = "c") -> JsonObject:
    reference = {"namespace": "d", "name": name, **({"uid": uid} if uid else {})}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": reference,
            "hostPath": {"path": "/x"},
        },
        "status": {"phase": phase},
    }


def loaded(*documents: JsonObject) -> MemoryCluster:
    store = MemoryCluster(ManualClock())
    store.load(documents)
    relink_claims(store)
    return store


@pytest.mark.parametrize(
    ("documents", "is_linked"),
    [
        pytest.param([volume(), claim("pv")], True, id="bound"),
        pytest.param([volume(""), claim()], True, id="chosen, not bound yet"),
        pytest.param([volume(), claim("other")], False, id="the claim has another volume"),
        pytest.param([volume("Released"), claim()], False, id="of an earlier claim"),
        pytest.param([volume("Failed"), claim("pv")], False, id="failed"),
        pytest.param([volume(name="gone"), claim("pv")], False, id="of a claim not loaded"),
    ],
)
def test_a_volume_refers_to_its_claim(documents: list[JsonObject], is_linked: bool) -> None:
    store = loaded(*documents)
    uid = value_at(store.get(PERSISTENT_VOLUMES, "", "pv").document, "spec", "claimRef", "uid")
    assert uid == (store.get(PERSISTENT_VOLUME_CLAIMS, "d", "c").uid if is_linked else "uid-there")


def test_a_volume_reserved_by_name_stays_so() -> None:
    store = loaded(volume(uid=""), claim())
    assert "uid" not in store.get(PERSISTENT_VOLUMES, "", "pv").document["spec"]["claimRef"]


def test_the_claim_of_an_ephemeral_volume_refers_to_its_pod() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-there", "controller": True}
    other = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "p", "uid": "uid-of-set"}
    store = loaded(POD, claim(ownerReferences=[owner, other]))
    found = store.get(PERSISTENT_VOLUME_CLAIMS, "d", "c").metadata["ownerReferences"]
    assert found == [{**owner, "uid": store.get(PODS, "d", "p").uid}, other]
