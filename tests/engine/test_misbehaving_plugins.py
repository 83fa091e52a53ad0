"""Plugins that raise or return anything fail the pod they are called for, and no other.

A whole scheduler in virtual time. The plugin misbehaves in another way for each of several pods,
which are tried first. The pod "canary" must be scheduled, and so must one that comes later; the
others must wait in the queue, without a place on a node and with a condition.
"""

from asyncio import CancelledError
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition
from kubestow.api.pod_info import PodInfo
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.bind import Placement, run_bind
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Resource, on
from kubestow.framework.plugin import PostFilterResult, PreFlight, Restriction
from kubestow.framework.profile import Profile
from kubestow.framework.reuse import Reads, Reuse, VersionedBasis
from kubestow.framework.runner import (
    run_filters,
    run_permit,
    run_pre_filter,
    run_reserve,
    run_scores,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.registry import REGISTRY
from kubestow.queue import Place, QueuedPod
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.testing import (
    make_node,
    make_pod,
    make_profile,
    make_snapshot,
    run_in_virtual_time,
)

Answer = Any  # what a plugin returns, or raises if it is an exception, or the result of a call
Method = Callable[..., Any]


class NotAnException(BaseException):
    pass


class WithoutText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Odd:
    pass


def recurse() -> Any:
    return recurse()


async def coroutine() -> None: ...


def give(answer: Answer) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer() if callable(answer) and not isinstance(answer, type) else answer


# --- the plugin ---


def zeros(state: Any, pod: Any, nodes: Any) -> Any:
    return np.zeros(len(nodes), np.int64)


def ones_for_bad_pods(state: Any, pod: Any, nodes: Any) -> Any:
    return np.full(len(nodes), pod.name == "bad", np.int64)


def none(*_: Any) -> None: ...


async def none_later(*_: Any) -> None: ...


async def skip_later(*_: Any) -> Status:
    return Status.skip()


def rejected(*_: Any) -> Status:
    return Status.unschedulable("x")


# By method: what the plugin needs to be called there, and what the method does for other pods.
WELL_BEHAVED: dict[str, dict[str, Method]] = {
    "pre_enqueue": {"pre_enqueue": none},
    "pre_filter": {"pre_filter": none},
    "filter": {"filter": zeros, "filter_status": rejected},
    "filter_status": {"filter": ones_for_bad_pods, "filter_status": rejected},
    "add_pod": {"pre_filter": none, "add_pod": none, "remove_pod": none},
    "remove_pod": {"pre_filter": none, "add_pod": none, "remove_pod": none},
    "post_filter": {"post_filter": lambda *_: (None, rejected())},
    "pre_score": {"pre_score": none, "score": zeros},
    "score": {"score": zeros},
    "normalize": {"score": zeros, "normalize": lambda state, pod, scores: scores},
    "reserve": {"reserve": none, "unreserve": none},
    "unreserve": {"reserve": rejected, "unreserve": none},
    "permit": {"permit": lambda *_: (None, 0)},
    "pre_bind_pre_flight": {
        "pre_bind_pre_flight": lambda *_: PreFlight(Status.skip()),
        "pre_bind": none_later,
    },
    "pre_bind": {"pre_bind_pre_flight": lambda *_: PreFlight(None), "pre_bind": none_later},
    "bind": {"bind": skip_later},
    "post_bind": {"post_bind": none},
}


def plugin_with(method: str, answers: Mapping[str, Answer], **more: Any) -> Any:
    """A plugin class whose method gives these answers, by the name of the pod."""
    others = WELL_BEHAVED[method]

    def answer_of(arguments: tuple[Any, ...], other: Any) -> Any:
        found = [one for one in arguments if isinstance(one, Pod | PodInfo)]
        # `filter_status` gets no pod: there is one bad pod, and only that one is rejected.
        pods = [one.pod if isinstance(one, PodInfo) else one for one in found]
        name = pods[0].metadata.name if pods else next(iter(answers))
        return give(answers[name]) if name in answers else other(*arguments)

    def plain(self: Any, *arguments: Any) -> Any:
        return answer_of(arguments, others[method])

    async def awaited(self: Any, *arguments: Any) -> Any:
        answer = answer_of(arguments, others[method])
        return await answer if answer.__class__.__name__ == "coroutine" else answer

    is_async = method in ("pre_bind", "bind")
    members = {name: staticmethod(function) for name, function in others.items()}
    return type(
        "Bad",
        (),
        {
            "name": "Bad",
            "args_type": None,
            "__init__": lambda self, args, handle: None,
            **members,
            method: awaited if is_async else plain,
            **more,
        },
    )


# --- the scheduler ---


class Outcome(NamedTuple):
    node: str
    # Why it has none.
    reason: str
    message: str


class Seen(NamedTuple):
    """What became of the bad pods, by name."""

    outcomes: dict[str, Outcome]
    places: dict[str, Place | None]

    @property
    def messages(self) -> dict[str, str]:
        return {name: outcome.message for name, outcome in self.outcomes.items()}


def run_beside_canary(
    plugin: Any,
    *bad: Pod,
    running: tuple[ApiObject, ...] = (),
    change: dict[str, Any] | None = None,
) -> Seen:
    """Asserts that the scheduler goes on, and that no bad pod keeps a place on a node."""
    refs = (PluginRef("Bad", 1000),)
    plugins = Plugins(
        multi_point=PluginSet(enabled=refs),
        # Before the plugin that binds all pods.
        bind=PluginSet(enabled=refs if hasattr(plugin, "bind") else ()),
        queue_sort=PluginSet(
            enabled=refs if hasattr(plugin, "less") else (),
            disabled=(PluginRef("*"),) if hasattr(plugin, "less") else (),
        ),
    )
    config = SchedulerConfig(profiles=(ProfileConfig(plugins=plugins),))
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="4")]
    objects = [*nodes, *running, *bad, make_pod("canary", cpu="1m")]

    async def run() -> Seen:
        scenario = placing(map(to_document, objects))
        cluster = Simulation(scenario, config, {**REGISTRY, "Bad": plugin}).cluster
        scheduler = cluster.scheduler
        async with cluster.running():
            await cluster.settle(limit_s=1)
            if change is not None:
                await cluster.client.patch(Node, "", "a", change)
            await cluster.client.create(make_pod("late", cpu="1m"))
            await cluster.settle(limit_s=1)
            names = ["canary", "late", *(pod.metadata.name for pod in bad)]
            canary, late, *pods = [await cluster.client.get(Pod, "default", name) for name in names]
            places = {pod.metadata.name: scheduler.queue.place_of(pod) for pod in pods}
            assert not [pod.metadata.name for pod in pods if scheduler.cache.is_assumed(pod)]
        assert canary.spec.node_name
        assert late.spec.node_name
        return Seen({pod.metadata.name: outcome_of(pod) for pod in pods}, places)

    return run_in_virtual_time(run())


def outcome_of(pod: Pod) -> Outcome:
    condition = first_condition(pod.status.conditions, "PodScheduled")
    if pod.spec.node_name or condition is None:
        return Outcome(pod.spec.node_name, "", "")
    return Outcome("", condition.reason, condition.message)


def bad_pods(names: Mapping[str, object], **fields: Any) -> list[Pod]:
    return [make_pod(name, priority=1000, **{"cpu": "1m", **fields}) for name in names]


# --- answers of any type, at every point of a cycle or a binding ---

ANSWERS: dict[str, Answer] = {
    "true": True,
    "text": "text",
    "object": Odd(),
    "class": Status,
    "coroutine": coroutine,
    "cancelled": CancelledError(),
    "not-an-exception": NotAnException("own"),
}
SHOWN = {
    "true": "True",
    "text": "'text'",
    "object": "an object of type Odd",
    "class": "the class Status",
    "coroutine": "a coroutine (its method must not be async)",
}
PLACE = "(tests/engine/test_misbehaving_plugins.py:"
ARRAY = "expected int64 of shape (2,): one entry per node asked about"
STATUS = "expected a Status or None"


def expected(prefix: str, method: str, allowed: str) -> dict[str, str]:
    where = f" from {method}" if method else ""
    wrong = {
        name: f'{prefix}plugin "Bad" returned {text}{where}, {allowed}'
        for name, text in SHOWN.items()
    }
    return wrong | {
        "cancelled": f"{prefix}CancelledError {PLACE}",
        "not-an-exception": f"{prefix}NotAnException: own {PLACE}",
    }


def assert_begin_with(messages: Mapping[str, str], texts: Mapping[str, str]) -> None:
    """The number of a line follows a place."""
    assert {name: message[: len(texts[name])] for name, message in messages.items()} == texts


def type_of(answer: object) -> str:
    return type(answer).__name__


@pytest.mark.parametrize(
    ("method", "prefix", "where", "allowed"),
    [
        (
            "pre_filter",
            'running PreFilter plugin "Bad": ',
            "pre_filter",
            "expected a Restriction, a Status or None",
        ),
        ("filter", 'running "Bad" filter plugin: ', "", ARRAY),
        ("pre_score", 'running PreScore plugin "Bad": ', "pre_score", STATUS),
        ("normalize", 'running Normalize on Score plugins: plugin "Bad" failed with: ', "", ARRAY),
        ("reserve", 'running Reserve plugin "Bad": ', "reserve", STATUS),
        ("permit", 'running Permit plugin "Bad": ', "permit", STATUS),
        (
            "pre_bind_pre_flight",
            'running PreBindPreFlight "Bad": ',
            "pre_bind_pre_flight",
            "expected a PreFlight",
        ),
    ],
)
def test_any_answer_fails_its_own_pod(method: str, prefix: str, where: str, allowed: str) -> None:
    seen = run_beside_canary(plugin_with(method, ANSWERS), *bad_pods(ANSWERS))
    assert_begin_with(seen.messages, expected(prefix, where, allowed))
    assert {one.reason for one in seen.outcomes.values()} == {"SchedulerError"}
    assert set(seen.places.values()) == {Place.ERROR_BACKOFF}


@pytest.mark.parametrize(
    ("method", "prefix"),
    [
        ("pre_bind", 'running PreBind plugin "Bad": '),
        ("bind", 'running Bind plugin "Bad": '),
    ],
)
def test_any_answer_in_a_binding_frees_the_node(method: str, prefix: str) -> None:
    answers = {name: answer for name, answer in ANSWERS.items() if name != "coroutine"}
    seen = run_beside_canary(plugin_with(method, answers), *bad_pods(answers, cpu="1"))
    texts = expected(prefix, method, STATUS)
    assert_begin_with(seen.messages, {name: texts[name] for name in answers})
    assert {one.reason for one in seen.outcomes.values()} == {"SchedulerError"}
    assert set(seen.places.values()) == {Place.ERROR_BACKOFF}


@pytest.mark.parametrize("method", ["pre_bind", "bind"])
def test_a_binding_method_has_to_be_async(method: str) -> None:
    def not_async(self: Any, state: Any, pod: PodInfo, node_name: str) -> Any:
        return None if pod.name == "bad" else WELL_BEHAVED[method][method]()

    plugin = plugin_with(method, {}, **{method: not_async})
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0}))
    assert seen.messages["bad"].endswith(
        f'plugin "Bad" returned None from {method}, '
        "expected an awaitable: declare it with async def"
    )
    assert seen.places == {"bad": Place.ERROR_BACKOFF}


# --- answers of the right type with wrong parts ---


def wait(timeout_s: object) -> Answer:
    return (Status.wait(), timeout_s)


def scores(values: list[Any], dtype: Any) -> Answer:
    return np.array(values, dtype)


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("pre_filter", Restriction("a"), "returned 'a' from pre_filter in a Restriction"),
        ("pre_filter", Restriction(None), "returned None from pre_filter in a Restriction"),
        ("pre_filter", lambda: Status(2, "x"), "TypeError: code of a status of type int"),
        ("pre_filter", lambda: Status(Code.ERROR, 7), "TypeError: reason of a status of type int"),
        ("pre_filter", lambda: Status.from_error("x"), "TypeError: error of a status of type str"),
        ("filter_status", None, "returned None from filter_status for code 1"),
        ("filter_status", True, "returned True from filter_status for code 1"),
        ("filter_status", Status(Code.SUCCESS), "returned the status Success from filter_status"),
        ("filter_status", CancelledError(), "CancelledError ("),
        ("filter", scores([0, 0], np.uint64), f"codes of type uint64, {ARRAY}"),
        ("filter", np.ma.masked_array([0, 0]), f"an object of type MaskedArray, {ARRAY}"),
        ("score", 10**30, f"returned {10**30} from score, expected a number that fits in 64 bits"),
        ("score", lambda: 10**9999, "an object of type int from score"),
        ("score", scores([1, 2], np.uint64), f"scores of type uint64, {ARRAY}"),
        ("score", CancelledError(), "CancelledError ("),
        ("normalize", scores([1, 2], np.uint64), f"scores of type uint64, {ARRAY}"),
        ("permit", (None, 0, 0), "returned an object of type tuple from permit with 3 entries"),
        ("permit", ("wait", 5), "returned 'wait' from permit, expected a Status or None"),
        ("permit", wait(None), "returned None from permit as the timeout, expected a number"),
        ("permit", wait("5s"), "returned '5s' from permit as the timeout"),
        ("permit", wait(float("nan")), "returned nan from permit as the timeout"),
        ("permit", wait(-float("inf")), "returned -inf from permit as the timeout"),
        ("permit", wait(-(10**400)), "from permit as the timeout"),
        (
            "pre_bind_pre_flight",
            (None,),
            "returned an object of type tuple from pre_bind_pre_flight",
        ),
        ("pre_bind_pre_flight", ("x", True), "returned 'x' from pre_bind_pre_flight as the status"),
        ("pre_bind_pre_flight", (None, None), "from pre_bind_pre_flight as allow_parallel"),
    ],
)
def test_wrong_parts_of_an_answer(method: str, answer: Answer, message: str) -> None:
    seen = run_beside_canary(plugin_with(method, {"bad": answer}), *bad_pods({"bad": 0}))
    assert message in seen.messages["bad"]
    assert seen.outcomes["bad"].reason == "SchedulerError"
    assert seen.places == {"bad": Place.ERROR_BACKOFF}


def test_a_negative_timeout_ends_the_wait_at_once() -> None:
    plugin = plugin_with("permit", {"bad": wait(-1)}, events=lambda self: [])
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0}))
    text = "rejected due to timeout after waiting -1s at plugin Bad"
    assert seen.messages["bad"] == f"0/1 nodes are available: 1 {text}."


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.uint32, ">i8"], ids=str)
def test_smaller_whole_numbers_are_scores(dtype: Any) -> None:
    """Also where they would overflow when they are multiplied with the weight."""
    plugin = plugin_with("score", {"bad": lambda: np.array([0, 1], dtype)})
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0}))
    assert seen.outcomes["bad"].node


# --- PostFilter, and pods added and removed in trials ---


POST_FILTER_ANSWERS: dict[str, tuple[Answer, str]] = {
    "none": (None, "returned None from post_filter, expected a tuple of"),
    "status": (rejected(), "returned an object of type Status from post_filter"),
    "three": ((None, rejected(), 0), "tuple from post_filter with 3 entries"),
    "no-status": ((None, None), "returned None from post_filter as the status"),
    "alone": (PostFilterResult("a"), "tuple from post_filter as the status"),
    "text": (("a", rejected()), "returned 'a' from post_filter as the result"),
    "node": ((PostFilterResult(7), rejected()), "returned 7 from post_filter as the nominated"),
    "victims": ((PostFilterResult("a", ("p",)), rejected()), "from post_filter as the victims"),
    "cancelled": (CancelledError(), "CancelledError ("),
}


def test_post_filter_answers() -> None:
    answers = {name: answer for name, (answer, _) in POST_FILTER_ANSWERS.items()}
    seen = run_beside_canary(plugin_with("post_filter", answers), *bad_pods(answers, cpu="9"))
    for name, (_, text) in POST_FILTER_ANSWERS.items():
        assert seen.messages[name].startswith("0/2 nodes are available: 2 Insufficient cpu. ")
        assert text in seen.messages[name]
    assert set(seen.places.values()) == {Place.UNSCHEDULABLE}


@pytest.mark.parametrize("answer", [True, "text", CancelledError()], ids=repr)
@pytest.mark.parametrize(("method", "point"), [("remove_pod", "RemovePod"), ("add_pod", "AddPod")])
@pytest.mark.parametrize("node_count", [2, 12], ids=["few-nodes", "many-nodes"])
def test_a_trial_with_other_pods(method: str, point: str, answer: Answer, node_count: int) -> None:
    """Nodes are tried together only where no plugin has to be called for each pod."""
    nodes = [make_node(f"n{number}", cpu="4") for number in range(node_count - 2)]
    names = ["a", "b", *(node.metadata.name for node in nodes)]
    old = [make_pod(f"old-{node}", node=node, cpu="3") for node in names]
    plugin = plugin_with(method, {"bad": answer})
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0}, cpu="3"), running=(*nodes, *old))
    text = f'preemption: running {point} on PreFilter plugin "Bad": '
    assert text in seen.messages["bad"]


# --- the queue ---


def test_any_answer_of_pre_enqueue_gates_its_own_pod(caplog: pytest.LogCaptureFixture) -> None:
    seen = run_beside_canary(plugin_with("pre_enqueue", ANSWERS), *bad_pods(ANSWERS))
    assert set(seen.places.values()) == {Place.GATED}
    texts = expected("", "pre_enqueue", STATUS)
    for name, text in texts.items():
        assert f"PreEnqueue plugin 'Bad' failed for pod 'default/{name}': {text}" in caplog.text


@pytest.mark.parametrize("answer", [True, None, "text", CancelledError(), Odd()], ids=type_of)
def test_a_pod_is_tried_again_after_any_answer_of_a_hint(answer: Answer) -> None:
    def hint(*_: Any) -> Any:
        return give(answer)

    def only_labelled(self: Any, state: Any, pod: Any, nodes: Any) -> Any:
        if pod.pod.metadata.name != "bad":
            return None
        return np.array(["ok" not in one.metadata.labels for one in nodes.node_objects()], int)

    registered = [on(Resource.NODE, Action.UPDATE_NODE_LABEL, hint)]
    plugin = plugin_with("filter", {}, filter=only_labelled, events=lambda self: registered)
    change = {"metadata": {"labels": {"ok": "yes"}}}
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0}), change=change)
    assert seen.outcomes["bad"].node == "a"


@pytest.mark.parametrize("answer", [None, "text", CancelledError(), KeyError("x")], ids=repr)
def test_pods_are_tried_after_any_answer_of_a_comparison(answer: Answer) -> None:
    plugin = plugin_with("pre_enqueue", {}, less=lambda *_: give(answer))
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0, "other": 0, "third": 0}))
    assert all(one.node for one in seen.outcomes.values())


# --- methods whose answers are not used ---


@pytest.mark.parametrize("answer", [True, coroutine, CancelledError()], ids=type_of)
def test_after_any_answer_of_unreserve_the_pod_is_back_in_the_queue(answer: Answer) -> None:
    plugin = plugin_with(
        "unreserve",
        {"bad": answer},
        reserve=lambda _, state, pod, node: rejected() if pod.name == "bad" else None,
    )
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0}))
    assert seen.messages["bad"] == "0/1 nodes are available: 1 x."
    assert seen.places["bad"] is not None


@pytest.mark.parametrize("answer", [True, coroutine, CancelledError()], ids=type_of)
def test_any_answer_of_post_bind_leaves_the_pod_bound(answer: Answer) -> None:
    seen = run_beside_canary(plugin_with("post_bind", {"bad": answer}), *bad_pods({"bad": 0}))
    assert seen.outcomes["bad"].node


# --- what a plugin leaves behind for later ---


class CannotBeCopied:
    def clone(self) -> Any:
        raise CancelledError


def test_state_that_cannot_be_copied(caplog: pytest.LogCaptureFixture) -> None:
    """It is copied where a pod is nominated to a node."""

    def pre_filter(self: Any, state: Any, pod: Any, nodes: Any) -> None:
        state.write("Bad", CannotBeCopied() if pod.name == "bad" else None)

    plugin = plugin_with("pre_filter", {}, pre_filter=pre_filter)
    nominated = make_pod(
        "first", priority=2000, cpu="9", nominated_node="a", preemption_policy="Never"
    )
    seen = run_beside_canary(plugin, nominated, *bad_pods({"bad": 0}))
    assert seen.messages["bad"].startswith(f"scheduling cycle: CancelledError {PLACE}")
    assert seen.outcomes["bad"].reason == "SchedulerError"
    assert "An exception ended an attempt" in caplog.text


@pytest.mark.parametrize("fails", ["basis", "version"])
def test_a_declaration_that_fails_is_not_used(fails: str) -> None:
    def fail(*_: Any) -> Any:
        raise CancelledError

    basis = fail if fails == "basis" else VersionedBasis(lambda pod: None, fail)
    reuse = Reuse(filter=Reads.NODE, basis=basis)
    plugin = plugin_with("filter", {}, reuse=reuse)
    seen = run_beside_canary(plugin, *bad_pods({"bad": 0, "again": 0}))
    assert all(one.node for one in seen.outcomes.values())


# --- what ends the process ---


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    ("method", "run"),
    [
        ("pre_filter", lambda *attempt: run_pre_filter(*attempt, NODES)),
        ("filter", lambda *attempt: run_filters(*attempt, NODES)),
        ("score", lambda *attempt: run_scores(*attempt, NODES)),
        ("reserve", lambda *attempt: run_reserve(*attempt, "a")),
        ("permit", lambda *attempt: run_permit(*attempt, "a", 1)),
        ("bind", lambda profile, state, pod: run_bind(placement(profile, state, pod)).send(None)),
    ],
)
def test_the_process_can_be_ended_from_a_plugin(
    method: str, run: Method, error: type[BaseException]
) -> None:
    plugin = plugin_with(method, {"bad": error()})(None, None)
    with pytest.raises(error):
        run(make_profile(plugin), CycleState(), PodInfo(make_pod("bad")))


NODES = nodes_of(make_snapshot([make_node("a")]))


def placement(profile: Profile, state: CycleState, pod: PodInfo) -> Placement:
    return Placement(profile, state, QueuedPod(pod, timestamp_ns=0), "a")
