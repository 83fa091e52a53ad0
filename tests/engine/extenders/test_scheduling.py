"""A scheduler with extenders over HTTP, from the configuration to the bound pod (spec 04 §13)."""

import socket
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.meta import JsonObject, Object
from kubestow.config.decoding import decode_config
from kubestow.config.extenders import ExtenderConfig, ManagedResource
from kubestow.config.scalars import Duration
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.simulation import PodOutcome, SimulationResult, place
from kubestow.testing import make_node, make_pod

Server = Any  # what the fixture `server` gives

NODES = [make_node(name, cpu="4", memory="8Gi") for name in ("a", "b", "c")]


def documents(kind: str, objects: Iterable[Object]) -> list[JsonObject]:
    return [to_document(entry) | {"kind": kind, "apiVersion": "v1"} for entry in objects]


def simulate(
    config: SchedulerConfig | list[ExtenderConfig], *pods: Any, limit_s: float = 30
) -> SimulationResult:
    if isinstance(config, list):
        config = SchedulerConfig(extenders=tuple(config))
    objects = [*documents("Node", NODES), *documents("Pod", pods or [make_pod("p", cpu="1")])]
    return place(objects, config, limit_s=limit_s)


def outcome(result: SimulationResult, name: str = "p") -> PodOutcome:
    return next(pod for pod in result.pods if pod.name == name)


def test_a_configuration_with_extenders_works(server: Server) -> None:
    server.answers["filter"] = {"NodeNames": ["c", "b"], "FailedNodes": {"a": "no"}}
    server.answers["prioritize"] = [{"Host": "b", "Score": 10}]
    raw = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: {server.url}
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  nodeCacheCapable: true
  httpTimeout: 60s
"""
    result = simulate(decode_config(raw.encode()))
    assert outcome(result).node == "b"
    assert [request.path for request in server.requests] == ["/s/filter", "/s/prioritize"]


def test_a_rejected_pod_says_why_and_waits_for_any_event(server: Server) -> None:
    server.answers["filter"] = {"FailedNodes": {"a": "no gpu", "b": "no gpu"}}
    result = simulate([server.config(filter_verb="filter")])
    assert outcome(result).reason == "Unschedulable"
    assert outcome(result).message.startswith("0/3 nodes are available: 2 no gpu. ")
    # The pod's own condition is an event, too, and every event may matter to an extender.
    assert outcome(result).attempts == 2


def test_faults_fail_the_attempt_and_the_loop_goes_on(server: Server) -> None:
    """Each attempt of the first pod has another fault; the last one succeeds."""
    faults: list[Any] = [
        b"garbage",
        500,
        server.never_answer,
        {"Error": "no licence"},
        {"NodeNames": ["a", "ghost"]},
        {"NodeNames": ["c"]},
    ]

    def next_answer(handler: BaseHTTPRequestHandler) -> None:
        answer = faults.pop(0)
        if callable(answer):
            answer(handler)
            return
        handler.send_response(answer if isinstance(answer, int) else 200)
        handler.end_headers()
        raw = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        handler.wfile.write(raw)

    server.answers["filter"] = next_answer
    # One answer is waited for in vain, and no other one takes so long on a busy machine.
    config = server.config(
        filter_verb="filter", node_cache_capable=True, http_timeout=Duration(3_000_000_000)
    )
    result = simulate([config], limit_s=120)
    assert outcome(result).node == "c"
    assert outcome(result).attempts == 6
    assert faults == []


def test_a_fault_is_in_the_condition_of_the_pod(server: Server) -> None:
    server.answers["filter"] = 500
    shown = outcome(simulate([server.config(filter_verb="filter")], limit_s=5))
    assert shown.reason == "SchedulerError"
    assert shown.message == f"failed filter with extender at URL {server.url}/filter, code 500"


def test_an_unreachable_ignorable_extender_is_skipped() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        gone = ExtenderConfig(url_prefix=url, filter_verb="filter", ignorable=True)
        result = simulate([gone])
    assert outcome(result).outcome == "Scheduled"


def test_an_extender_restricts_the_victims(server: Server) -> None:
    """Preemption would choose the victim of lowest priority; the extender leaves another node."""

    def leave_b(handler: BaseHTTPRequestHandler) -> None:
        offered = server.requests[-1].body["NodeNameToMetaVictims"]
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(msgspec.json.encode({"NodeNameToMetaVictims": {"b": offered["b"]}}))

    server.answers["preempt"] = leave_b
    running = [
        make_pod(f"on-{name}", uid=f"uid-{name}", cpu="4", node=name, priority=priority)
        for priority, name in enumerate("abc")
    ]
    incoming = make_pod("p", cpu="4", priority=100)
    config = server.config(preempt_verb="preempt", node_cache_capable=True)
    result = simulate([config], *running, incoming, limit_s=60)  # a victim has time to end
    assert outcome(result).node == "b"
    assert result.evicted == ["default/on-b"]


def test_the_error_of_a_failed_binding_is_not_wrapped(server: Server) -> None:
    server.answers["bind"] = {"Error": "quota"}
    shown = outcome(simulate([server.config(bind_verb="bind")], limit_s=5))
    assert (shown.reason, shown.message) == ("SchedulerError", "quota")


def test_an_extender_binds_instead_of_the_plugins(server: Server) -> None:
    server.answers["bind"] = {}
    result = simulate([server.config(bind_verb="bind")], limit_s=5)
    assert server.requests[0].body["PodName"] == "p"
    # The extender answered success, and no plugin bound the pod.
    assert outcome(result).node == ""


def test_managed_resources_are_not_counted_by_the_scheduler(server: Server) -> None:
    server.answers["filter"] = {"NodeNames": ["b"]}
    managed = (ManagedResource(name="example.com/gpu", ignored_by_scheduler=True),)
    config = server.config(filter_verb="filter", node_cache_capable=True, managed_resources=managed)
    result = simulate([config], make_pod("p", requests={"cpu": "1", "example.com/gpu": "3"}))
    assert outcome(result).node == "b"
