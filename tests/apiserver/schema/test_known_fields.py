"""Fields that Kubernetes does not have are found, those it has are not."""

from typing import Any

import msgspec
import pytest

from kubestow.api.decode import KINDS
from kubestow.apiserver.schema.known_fields import UnknownField, unknown_fields

# Written by the scheduler alone, never by hand: not in the table.
NOT_IN_FILES = ("Binding", "Event", "Lease")
# Structs that serve several types or versions, of which only another one has the field; and one
# map of any content.
SHARED = {
    "Node": ["status.conditions[0].observedGeneration", "status.conditions[0].lastProbeTime"],
    "PersistentVolumeClaim": ["spec.resources.claims"],
    "CompositePodGroup": ["status.conditions[0].lastProbeTime", "status.resourceClaimStatuses"],
    "Workload": ["spec.compositePodGroupTemplates"],
    "PodGroup": ["status.conditions[0].lastProbeTime"],
    "ResourceClaim": ["status.devices[0].conditions[0].lastProbeTime"],
    "Pod": [
        "spec.volumes[0].ephemeral.volumeClaimTemplate.key",
        "spec.volumes[0].azureFile.secretNamespace",
    ],
}


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            pod(nodeSelectr={"a": "b"}),
            [UnknownField("spec.nodeSelectr", "nodeSelector")],
            id="misspelt",
        ),
        pytest.param(
            pod(containers=[{"name": "a"}, {"name": "b", "resources": {"request": {}}}]),
            [UnknownField("spec.containers[1].resources.request", "requests")],
            id="in-a-list",
        ),
        pytest.param(pod(zzz=1), [UnknownField("spec.zzz", "")], id="nothing-similar"),
        pytest.param(
            pod(containers=[{"name": "a", "livenessProbe": {"httpGet": {"path": "/"}}}]),
            [],
            id="not-read-but-known",
        ),
        pytest.param(pod(nodeSelector={"any": "label"}), [], id="keys-of-a-map-are-free"),
        pytest.param(pod(overhead={"example.com/foo": 1}), [], id="resources-are-free"),
        pytest.param(
            {"kind": "Node", "status": {"capacty": {}}},
            [UnknownField("status.capacty", "capacity")],
            id="status-of-a-node",
        ),
        pytest.param(
            {
                "kind": "ResourceSlice",
                "spec": {"devices": [{"name": "d", "capacity": {"memory": {"valu": 1}}}]},
            },
            [UnknownField('spec.devices[0].capacity["memory"].valu', "value")],
            id="values-of-a-map",
        ),
        pytest.param({"kind": "Rollout", "spec": {"anything": 1}}, [], id="custom-resource"),
        pytest.param(pod(containers="wrong"), [], id="wrong-type-is-for-the-decoder"),
        pytest.param({"kind": 3}, [], id="no-kind"),
    ],
)
def test_unknown_fields(document: dict[str, Any], expected: list[UnknownField]) -> None:
    assert unknown_fields(document) == expected


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NOT_IN_FILES])
def test_every_field_that_is_read_is_known(kind: str) -> None:
    """Compares the table with the structs, each with every field they declare."""
    example = _example(msgspec.inspect.type_info(KINDS[kind]))
    found = [field.path for field in unknown_fields({**example, "kind": kind, "nope": 1})]
    assert found == [*SHARED.get(kind, []), "nope"]


def _example(info: msgspec.inspect.Type) -> Any:
    """A document with every field of a type, as deep as it goes."""
    match info:
        case msgspec.inspect.StructType():
            return {field.encode_name: _example(field.type) for field in info.fields}
        case msgspec.inspect.UnionType():
            kinds = [one for one in info.types if not isinstance(one, msgspec.inspect.NoneType)]
            return _example(kinds[0])
        case msgspec.inspect.VarTupleType():
            return [_example(info.item_type)]
        case msgspec.inspect.DictType():
            return {"key": _example(info.value_type)}
        case _:
            return None
