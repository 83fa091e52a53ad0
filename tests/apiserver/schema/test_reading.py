"""Documents read against a schema: types, unknown fields, nulls."""

from typing import Any

import pytest

from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.schema.reading import TypeMismatchError, read

POD, DEPLOYMENT = schema_of("", "v1", "Pod"), schema_of("apps", "v1", "Deployment")
SECRET, SERVICE = schema_of("", "v1", "Secret"), schema_of("", "v1", "Service")


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", **fields}]}}


@pytest.mark.parametrize(
    ("schema", "document", "message"),
    [
        pytest.param(
            DEPLOYMENT,
            {"spec": {"replicas": "3"}},
            "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type"
            " int32",
            id="text-for-a-number",
        ),
        pytest.param(
            DEPLOYMENT,
            {"spec": {"replicas": 3.5}},
            "cannot unmarshal number 3.5 into Go struct field DeploymentSpec.spec.replicas",
            id="fraction",
        ),
        pytest.param(
            DEPLOYMENT, {"spec": {"replicas": 2**31}}, "unmarshal number 2147483648", id="large"
        ),
        pytest.param(
            DEPLOYMENT,
            {"spec": {"paused": "yes"}},
            "cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
            id="flag",
        ),
        pytest.param(
            DEPLOYMENT,
            {"spec": {"template": 3}},
            "cannot unmarshal number into Go struct field DeploymentSpec.spec.template of type"
            " v1.PodTemplateSpec",
            id="struct",
        ),
        pytest.param(
            DEPLOYMENT,
            {"spec": []},
            "cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
            id="list-for-a-struct",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": {}}},
            "cannot unmarshal object into Go struct field PodSpec.spec.containers of type"
            " []v1.Container",
            id="list",
        ),
        pytest.param(
            POD,
            container(image=5),
            "cannot unmarshal number into Go struct field Container.spec.containers.image of type"
            " string",
            id="in-an-element",
        ),
        pytest.param(
            POD,
            container(ports=[{"containerPort": 80, "protocol": 6}]),
            "Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol",
            id="named-type",
        ),
        pytest.param(
            POD,
            {"metadata": {"labels": {"a": 1}}},
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type"
            " string",
            id="in-a-map",
        ),
        pytest.param(
            POD,
            {"metadata": {"creationTimestamp": 5}},
            "Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            id="time-as-a-number",
        ),
        pytest.param(
            POD,
            {"metadata": {"creationTimestamp": "2026-01-31"}},
            "parsing time \"2026-01-31\"",
            id="time",
        ),
        pytest.param(
            POD,
            container(resources={"requests": {"cpu": "lots"}}),
            "quantities must match the regular expression.*spec.containers\\[0\\].resources",
            id="quantity",
        ),
        pytest.param(SECRET, {"data": {"a": "!!"}}, "illegal base64 data.*data.a", id="bytes"),
        pytest.param(
            SERVICE,
            {"spec": {"ports": [{"port": 80, "targetPort": True}]}},
            "cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type"
            " int32",
            id="number-or-text",
        ),
    ],
)  # fmt: skip
def test_a_wrong_type_is_refused_as_by_a_decoder_in_go(schema: Any, document: Any, message: str):
    pattern = message if "\\[" in message or ".*" in message else None
    with pytest.raises(TypeMismatchError, match=pattern) as caught:
        read(document, schema)
    if pattern is None:
        assert message in str(caught.value)


def test_unknown_fields_are_left_out_and_listed():
    document = {"spec": {"nodeSelectr": {}, "containers": [{"name": "c", "imag": 1}]}, "x": 1}
    found = read(document, POD)
    assert found.document == {"spec": {"containers": [{"name": "c"}]}}
    assert found.unknown == ["spec.nodeSelectr", "spec.containers[0].imag", "x"]


def test_null_means_absent_and_in_maps_and_lists_zero():
    document = {
        "metadata": {"labels": {"a": None}, "annotations": None},
        "spec": {"nodeName": None, "containers": [{"name": "c", "args": [None]}]},
    }
    assert read(document, POD).document == {
        "metadata": {"labels": {"a": ""}},
        "spec": {"containers": [{"name": "c", "args": [""]}]},
    }


def test_a_document_that_needs_no_change_is_the_same():
    document = {"spec": {"containers": [{"name": "c"}]}, "metadata": {"labels": {"a": "b"}}}
    assert read(document, POD).document is document


def test_at_most_a_hundred_unknown_fields_are_listed():
    found = read({f"x{number}": 1 for number in range(200)}, POD)
    assert (found.document, len(found.unknown)) == ({}, 100)
