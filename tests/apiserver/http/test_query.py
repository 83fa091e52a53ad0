"""Invalid parameters, bodies and forms are refused."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.apiserver.http.bodies import decoded_json, decoded_yaml
from kubestow.apiserver.http.query import Query, finalizer_of
from kubestow.apiserver.http.representation import Form, negotiate
from kubestow.errors import ApiError

DEFAULT_PODS = "/api/v1/namespaces/default/pods"
Serve = Callable[..., Any]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"watch": "maybe"}, id="flag"),
        pytest.param({"resourceVersion": "x1"}, id="version"),
        pytest.param({"resourceVersion": "9" * 5_000}, id="huge-version"),
        pytest.param({"resourceVersion": "-1"}, id="negative-version"),
        pytest.param({"limit": "9" * 5_000}, id="huge-limit"),
        pytest.param({"limit": "٣"}, id="digits-of-another-script"),
        pytest.param({"watch": "1", "timeoutSeconds": "soon"}, id="timeout-of-a-watch"),
        pytest.param({"continue": "ü"}, id="token-in-another-script"),
        pytest.param({"continue": "!!"}, id="token"),
        pytest.param({"labelSelector": "a=b=c"}, id="labels"),
        pytest.param({"labelSelector": "a in (b,c"}, id="parenthesis"),
        pytest.param({"limit": "9" * 5000}, id="long-limit"),
        pytest.param({"limit": "\u0663"}, id="limit-in-another-script"),
        pytest.param({"resourceVersion": "9" * 5000}, id="long-version"),
        pytest.param({"watch": "true", "timeoutSeconds": "9" * 400}, id="long-time"),
        pytest.param({"continue": "\u00e9"}, id="token-not-ascii"),
        pytest.param({"continue": "W1tb" * 1500}, id="deep-token"),
    ],
)
def test_an_invalid_parameter_is_refused(serve: Serve, query: dict[str, str]):
    async def work(client: Any):
        return await client.get(DEFAULT_PODS, **query)

    reply = serve(work)
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


def test_an_unknown_match_is_refused_as_an_option(serve: Serve):
    async def work(client: Any):
        return await client.get(DEFAULT_PODS, resourceVersionMatch="Roughly")

    reply = serve(work)
    assert (reply.status, reply.body["details"]["kind"]) == (422, "ListOptions")


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("true", True), ("0", False), ("False", False), ("", False)]
)
def test_flags_are_read_as_go_reads_them(text: str, expected: bool):
    assert Query({"watch": text}).flag("watch") is expected


def test_a_policy_has_a_finalizer():
    policies = ("", "Background", "Foreground", "Orphan")
    assert [finalizer_of(policy) for policy in policies] == [
        "",
        "",
        "foregroundDeletion",
        "orphan",
    ]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", Form.OBJECT, id="anything"),
        pytest.param("*/*", Form.OBJECT, id="star"),
        pytest.param("application/json", Form.OBJECT, id="json"),
        pytest.param(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form.TABLE, id="table"
        ),
        pytest.param(
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            Form.OBJECT,
            id="a-table-of-the-future",
        ),
        pytest.param(
            "application/vnd.kubernetes.protobuf,application/json", Form.OBJECT, id="second-best"
        ),
        pytest.param(
            "application/json; as=PartialObjectMetadata ;g=meta.k8s.io;v=v1",
            Form.METADATA,
            id="with-blanks",
        ),
    ],
)
def test_the_first_supported_form_is_used(accept: str, expected: Form):
    assert negotiate(accept) is expected


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Poem"])
def test_an_unsupported_form_is_not_acceptable(accept: str):
    with pytest.raises(ApiError) as caught:
        negotiate(accept)
    assert caught.value.code == 406


@pytest.mark.parametrize("levels", [200, 5000])
def test_a_deep_body_is_refused(levels: int):
    body = b'{"a":' * levels + b"1" + b"}" * levels
    for decode in (decoded_json, decoded_yaml):
        with pytest.raises(ApiError, match="nested more than 150 levels deep") as caught:
            decode(body)
        assert caught.value.code == 400


def test_a_body_is_one_document():
    assert decoded_yaml(b"a: 1\n---\n") == {"a": 1}
    assert decoded_yaml(b"") is None
    with pytest.raises(ApiError, match="found 2 documents, expected one"):
        decoded_yaml(b"a: 1\n---\nb: 2\n")
