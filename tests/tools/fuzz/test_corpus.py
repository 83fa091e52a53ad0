"""Inputs that once failed: found by fuzzing, by reading, or by a real server."""

from typing import Any

import pytest

from tools.fuzz.documents import POD
from tools.fuzz.targets import TARGETS

BY_NAME = {target.name: target for target in TARGETS}
DEEP_OBJECT = b'{"metadata":{"managedFields":[' + b'{"f:a":' * 9_995 + b"1" + b"}" * 9_995 + b"]}}"

CORPUS: list[tuple[str, Any]] = [
    ("watch frames", b'{"type":"ADDED","object":%s}\n' % DEEP_OBJECT),
    ("watch frames", b'{"type":"DELETED","object":%s}\n' % DEEP_OBJECT),
    ("watch frames", b'{"type":"ERROR","object":{"message":"\xff"}}\n'),
    ("watch frames", b'{"type":"ADDED","object":' + b"[" * 20_000),
    ("list page", b'{"metadata":{},"items":[%s]}' % DEEP_OBJECT),
    ("list page", b'{"metadata":{"resourceVersion":"\xff"},"items":[]}'),
    ("HTTP answer", b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    ("manifest, YAML", b"!!int x"),
    ("manifest, YAML", b"!!bool x"),
    ("manifest, YAML", b"!!timestamp x"),
    ("manifest, YAML", b"kind: Pod\nspec: {priority: " + b"9" * 5000 + b"}"),
    ("manifest, YAML", b"[" * 100_000),
    ("manifest, JSON", b'{"kind": "Pod", "metadata": ' + b"[" * 900 + b"]" * 900 + b"}"),
    ("configuration", b'{"a": ' + b"9" * 5000 + b"}"),
    ("configuration", b"a: " + b"{a: " * 5000),
    ("kubeconfig", b"users: 2024-99-99"),
    (
        "kubeconfig",
        b'current-context: c\nclusters: [{name: c, cluster: {server: "http://["}}]\n'
        b"contexts: [{name: c, context: {cluster: c}}]",
    ),
    ("kubeconfig", b"[" * 100_000),
    ("recording", b'{"upstream": "\xff"}'),
    ("recording", b"[" * 100_000),
    ("body, protobuf", b"k8s\x00\n\x0e\n\x02v1\x12\x08Nam\x80pace\x12\x07\n\x05\n\x03abc"),
    ("query", {"limit": "9" * 5000}),
    ("query", {"resourceVersion": "9" * 5000}),
    ("query", {"timeoutSeconds": "9" * 400}),
    ("query", {"limit": "\u0663"}),
    ("merge patch", (POD, {"spec": {"containers": [{"name": []}]}})),
    ("merge patch", (POD, {"$setElementOrder/finalizers": [[]], "finalizers": [{}]})),
    ("merge patch", ({"spec": {"volumes": [{"name": []}]}}, {"spec": {"volumes": []}})),
    ("flags", ["--tls-cipher-suites=\n("]),
    ("label query", "," * 100_000),
]


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(*entry, id=f"{number}-{entry[0]}") for number, entry in enumerate(CORPUS)],
)
def test_an_input_that_once_failed_is_refused_or_read(name: str, value: Any) -> None:
    BY_NAME[name].check(value)
