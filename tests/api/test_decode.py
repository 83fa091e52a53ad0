"""Decoding: values are read exactly, and errors name object, field and value."""

from datetime import UTC, datetime

import msgspec
import pytest

from kubestow.api.coordination import Event
from kubestow.api.decode import (
    KINDS,
    class_of,
    convert,
    dec_hook,
    decode_json,
    enc_hook,
    encode_json,
    quoted,
    to_document,
)
from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.quantity import FORMAT_ERROR, ZERO, Quantity, parse_quantity
from kubestow.api.storage import CSIStorageCapacity
from kubestow.api.workload import PodDisruptionBudget, Service
from kubestow.errors import DecodeError

META = {"name": "a-1", "namespace": "web"}


def with_requests(**requests: object) -> JsonObject:
    return {"metadata": META, "spec": {"containers": [{"resources": {"requests": requests}}]}}


def test_a_pod_decodes_straight_from_bytes() -> None:
    raw = b"""{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-1", "namespace": "web",
        "creationTimestamp": "2026-01-31T12:00:00Z"}, "spec": {"priority": 7, "unknown": [1],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": " 500m ", "memory": 1e3}}}],
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}}"""
    pod = decode_json(Pod, raw)
    assert pod.metadata.creation_timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert pod.spec.priority == 7
    assert pod.spec.containers[0].resources.requests == {
        "cpu": parse_quantity("500m"),
        "memory": parse_quantity("1k"),
    }
    assert pod.spec.volumes[0].ephemeral is not None


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_decodes_and_encodes_what_it_needs_at_least(kind: str) -> None:
    document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}
    obj = convert(KINDS[kind], document)
    assert obj.metadata.name == "x"
    assert to_document(obj) == document


def test_a_written_object_reads_back_the_same() -> None:
    document = with_requests(cpu="0.5", memory="1Gi")
    document["spec"]["nodeSelector"] = {}
    pod = convert(Pod, document)
    assert decode_json(Pod, encode_json(pod)) == pod
    # Defaults are left out; an empty map that differs from an absent one is not.
    assert to_document(pod) == {
        "metadata": META,
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "nodeSelector": {},
        },
    }


# --- Nulls --------------------------------------------------------------------------------------

NULLS: JsonObject = {
    "metadata": {"name": "a", "namespace": None, "labels": None, "creationTimestamp": None},
    "spec": {"containers": [{"name": "c", "ports": None, "resources": None}], "volumes": None},
    "status": None,
}


def test_null_counts_as_absent() -> None:
    expected = convert(
        Pod, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], "volumes": []}}
    )
    assert convert(Pod, NULLS) == expected
    assert decode_json(Pod, msgspec.json.encode(NULLS)) == expected


def test_ignoring_nulls_does_not_change_the_document() -> None:
    convert(Pod, NULLS)
    assert NULLS["metadata"]["labels"] is None


def test_null_in_a_map_is_the_zero_value() -> None:
    document = with_requests(cpu=None, memory="1") | {"metadata": {"labels": {"a": None, "b": "c"}}}
    pod = convert(Pod, document)
    assert pod.metadata.labels == {"a": "", "b": "c"}
    # The key stays: a request of zero is not the same as no request.
    assert pod.spec.containers[0].resources.requests == {"cpu": ZERO, "memory": parse_quantity("1")}


def test_null_in_a_list_is_an_empty_entry() -> None:
    pod = convert(Pod, {"spec": {"containers": [None, {"name": "c"}]}})
    assert [container.name for container in pod.spec.containers] == ["", "c"]


def test_null_keeps_its_meaning_where_it_has_one() -> None:
    service = convert(Service, {"metadata": {"labels": None}, "spec": {"selector": None}})
    assert service.spec.selector is None
    budget = convert(
        PodDisruptionBudget,
        {"metadata": {"labels": None}, "status": {"disruptedPods": {"p": None}}},
    )
    assert budget.status.disrupted_pods == {"p": None}


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            with_requests(memory="1Gi", **{"nvidia.com/gpu": "1x"}, cpu="2y"),
            'cannot decode Pod "web/a-1": spec.containers[0].resources.requests["nvidia.com/gpu"]'
            f' is "1x": {FORMAT_ERROR}',
            id="quantity-names-the-first-bad-key",
        ),
        pytest.param(
            with_requests(cpu=True),
            'cannot decode Pod "web/a-1": spec.containers[0].resources.requests.cpu is true:'
            ' expected a quantity such as "500m" or "2Gi"',
            id="quantity-of-another-type",
        ),
        pytest.param(
            {"metadata": META | {"labels": {"ok": "x", "on": True}}},
            'cannot decode Pod "web/a-1": metadata.labels.on is true: expected a string;'
            " put it in quotes",
            id="label-not-a-string",
        ),
        pytest.param(
            {"metadata": META | {"labels": {"a": 1, "1b": "x"}}},
            'cannot decode Pod "web/a-1": metadata.labels.a is 1: expected a string;'
            " put it in quotes",
            id="key-of-one-letter",
        ),
        pytest.param(
            {"metadata": META | {"labels": {"1b": 1}}},
            'cannot decode Pod "web/a-1": metadata.labels["1b"] is 1: expected a string;'
            " put it in quotes",
            id="key-that-begins-with-a-digit",
        ),
        pytest.param(
            {"metadata": META | {"labels": {1: "x"}}},
            'cannot decode Pod "web/a-1": keys of metadata.labels: expected a string;'
            " put it in quotes",
            id="key-not-a-string",
        ),
        pytest.param(
            {"metadata": {"generateName": "a-"}, "spec": {"priority": "high"}},
            'cannot decode Pod "a-": spec.priority is "high": expected a whole number',
            id="optional-field",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": "yesterday"}},
            'cannot decode Pod: metadata.creationTimestamp is "yesterday":'
            ' expected a time such as "2026-01-31T12:00:00Z"',
            id="time",
        ),
        pytest.param(
            {"metadata": META, "spec": {"containers": {"name": "c"}}},
            'cannot decode Pod "web/a-1": spec.containers is {"name": "c"}: expected a list',
            id="map-for-list",
        ),
        pytest.param(
            {"metadata": META | {"labels": None}, "spec": {"containers": [{"name": 5}]}},
            'cannot decode Pod "web/a-1": spec.containers[0].name is 5: expected a string;'
            " put it in quotes",
            id="beside-nulls",
        ),
    ],
)
def test_an_error_names_object_field_and_value(document: JsonObject, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        convert(Pod, document)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b'{"metadata":', "cannot decode Node: not JSON: Input data was", id="cut"),
        pytest.param(b"", "cannot decode Node: not JSON: Input data was truncated", id="empty"),
        pytest.param(b"[1]", "cannot decode Node from [1]: expected a map", id="list"),
        pytest.param(
            b'{"metadata": 1, "spec"', "cannot decode Node: not JSON", id="wrong-then-cut"
        ),
        pytest.param(b"[" * 100_000, "cannot decode Node: not JSON: Input data was", id="deep"),
        pytest.param(
            b'{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": ""}}}',
            'cannot decode Node "n": status.allocatable.pods is "": quantities must match',
            id="field",
        ),
    ],
)
def test_errors_from_bytes(raw: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_json(Node, raw)
    assert str(caught.value).startswith(message)


def test_a_field_that_is_a_quantity_itself_is_read() -> None:
    capacity = convert(CSIStorageCapacity, {"capacity": "1Gi", "maximumVolumeSize": None})
    assert capacity.capacity == parse_quantity("1Gi")
    # `null` means a zero quantity everywhere (spec 01 §1.1) but here absence has a meaning.
    assert capacity.maximum_volume_size is None


def test_long_values_are_cut() -> None:
    assert quoted("x" * 500) == '"' + "x" * 79 + "…"


def test_the_hooks_refuse_unknown_types() -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        dec_hook(complex, 1)
    with pytest.raises(NotImplementedError, match="complex"):
        enc_hook(1j)
    assert enc_hook(dec_hook(Quantity, 2)) == "2"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, Pod, id="core"),
        pytest.param({"kind": "Pod"}, Pod, id="no-version"),
        pytest.param({"kind": "Service", "apiVersion": "serving.knative.dev/v1"}, None, id="group"),
        pytest.param({"kind": "Event", "apiVersion": "events.k8s.io/v1"}, Event, id="event"),
        pytest.param({"kind": "Event", "apiVersion": "v1"}, None, id="event-of-the-core-group"),
        pytest.param({"kind": "Secret"}, None, id="unknown"),
        pytest.param({"kind": ["Pod"]}, None, id="no-text"),
        pytest.param({}, None, id="no-kind"),
    ],
)
def test_the_class_of_a_document(document: JsonObject, expected: type | None) -> None:
    assert class_of(document) is expected
