"""Extenders of a Policy in a v1.9 scheduler, over real HTTP on the loopback (spec 04 §19.1)."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.config.extenders import ExtenderConfig, ExtenderTLSConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.shared.policy import Policy, convert_policy
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.engine.decide import DeciderV19, DecisionV19
from kubestow.editions.v1_9.engine.extenders import ExtendersV19, HttpExtenderV19, extenders_v1_9
from kubestow.editions.v1_9.engine.scheduler import SchedulerV19
from kubestow.editions.v1_9.plugins.pod import PodInfoV19
from kubestow.editions.v1_9.simulator.embedded import cluster_maker
from kubestow.engine.extenders.chain import FilterAnswer
from kubestow.errors import ConfigError, ExtenderError
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import RecordedEvents
from tools.bench_v1_9 import BenchV19

FILTER: dict[str, Any] = {"filterVerb": "filter", "nodeCacheCapable": True}
SCORE: dict[str, Any] = {"prioritizeVerb": "score", "weight": 2}


class Server:
    """`answers` are by path: a document, or a status code."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, json.loads(body)))
                answer = outer.answers[self.path]
                raw = json.dumps(answer).encode()
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def policy(self, *extenders: dict[str, Any], **more: Any) -> Policy:
        """A Policy with extenders under /0, /1, … of this server."""
        entries = [
            {"urlPrefix": f"{self.url}/{index}/", **extender}
            for index, extender in enumerate(extenders)
        ]
        return convert_policy({"kind": "Policy", "extenders": entries, **more})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Server()
    yield server
    server.stop()


def decide(policy: Policy, *nodes: Node, pod: Pod | None = None) -> DecisionV19:
    bench = BenchV19(nodes or [make_node(name) for name in ("a", "b", "c")])
    bench.snapshot.refresh(bench.cache)
    algorithm = build_algorithm(policy)
    extenders = extenders_v1_9(algorithm.extenders)
    decider = DeciderV19(bench.snapshot, bench.cluster, algorithm, extenders=extenders)
    return decider.decide(PodInfoV19(pod or make_pod("p")))


def names(decision: DecisionV19) -> list[str]:
    rows: list[int] = decision.feasible.tolist()
    return [decision.node_names[row] for row in rows]


# --- filter ---


def test_extenders_filter_one_after_the_other_what_is_left(server: Server) -> None:
    server.answers = {
        "/0/filter": {"NodeNames": ["c", "a"], "FailedNodes": {"b": "no gpu"}},
        "/1/filter": {"Nodes": {"items": [{"metadata": {"name": "a"}}]}},
    }
    decision = decide(server.policy(FILTER, {"filterVerb": "filter"}))
    assert server.paths == ["/0/filter", "/1/filter"]
    assert server.requests[0][1]["NodeNames"] == ["a", "b", "c"]
    sent = server.requests[1][1]["Nodes"]["items"]
    assert [item["metadata"]["name"] for item in sent] == ["a", "c"]
    assert decision.node_name == "a"
    assert decision.total is None
    assert [decision.reasons(row) for row in range(3)] == [(), ("no gpu",), ()]


def test_no_extender_is_called_when_no_node_is_left(server: Server) -> None:
    server.answers = {"/0/filter": {"FailedNodes": {"a": "x", "b": "x", "c": "y"}}}
    decision = decide(server.policy(FILTER, FILTER))
    assert server.paths == ["/0/filter"]
    assert decision.is_fit_error
    assert decision.error == "0/3 nodes are available: 1 y, 2 x."


def test_no_extender_is_called_when_predicates_leave_no_node(server: Server) -> None:
    decision = decide(server.policy(FILTER), make_node("a", unschedulable=True))
    assert decision.is_fit_error
    assert server.paths == []


def test_messages_follow_the_reasons_of_predicates_and_of_earlier_extenders(
    server: Server,
) -> None:
    server.answers = {
        "/0/filter": {"NodeNames": ["b"], "FailedNodes": {"a": "x"}},
        "/1/filter": {"NodeNames": [], "FailedNodes": {"a": "y", "b": "y", "gone": "y"}},
    }
    nodes = make_node("a", unschedulable=True), make_node("b")
    decision = decide(server.policy(FILTER, FILTER), *nodes)
    assert decision.reasons(0)[-2:] == ("x", "y")
    assert len(decision.reasons(0)) == 3
    assert decision.reasons(1) == ("y",)
    assert "1 x, 3 y" in decision.error


def test_nodes_that_are_left_are_listed_once_and_in_order(server: Server) -> None:
    server.answers = {"/0/filter": {"NodeNames": ["c", "a", "c"]}}
    assert names(decide(server.policy(FILTER))) == ["a", "c"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(500, "Failed filter with extender at URL {url}/0/, code 500", id="status"),
        pytest.param({"Error": "out of order"}, "out of order", id="error-in-the-answer"),
        pytest.param(
            {"NodeNames": ["z"]},
            'extender "{url}/0/" claims a filtered node "z" which is not found in the input node '
            "list",
            id="unknown-node",
        ),
    ],
)
def test_any_error_of_a_filter_fails_the_attempt(server: Server, answer: Any, text: str) -> None:
    server.answers = {"/0/filter": answer}
    # v1.9 does not have these two fields.
    younger = {"ignorable": True, "managedResources": [{"name": "example.com/gpu"}]}
    decision = decide(server.policy({**FILTER, **younger}, FILTER))
    assert decision.error == text.format(url=server.url)
    assert not decision.is_fit_error
    assert not decision.is_scheduled
    assert server.paths == ["/0/filter"]


def test_any_exception_of_an_extender_becomes_an_extender_error() -> None:
    class Broken(HttpExtenderV19):
        def filter(self, pod: Pod, nodes: Any) -> FilterAnswer:
            raise RuntimeError("broken")

    bench = BenchV19([make_node("a")])
    bench.snapshot.refresh(bench.cache)
    extenders = ExtendersV19([Broken(ExtenderConfig(url_prefix="http://e", filter_verb="f"))])
    with pytest.raises(ExtenderError, match="broken"):
        extenders.filter(make_pod(), np.arange(1), bench.snapshot)


# --- prioritize ---


def test_scores_count_by_weight_and_not_tenfold(server: Server) -> None:
    server.answers = {"/0/score": [{"Host": "a", "Score": 7}, {"Host": "z", "Score": 9}]}
    decision = decide(server.policy(SCORE))
    assert decision.total is not None
    # Example 4 of spec 04 §19.1. Without priorities, but with extenders, nodes begin at 0.
    assert decision.total.tolist() == [14, 0, 0]
    assert decision.node_name == "a"


def test_scores_are_added_to_those_of_priorities(server: Server) -> None:
    server.answers = {
        "/0/score": [{"Host": "c", "Score": 1}, {"Host": "c", "Score": 2}],
        "/1/filter": {"NodeNames": ["c", "b"]},
        "/2/score": [{"Host": "b", "Score": 4}],
    }
    priorities = [{"name": "EqualPriority", "weight": 3}]
    extenders = SCORE, FILTER, {**SCORE, "weight": 1}
    decision = decide(server.policy(*extenders, priorities=priorities))
    assert decision.total is not None
    assert names(decision) == ["b", "c"]
    assert decision.total.tolist() == [3 + 4, 3 + 6]


def test_an_extender_that_cannot_score_is_skipped(server: Server) -> None:
    server.answers = {"/0/score": 500, "/1/score": [{"Host": "b", "Score": 1}]}
    decision = decide(server.policy(SCORE, SCORE))
    assert decision.total is not None
    assert decision.total.tolist() == [0, 2, 0]
    assert decision.node_name == "b"


# --- bind ---


async def place(policy: Policy) -> tuple[Pod, RecordedEvents]:
    """Schedule a pod on a cluster with one node."""
    clock = VirtualClock(asyncio.get_running_loop())
    client = MemoryClient(MemoryCluster(clock, admission=False))
    objects, events = ClusterObjects(), RecordedEvents()
    algorithm = build_algorithm(policy)
    scheduler = SchedulerV19(
        algorithm,
        client=client,
        objects=objects,
        events=events,
        clock=clock,
        extenders=extenders_v1_9(algorithm.extenders, in_thread=False),
    )
    objects.put(await client.create(make_node("n")))
    pod = await client.create(make_pod("p", uid="u"))
    objects.put(pod)
    scheduler.schedule_one(pod)
    for _ in range(5):
        await asyncio.sleep(0)
    scheduler.stop()
    return await client.get(Pod, "default", "p"), events


def test_the_extender_with_a_bind_verb_binds_in_place_of_the_api(server: Server) -> None:
    server.answers = {"/0/filter": {"NodeNames": ["n"]}, "/1/bind": {}}
    pod, events = run_in_virtual_time(place(server.policy(FILTER, {"BindVerb": "bind"})))
    assert server.requests[-1][0] == "/1/bind"
    assert server.requests[-1][1]["Node"] == "n"
    assert server.requests[-1][1]["PodName"] == "p"
    assert pod.spec.node_name == ""
    assert [event.note for event in events.events] == ["Successfully assigned p to n"]


def test_without_a_bind_verb_the_api_binds(server: Server) -> None:
    server.answers = {"/0/filter": {"NodeNames": ["n"]}}
    pod, _ = run_in_virtual_time(place(server.policy(FILTER)))
    assert pod.spec.node_name == "n"
    assert server.paths == ["/0/filter"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "not now"}, "not now", id="error-in-the-answer"),
        pytest.param(503, "Failed bind with extender at URL {url}/0/, code 503", id="status"),
    ],
)
def test_a_binding_an_extender_refuses_is_rejected(server: Server, answer: Any, text: str) -> None:
    server.answers = {"/0/bind": answer}
    pod, events = run_in_virtual_time(place(server.policy({"bindVerb": "bind"})))
    assert pod.spec.node_name == ""
    expected = f"Binding rejected: {text.format(url=server.url)}"
    assert [event.note for event in events.events] == [expected]
    condition = first_condition(pod.status.conditions, "PodScheduled")
    assert condition is not None
    assert (condition.reason, condition.message) == ("BindingRejected", "")


# --- from a Policy ---


def test_a_policy_without_extenders_has_no_chain() -> None:
    assert extenders_v1_9(build_algorithm(Policy()).extenders) is None


def test_contradicting_certificate_settings_fail_at_the_start() -> None:
    tls = ExtenderTLSConfig(insecure=True, ca_file="ca.pem")
    with pytest.raises(ConfigError, match="couldn't build extenders: specifying a root"):
        extenders_v1_9([ExtenderConfig(url_prefix="https://e", tls_config=tls)])


def test_a_simulation_asks_the_extenders_of_its_policy(server: Server) -> None:
    server.answers = {"/0/filter": {"NodeNames": ["a"], "FailedNodes": {"b": "no"}}}
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": allocatable},
        }
        for name in ("a", "b")
    ]
    spec = {"containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "p", "namespace": "default"}
    documents.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    make_cluster = cluster_maker(build_algorithm(server.policy(FILTER)))
    run = run_scenario(placing(documents), SchedulerConfig(), make_cluster=make_cluster)
    assert [pod.node for pod in run.pods] == ["a"]
