"""The recorder's volume controller: binds what the scheduler has chosen."""

from kubestow.api.meta import JsonObject
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object
from kubestow.simulator.conformance.runs.api import SELECTED_NODE
from kubestow.simulator.conformance.runs.world import RunWorld

_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}


def bind_volumes(world: RunWorld) -> bool:
    """Bind volumes with a chosen claim, and claims with a chosen node; whether any were bound."""
    wrote = False
    for volume in list(world.cluster.objects_of(world.resource("pvs"))):
        reference = volume.document["spec"].get("claimRef")
        if reference is None or _phase(volume) == "Bound":
            continue
        claim = world.cluster.find(
            world.resource("pvcs"), reference["namespace"], reference["name"]
        )
        if claim is not None:
            world.put("pvs", {**volume.document, "status": {"phase": "Bound"}})
            world.put("pvcs", _bound_claim(claim.document, volume.name))
            wrote = True
    for claim in list(world.cluster.objects_of(world.resource("pvcs"))):
        annotations = as_object(claim.metadata.get("annotations"))
        if SELECTED_NODE not in annotations or claim.document["spec"].get("volumeName"):
            continue
        volume_name = f"pvc-{claim.name}"
        world.put("pvs", _provisioned(claim, volume_name))
        world.put("pvcs", _bound_claim(claim.document, volume_name))
        wrote = True
    return wrote


def _phase(volume: StoredObject) -> str:
    return as_object(volume.document.get("status")).get("phase", "")


def _bound_claim(document: JsonObject, volume_name: str) -> JsonObject:
    metadata: JsonObject = document["metadata"]
    annotations = {**as_object(metadata.get("annotations")), **_COMPLETED}
    return {
        **document,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**document["spec"], "volumeName": volume_name},
        "status": {**as_object(document.get("status")), "phase": "Bound"},
    }


def _provisioned(claim: StoredObject, name: str) -> JsonObject:
    spec: JsonObject = claim.document["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": f"pv-{claim.uid}"},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "namespace": claim.metadata["namespace"],
                "name": claim.name,
                "uid": claim.uid,
            },
            "csi": {"driver": "csi.example.com", "volumeHandle": claim.name},
            "storageClassName": spec.get("storageClassName", ""),
        },
        "status": {"phase": "Bound"},
    }
