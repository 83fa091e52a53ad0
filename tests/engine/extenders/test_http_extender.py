"""One extender over real HTTP: requests, answers and failures (spec 04 §13.2)."""

import base64
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Container, ResourceRequirements
from kubestow.api.quantity import parse_quantity
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import SelfSigned, self_signed
from kubestow.config.extenders import ExtenderConfig, ExtenderTLSConfig, ManagedResource
from kubestow.config.scalars import Duration
from kubestow.engine.extenders import FilterAnswer, HostScore, HttpExtender, extender_chain
from kubestow.errors import ConfigError, ExtenderError
from kubestow.framework.extender import MetaVictims, Victims
from kubestow.testing import make_node, make_pod

Server = Any  # what the fixture `server` gives

SHORT = Duration(50_000_000)
POD = make_pod("p", namespace="ns", uid="u1")
NODES: list[Node] = [make_node("a"), make_node("b")]


# --- requests ---


def test_an_extender_with_a_node_cache_gets_names(server: Server) -> None:
    server.answers["filter"] = {"NodeNames": ["b"]}
    server.extender(filter_verb="filter", node_cache_capable=True).filter(POD, NODES)
    (request,) = server.requests
    assert request.path == "/s/filter"
    assert request.content_type == "application/json"
    assert request.body["Nodes"] is None
    assert request.body["NodeNames"] == ["a", "b"]
    assert request.body["Pod"]["metadata"]["name"] == "p"


def test_other_extenders_get_whole_nodes(server: Server) -> None:
    server.answers["prioritize"] = []
    server.extender(prioritize_verb="prioritize", weight=1).prioritize(POD, NODES)
    (request,) = server.requests
    assert request.body["NodeNames"] is None
    assert [item["metadata"]["name"] for item in request.body["Nodes"]["items"]] == ["a", "b"]


def test_a_binding_is_named_by_its_parts(server: Server) -> None:
    server.answers["bind"] = {"Error": ""}
    server.extender(bind_verb="bind").bind(POD, "a")
    assert server.requests[0].body == {
        "PodName": "p",
        "PodNamespace": "ns",
        "PodUID": "u1",
        "Node": "a",
    }


@pytest.mark.parametrize("knows_nodes", [True, False])
def test_victims_are_sent_by_uid_or_whole(server: Server, knows_nodes: bool) -> None:
    server.answers["preempt"] = {
        "nodeNameToMetaVictims": {"a": {"pods": [{"uid": "v"}], "NumPDBViolations": 1}}
    }
    extender = server.extender(preempt_verb="preempt", node_cache_capable=knows_nodes)
    answer = extender.preempt(POD, {"a": Victims([make_pod("victim", uid="v")], 1)})
    assert answer == {"a": MetaVictims(["v"], 1)}
    body = server.requests[0].body
    key, other = "NodeNameToMetaVictims", "NodeNameToVictims"
    if not knows_nodes:
        key, other = other, key
    assert body[other] is None
    (victim,) = body[key]["a"]["Pods"]
    assert victim == {"UID": "v"} if knows_nodes else victim["metadata"]["uid"] == "v"
    assert body[key]["a"]["NumPDBViolations"] == 1


# --- answers ---


@pytest.mark.parametrize(
    ("answer", "knows_nodes", "expected"),
    [
        pytest.param({}, True, FilterAnswer([]), id="13.6-3-nothing"),
        pytest.param(None, True, FilterAnswer([]), id="null"),
        pytest.param({"NodeNames": ["b", "a"]}, True, FilterAnswer(["b", "a"]), id="names"),
        pytest.param({"nodenames": ["b"]}, True, FilterAnswer(["b"]), id="case-of-keys"),
        pytest.param({"NodeNames": ["b"]}, False, FilterAnswer([]), id="names-not-asked-for"),
        pytest.param(
            {"Nodes": {"items": [{"metadata": {"name": "b"}}]}},
            True,
            FilterAnswer(["b"], has_objects=True),
            id="objects",
        ),
        pytest.param(
            {"FailedNodes": {"a": "x"}, "FailedAndUnresolvableNodes": {"b": None}, "More": 1},
            True,
            FilterAnswer([], failed={"a": "x"}, unresolvable={"b": ""}),
            id="reasons",
        ),
        pytest.param(b'  {"NodeNames": ["a"]} and more', True, FilterAnswer(["a"]), id="first"),
    ],
)
def test_filter_answers_are_read_as_go_reads_them(
    server: Server, answer: object, knows_nodes: bool, expected: FilterAnswer
) -> None:
    server.answers["filter"] = answer
    extender = server.extender(filter_verb="filter", node_cache_capable=knows_nodes)
    found = extender.filter(POD, NODES)
    assert found._replace(node_names=list(found.node_names)) == expected


def test_scores_are_read(server: Server) -> None:
    server.answers["p"] = [{"Host": "a", "Score": 7}, {"host": "b", "score": -1}, None]
    extender = server.extender(prioritize_verb="p", weight=1)
    assert extender.prioritize(POD, NODES) == [
        HostScore("a", 7),
        HostScore("b", -1),
        HostScore("", 0),
    ]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "no licence"}, "no licence", id="its-own-error"),
        pytest.param(b"", "nothing", id="empty"),
        pytest.param(b"<html>", "<html>", id="html"),
        pytest.param(b"\xff\xfe", "cannot decode", id="no-text"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="deep"),
        pytest.param([], "found [], expected an object", id="array"),
        pytest.param({"NodeNames": [{}]}, "found {} at NodeNames[0], expected a string", id="name"),
        pytest.param({"NodeNames": "a"}, 'found "a" at NodeNames, expected an array', id="names"),
        pytest.param({"FailedNodes": []}, "at FailedNodes, expected an object", id="failed"),
    ],
)
def test_an_unreadable_answer_is_shown_in_the_error(
    server: Server, answer: object, text: str
) -> None:
    server.answers["filter"] = answer
    extender = server.extender(filter_verb="filter", node_cache_capable=True)
    with pytest.raises(ExtenderError) as raised:
        extender.filter(POD, NODES)
    assert text in str(raised.value)


@pytest.mark.parametrize("score", ["7", 7.5, True, 2**63])
def test_a_score_is_a_whole_number(server: Server, score: object) -> None:
    server.answers["p"] = [{"Host": "a", "Score": score}]
    with pytest.raises(ExtenderError, match=r"at \[0\].Score, expected a whole number"):
        server.extender(prioritize_verb="p", weight=1).prioritize(POD, NODES)


# --- failures ---


def test_13_6_4_another_status_is_an_error(server: Server) -> None:
    server.answers["filter"] = 500
    with pytest.raises(ExtenderError) as raised:
        server.extender(filter_verb="filter").filter(POD, NODES)
    text = f"failed filter with extender at URL {server.url}/filter, code 500"
    assert str(raised.value) == text


def test_the_rest_of_a_refusal_is_not_waited_for(server: Server) -> None:
    def refuse(handler: Any) -> None:
        handler.send_response(503)
        handler.end_headers()
        server.released.wait(300)

    server.answers["filter"] = refuse
    with pytest.raises(ExtenderError, match="code 503"):
        server.extender(filter_verb="filter").filter(POD, NODES)


def test_an_answer_that_does_not_come_is_not_waited_for(server: Server) -> None:
    server.answers["filter"] = server.never_answer
    with pytest.raises(ExtenderError, match=r"no answer within 0\.05 s"):
        server.extender(filter_verb="filter", http_timeout=SHORT).filter(POD, NODES)


def test_an_answer_that_does_not_end_is_not_waited_for(server: Server) -> None:
    server.answers["filter"] = server.answer_forever
    with pytest.raises(ExtenderError, match=r"no answer within 0\.05 s"):
        server.extender(filter_verb="filter", http_timeout=SHORT).filter(POD, NODES)


def test_a_huge_answer_is_refused(server: Server) -> None:
    server.answers["filter"] = b" " * 5000
    extender = server.extender(filter_verb="filter", answer_bytes_max=4096)
    with pytest.raises(ExtenderError, match="the answer has more than 4096 bytes"):
        extender.filter(POD, NODES)


def test_an_answer_that_is_no_http_is_an_error(server: Server) -> None:
    server.answers["filter"] = lambda handler: handler.wfile.write(b"SSH-2.0\r\n\r\n")
    with pytest.raises(ExtenderError, match="the answer is no HTTP"):
        server.extender(filter_verb="filter").filter(POD, NODES)


def test_a_connection_that_is_closed_is_an_error(server: Server) -> None:
    server.answers["filter"] = lambda handler: None
    with pytest.raises(ExtenderError, match="closed before an answer came"):
        server.extender(filter_verb="filter").filter(POD, NODES)


def test_an_extender_that_is_gone_is_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        extender = HttpExtender(ExtenderConfig(url_prefix=url, filter_verb="filter"), environ={})
        with pytest.raises(ExtenderError, match=f'Post "{url}/filter": Connection refused'):
            extender.filter(POD, NODES)


def test_a_url_without_scheme_is_an_error() -> None:
    extender = HttpExtender(ExtenderConfig(url_prefix="example", filter_verb="filter"))
    with pytest.raises(ExtenderError, match='Post "example/filter": cannot use the server'):
        extender.filter(POD, NODES)


def test_a_proxy_gets_the_whole_url(server: Server) -> None:
    server.answers["filter"] = {"NodeNames": ["a"]}
    config = ExtenderConfig(
        url_prefix="http://extender.example", filter_verb="filter", node_cache_capable=True
    )
    environ = {"HTTP_PROXY": server.url.removesuffix("/s")}
    answer = HttpExtender(config, environ=environ).filter(POD, NODES)
    assert list(answer.node_names) == ["a"]
    assert server.requests[0].path == "http://extender.example/filter"


@pytest.mark.parametrize("is_proxied", [False, True])
def test_a_password_is_sent_as_a_header_and_shown_nowhere(server: Server, is_proxied: bool) -> None:
    server.answers["filter"] = 500
    address = server.url.removeprefix("http://")
    host = "extender.example/s" if is_proxied else address
    config = ExtenderConfig(url_prefix=f"http://m%40e:hunter2@{host}", filter_verb="filter")
    environ = {"HTTP_PROXY": f"http://{address.removesuffix('/s')}"} if is_proxied else {}
    extender = HttpExtender(config, environ=environ)
    with pytest.raises(ExtenderError) as raised:
        extender.filter(POD, NODES)
    (request,) = server.requests
    assert request.authorization == "Basic " + base64.b64encode(b"m@e:hunter2").decode()
    assert request.path == (f"http://{host}/filter" if is_proxied else "/s/filter")
    url = f"http://REDACTED@{host}"
    assert extender.name == url
    assert str(raised.value) == f"failed filter with extender at URL {url}/filter, code 500"


def test_a_password_is_not_in_errors() -> None:
    config = ExtenderConfig(url_prefix="http://me:hunter2@127.0.0.1:1", filter_verb="filter")
    with pytest.raises(ExtenderError, match=r'Post "http://REDACTED@127.0.0.1:1/filter": '):
        HttpExtender(config, environ={}).filter(POD, NODES)


# --- TLS ---


@pytest.fixture
def certificate() -> SelfSigned:
    return self_signed(now_ns=SystemClock().now_ns())


def test_a_certificate_of_an_unknown_authority_is_an_error(
    make_server: Callable[..., Server], certificate: SelfSigned
) -> None:
    server = make_server(certificate)
    with pytest.raises(ExtenderError, match="tls: failed to verify certificate"):
        server.extender(filter_verb="filter").filter(POD, NODES)


@pytest.mark.parametrize("options", [{"enable_https": True}, {"insecure": True}, {"ca": True}])
def test_certificates_that_are_accepted(
    make_server: Callable[..., Server], certificate: SelfSigned, options: dict[str, bool]
) -> None:
    server = make_server(certificate)
    server.answers["filter"] = {"NodeNames": ["a"]}
    tls = None
    if "insecure" in options:
        tls = ExtenderTLSConfig(insecure=True)
    elif "ca" in options:
        tls = ExtenderTLSConfig(ca_data=certificate.authority)
    extender = server.extender(
        filter_verb="filter",
        node_cache_capable=True,
        enable_https="enable_https" in options,
        tls_config=tls,
    )
    assert list(extender.filter(POD, NODES).node_names) == ["a"]


def test_an_authority_with_insecure_is_refused() -> None:
    tls = ExtenderTLSConfig(insecure=True, ca_data=base64.b64decode("eA=="))
    config = ExtenderConfig(url_prefix="https://e", tls_config=tls)
    with pytest.raises(ConfigError) as raised:
        extender_chain([config], rng=np.random.default_rng(0))
    assert str(raised.value) == (
        "couldn't build extenders: "
        "specifying a root certificates file with the insecure flag is not allowed"
    )


def test_a_server_without_tls_is_an_error(server: Server) -> None:
    url = server.url.replace("http:", "https:")
    config = ExtenderConfig(url_prefix=url, filter_verb="filter", enable_https=True)
    with pytest.raises(ExtenderError, match=f'Post "{url}/filter": '):
        HttpExtender(config, environ={}).filter(POD, NODES)


# --- interest ---

GPU = "example.com/gpu"


def _asking(*, requests: str = "", limits: str = "", is_init: bool = False) -> Any:
    zero = parse_quantity("0")
    resources = ResourceRequirements(
        requests={requests: zero} if requests else None, limits={limits: zero} if limits else None
    )
    container = Container(name="c", resources=resources)
    return make_pod(
        containers=() if is_init else (container,), init_containers=(container,) if is_init else ()
    )


@pytest.mark.parametrize(
    ("pod", "is_interested"),
    [
        pytest.param(_asking(limits=GPU, is_init=True), True, id="13.6-6-zero-limit-of-init"),
        pytest.param(_asking(requests=GPU), True, id="request"),
        pytest.param(_asking(requests="cpu"), False, id="another"),
        pytest.param(_asking(), False, id="nothing"),
    ],
)
def test_managed_resources_decide_on_interest(pod: Any, is_interested: bool) -> None:
    managed = (ManagedResource(name=GPU),)
    extender = HttpExtender(ExtenderConfig(url_prefix="http://e", managed_resources=managed))
    assert extender.is_interested(pod) is is_interested
    assert HttpExtender(ExtenderConfig(url_prefix="http://e")).is_interested(pod)
