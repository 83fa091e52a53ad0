"""A surge is carried out, or taken back whole."""

import asyncio
import json
from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import Raw, budget, node, owner, pod
from tests.simulator.rebalance.test_carrying_out import Played, Server, play
from tests.simulator.rebalance.test_surging import of_deployment

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import SystemClock
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ApiError
from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.rebalance.surge_run import MARK, end_begun

PROTECTED = budget("web", maxUnavailable=0)
NODE_NAMES = ("a", "b")
WEB = [pod(f"web-{number}", "a", cpu="500m", restartPolicy="Always") for number in range(2)]
# Without a mark the younger one is deleted.
for hour, raw in enumerate(WEB):
    raw["metadata"]["creationTimestamp"] = f"2025-12-31T0{hour}:00:00Z"
CROWDED = [*map(node, NODE_NAMES), owner("web", 2, cpu="500m"), *WEB, PROTECTED]


def with_deployment() -> list[Raw]:
    made = owner("web", 2, kind="Deployment", cpu="500m")
    return [of_deployment(raw) if raw["kind"] == "ReplicaSet" else raw for raw in CROWDED] + [made]


def replicas(played: Played, kind: str = "replicasets") -> int:
    store = played.server.store
    stored = store.get(store.resources.named(f"{kind}.apps"), "default", "web")
    return int(stored.document["spec"]["replicas"])


def pods(played: Played) -> list[tuple[str, str, bool]]:
    """Names, nodes, and whether they are marked."""
    return sorted(
        (
            each.name if each.name in ("web-0", "web-1") else "new",
            each.document["spec"].get("nodeName", ""),
            bool(each.metadata.get("annotations")),
        )
        for each in played.server.store.objects_of(PODS)
        if "deletionTimestamp" not in each.metadata
    )


def check_as_before(played: Played) -> None:
    assert replicas(played) == 2
    assert pods(played) == [("web-0", "a", False), ("web-1", "a", False)]
    assert played.run.done == ()


async def settle(_: Server) -> None:
    """Controllers do what they were asked."""
    await asyncio.sleep(60)


def web_pods(server: Server) -> list[StoredObject]:
    """Those that were there before."""
    return [each for each in server.store.objects_of(PODS) if each.name in ("web-0", "web-1")]


def close(server: Server, name: str) -> None:
    server.store.patch(NODES, "", name, {"spec": {"unschedulable": True}}, "merge")


def test_the_new_pod_is_ready_before_the_old_one_ends() -> None:
    ready: list[int] = []

    def count(server: Server, number: int) -> None:
        conditions = [
            each.document.get("status", {}).get("conditions", [])
            for each in server.store.objects_of(PODS)
        ]
        ready.append(
            sum(
                any(c["type"] == "Ready" and c["status"] == "True" for c in one)
                for one in conditions
            )
        )

    played = play("balance", *CROWDED, surges=True, scaling=count)
    assert played.run.surprise == ""
    assert [(move.pod, move.actual, move.foretold) for move in played.run.done] == [
        ("default/web-0", "b", "b")
    ]
    assert played.server.scaled == [3, 2]
    assert ready == [2, 3]
    assert played.server.evicted == []
    assert pods(played) == [("new", "b", False), ("web-1", "a", False)]
    assert played.server.notes == [("Rebalance", "Ends; a pod on b was brought up first")]


def test_the_deployment_is_scaled() -> None:
    played = play("balance", *with_deployment(), surges=True)
    assert played.run.surprise == ""
    assert len(played.run.done) == 1
    assert replicas(played, "deployments") == replicas(played) == 2
    assert pods(played) == [("new", "b", False), ("web-1", "a", False)]


def test_a_new_pod_that_goes_elsewhere_is_taken_back() -> None:
    def shut(server: Server, number: int) -> None:
        if number == 3:
            close(server, "b")

    played = play("balance", *CROWDED, surges=True, scaling=shut, then=settle)
    assert "is on a, foretold was b" in played.run.surprise
    check_as_before(played)


def test_a_new_pod_without_a_node_is_taken_back() -> None:
    def shut(server: Server, number: int) -> None:
        for name in NODE_NAMES if number == 3 else ():
            close(server, name)

    played = play("balance", *CROWDED, surges=True, scaling=shut, then=settle)
    assert "has no node in time" in played.run.surprise
    check_as_before(played)


def test_an_interrupted_surge_is_taken_back() -> None:
    def stop(server: Server, number: int) -> None:
        if number == 3:
            server.stop()

    played = play("balance", *CROWDED, surges=True, scaling=stop, then=settle)
    assert played.run.surprise == "interrupted"
    check_as_before(played)


@pytest.mark.parametrize(
    ("number", "code", "scaled"),
    [
        pytest.param(2, 503, [3, 2], id="down"),
        pytest.param(3, 503, [], id="up"),
        # No other request is made to scale it: that would be refused as well.
        pytest.param(3, 403, [], id="without-the-right"),
    ],
)
def test_a_request_that_fails_takes_it_back(number: int, code: int, scaled: list[int]) -> None:
    requests: list[int] = []
    servers: list[Server] = []

    def fail(server: Server, wanted: int) -> None:
        requests.append(wanted)
        servers.append(server)
        if requests.count(number) == 1 and wanted == number:
            raise ApiError("the server cannot do it", code=code)

    with pytest.raises(ApiError, match="the server cannot do it"):
        play("balance", *CROWDED, surges=True, scaling=fail)
    assert servers[0].scaled == scaled
    assert requests == ([3] if code == 403 else [3, 2, 2][: 2 if number == 3 else 3])
    assert not any(each.metadata.get("annotations") for each in web_pods(servers[0]))


def test_a_controller_that_was_scaled_meanwhile_is_not_scaled() -> None:
    def scale(server: Server, number: int) -> None:
        if number == 3 and not server.scaled:
            sets = server.store.resources.named("replicasets.apps")
            server.store.patch(sets, "default", "web", {"spec": {"replicas": 1}}, "merge")

    played = play("balance", *CROWDED, surges=True, scaling=scale)
    assert played.run.surprise
    assert played.server.scaled == []
    assert replicas(played) == 1
    assert not any(is_marked for _, _, is_marked in pods(played))


def test_an_eviction_that_is_allowed_by_now_is_a_surprise() -> None:
    def allow(server: Server, number: int) -> None:
        if number == 1:
            budgets = server.store.resources.named("poddisruptionbudgets.policy")
            server.store.patch(budgets, "default", "web", {"spec": {"maxUnavailable": 1}}, "merge")

    played = play("balance", *CROWDED, surges=True, read=allow)
    assert played.run.surprise == (
        "pod default/web-0 would be evicted now, not replaced by a surge of ReplicaSet/web from 2 "
        "replicas"
    )
    check_as_before(played)


def test_the_next_run_takes_back_what_a_killed_one_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lost(*_: Any) -> None:
        pass

    marks: list[str] = []

    def stop(server: Server, number: int) -> None:
        if number == 3:
            server.stop()
            monkeypatch.setattr("kubestow.simulator.rebalance.surge_run.take_back", lost)

    async def second(server: Server) -> None:
        monkeypatch.undo()
        await asyncio.sleep(60)
        assert len(server.store.objects_of(PODS)) == 3
        stored = server.store.get(PODS, "default", "web-0")
        marks.extend(sorted(stored.metadata["annotations"]))
        lines = await end_begun(server)
        assert lines == ["took back a surge for default/web-0, which a run before has left"]
        await asyncio.sleep(60)

    played = play("balance", *CROWDED, surges=True, scaling=stop, then=second)
    assert marks == [DELETION_COST, MARK]
    assert played.run.surprise == "interrupted"
    check_as_before(played)


def mark(kind: str = "ReplicaSet", name: str = "web", uid: str = "", replicas: int = 1) -> str:
    value = {"kind": kind, "name": name, "uid": uid or f"{kind}-{name}", "replicas": replicas}
    return json.dumps(value)


def ended(text: str, *raw: Raw) -> tuple[list[str], list[int]]:
    """What is done about a mark of `web-0` that no run has written; the lines, and what was scaled
    to."""
    store = MemoryCluster(SystemClock())
    store.load([one for one in raw if one["metadata"]["name"] != "web-0"], admission=False)
    marked = pod("web-0", "a", annotations={MARK: text}, restartPolicy="Always")
    store.load([marked], admission=False)
    server = Server(store, SystemClock())

    async def no_wait(_: float) -> None:
        pass

    return asyncio.run(end_begun(server, no_wait)), server.scaled


@pytest.mark.parametrize(
    ("text", "scaled"),
    [
        pytest.param(mark(), [1], id="its-own"),
        pytest.param(mark(name="other"), [], id="another-replica-set"),
        pytest.param(mark(uid="other"), [], id="another-uid"),
        pytest.param(mark(kind="Deployment", name="other"), [], id="another-deployment"),
    ],
)
def test_a_mark_scales_only_what_makes_the_pod(text: str, scaled: list[int]) -> None:
    made = [owner("other", 2), owner("other", 2, kind="Deployment")]
    lines, found = ended(text, node("a"), owner("web", 2), *made)
    assert found == scaled
    assert len(lines) == 1
    assert lines[0].startswith("took back" if scaled else "left alone: default/web-0")


@pytest.mark.parametrize(("name", "scaled"), [("web", [1]), ("other", [])])
def test_a_mark_scales_the_deployment_of_its_replica_set(name: str, scaled: list[int]) -> None:
    made = [owner(name, 2, kind="Deployment") for name in ("web", "other")]
    replica_set = of_deployment(owner("web", 2))
    text = mark(kind="Deployment", name=name)
    assert ended(text, node("a"), replica_set, *made)[1] == scaled


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("no JSON", id="no-json"),
        pytest.param('{"name": "web"}', id="without-fields"),
        pytest.param('{"x": ' + "[" * 100_000, id="nested"),
    ],
)
def test_a_mark_that_cannot_be_read_is_left_alone(text: str) -> None:
    assert ended(text, node("a"), owner("web", 2)) == ([], [])
