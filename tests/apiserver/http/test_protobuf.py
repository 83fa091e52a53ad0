"""Bodies in the protobuf encoding, written here field by field."""

import base64
from typing import Any

import pytest

from kubestow.apiserver.http.protobuf import decode_protobuf
from kubestow.errors import ApiError


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    raw = b""
    while number > 0x7F:
        raw += bytes([number & 0x7F | 0x80])
        number >>= 7
    return raw + bytes([number])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def body(api_version: str, kind: str, *fields: bytes) -> bytes:
    type_meta = field(1, api_version) + field(2, kind)
    return b"k8s\x00" + field(1, type_meta) + field(2, b"".join(fields)) + field(3, "")


def named(name: str) -> bytes:
    return field(1, field(1, name) + field(8, b""))


def test_an_object_is_read_with_its_kind():
    raw = body("v1", "Namespace", named("shop"), field(2, b""), field(3, field(1, "")))
    assert decode_protobuf(raw) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop"},
    }


def test_maps_lists_bytes_and_numbers():
    raw = body(
        "v1",
        "Secret",
        field(1, field(1, "s") + field(11, field(1, "app") + field(2, "web"))),
        field(2, field(1, "key") + field(2, b"\x00\x01")),
        field(3, "Opaque"),
    )
    document = decode_protobuf(raw)
    assert document["metadata"] == {"name": "s", "labels": {"app": "web"}}
    assert document["data"] == {"key": base64.b64encode(b"\x00\x01").decode()}
    assert document["type"] == "Opaque"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(field(1, 0) + field(2, 3) + field(3, ""), 3, id="number"),
        pytest.param(field(1, 1) + field(2, 0) + field(3, "25%"), "25%", id="text"),
    ],
)
def test_a_number_or_a_text(raw: bytes, expected: int | str):
    spec = field(2, field(1, raw))
    document = decode_protobuf(body("policy/v1", "PodDisruptionBudget", named("b"), spec))
    assert document["spec"] == {"minAvailable": expected}


def test_zero_is_kept_where_it_means_something():
    spec = field(1, 0) + field(5, 0) + field(7, 0)
    document = decode_protobuf(body("apps/v1", "Deployment", named("web"), field(2, spec)))
    assert document["spec"] == {"replicas": 0}


def test_negative_numbers_and_times():
    value = body("scheduling.k8s.io/v1", "PriorityClass", named("low"), field(2, -5))
    assert decode_protobuf(value)["value"] == -5
    time = field(1, 1_700_000_000) + field(2, 123_456_789)
    spec = field(1, "me") + field(2, 15) + field(4, time)
    lease = decode_protobuf(body("coordination.k8s.io/v1", "Lease", named("l"), field(2, spec)))
    assert lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2023-11-14T22:13:20.123456Z",
    }


def test_the_two_events_are_distinguished_by_their_version():
    new = decode_protobuf(body("events.k8s.io/v1", "Event", named("e"), field(10, "hello")))
    core = decode_protobuf(body("v1", "Event", named("e"), field(4, "hello")))
    assert (new["note"], core["message"]) == ("hello", "hello")


@pytest.mark.parametrize(
    ("raw", "code", "text"),
    [
        pytest.param(b"{}", 400, "not in the protobuf encoding", id="not-protobuf"),
        pytest.param(body("v1", "Widget"), 415, 'kind "Widget"', id="unknown-kind"),
        pytest.param(
            body("v1", "Namespace", field(99, "x")),
            415,
            'field 99 of "Namespace"',
            id="unknown-field",
        ),
        pytest.param(body("v1", "Namespace", named("x"))[:-6], 400, "ends in the middle", id="cut"),
        pytest.param(b"k8s\x00\x0b", 400, "unknown wire type 3", id="odd-type"),
        pytest.param(b"k8s\x00\xff", 400, "middle of a number", id="cut-number"),
        pytest.param(
            body("v1", "Namespace", field(1, 5)), 400, "a number where a text", id="wrong-type"
        ),
        pytest.param(
            body("v1", "Namespace", named("x")).replace(b"x", b"\xff"),
            400,
            "not UTF-8",
            id="no-text",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_and_never_lost(raw: bytes, code: int, text: str):
    with pytest.raises(ApiError, match=text) as caught:
        decode_protobuf(raw)
    assert caught.value.code == code


def test_an_unknown_field_without_content_is_no_loss():
    document = decode_protobuf(body("v1", "Namespace", named("x"), field(99, b""), field(98, 0)))
    assert document["metadata"] == {"name": "x"}


def test_fields_of_embedded_messages_are_fields_of_the_outer_one():
    volume = field(1, "data") + field(2, field(2, b""))
    document = decode_protobuf(body("v1", "Pod", named("p"), field(2, field(1, volume))))
    assert document["spec"] == {"volumes": [{"name": "data", "emptyDir": {}}]}


def test_the_server_takes_it(serve: Any):
    raw = body("v1", "ConfigMap", named("c"), field(2, field(1, "a") + field(2, "b")))

    async def work(client: Any):
        return await client.call(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            raw,
            content_type="application/vnd.kubernetes.protobuf",
        )

    reply = serve(work)
    assert reply.status == 201
    assert reply.body["data"] == {"a": "b"}
