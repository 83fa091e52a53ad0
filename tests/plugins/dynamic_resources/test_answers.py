"""Answers kept from earlier pods equal those computed again, whatever happened in between."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.device import ResourceClaim
from kubestow.api.node import Node
from kubestow.api.pod import NodeSelector, Pod, PodResourceClaim
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.errors import SetAsideError
from kubestow.framework.attempt_timer import NoTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.per_node import NodeSlots
from kubestow.index.nodes import nodes_of
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.dynamic_resources.allocator import NodeSearch
from kubestow.plugins.dynamic_resources.answers import AnswerBook, Answers
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.requests import ClaimPlan
from kubestow.testing import make_cache, make_handle, make_node, make_pod, make_term, run_filter
from kubestow.testing.devices import (
    make_allocation,
    make_alternative,
    make_alternatives,
    make_claim,
    make_device,
    make_device_class,
    make_request,
    make_slice,
)

GPU = "example.com/gpu"
FAST = 'device.attributes["d.com"].?fast.orValue(false)'
REQUESTS = {
    "one": make_request(),
    "two": make_request(count=2),
    "choice": make_alternatives("r", make_alternative("a", FAST), make_alternative("b")),
    "failing": make_request("r", 'device.attributes["d.com"].fast'),
}
ON_SSD = NodeSelector(node_selector_terms=(make_term("disk In ssd"),))


class Reserved(NamedTuple):
    """A pod that has devices, which its claim does not say yet."""

    claim: ResourceClaim
    pod: PodInfo
    state: CycleState
    node_name: str


class Lab:
    """A cluster in which things happen, and a plugin that has seen all of it."""

    def __init__(self) -> None:
        self.objects = ClusterObjects()
        self.objects.put(make_device_class(extended_resource=GPU))
        self.nodes: dict[str, Node] = {}
        self.cache = make_cache()
        for number in range(3):
            self.put_node(number, "plain")
            self.put_slice(number, 2)
        self.snapshot = Snapshot()
        self.plugin = self._make_plugin()
        self.reserved: list[Reserved] = []
        self._version = 0

    def put_node(self, number: int, kind: str) -> None:
        node = {
            "plain": make_node(f"n{number}"),
            "ssd": make_node(f"n{number}", labels={"disk": "ssd"}),
            "gpu": make_node(f"n{number}", allocatable={GPU: 1}),
        }[kind]
        old = self.nodes.get(node.metadata.name)
        self.nodes[node.metadata.name] = node
        if old is None:
            self.cache.add_node(node)
        else:
            self.cache.update_node(old, node)

    def remove_node(self, number: int) -> None:
        node = self.nodes.pop(f"n{number}", None)
        if node is not None:
            self.cache.remove_node(node)

    def put_slice(self, number: int, count: int, fast: bool = False) -> None:
        devices = [
            make_device(f"d{index}", attributes={"fast": True} if fast else {})
            for index in range(count)
        ]
        self.objects.put(
            make_slice(*devices, name=f"s{number}", node=f"n{number}", pool=f"p{number}")
        )

    def put_network_slice(self, place: str) -> None:
        selector = ON_SSD if place == "ssd" else None
        self.objects.put(make_slice("net", name="net", pool="net", node_selector=selector))

    def allocate(self, pool: str, device: str) -> None:
        self._version += 1
        claim = make_claim(f"t-{pool}-{device}", allocation=make_allocation(f"{pool}/{device}"))
        self.objects.put(claim)

    def free(self, pool: str, device: str) -> None:
        self.objects.resource_claims.remove("default", f"t-{pool}-{device}")

    def put_class(self, selector: str) -> None:
        self.objects.put(make_device_class("any", selector, extended_resource=GPU))

    def reserve(self, kind: str, number: int) -> None:
        """A pod gets devices on a node, if there are some for it; nothing is written yet."""
        self._version += 1
        claim = make_claim(f"own-{self._version}", REQUESTS[kind])
        self.objects.put(claim)
        pod = make_pod(resource_claims=[_naming(claim)])
        state = CycleState()
        self.snapshot.refresh(self.cache)
        run_filter(self.plugin, pod, self.snapshot, state=state)
        attempt: DeviceAttempt = state.read(self.plugin.name)
        if attempt.allocations.get(f"n{number}") is not None:
            self.plugin.reserve(state, PodInfo(pod), f"n{number}")
            self.reserved.append(Reserved(claim, PodInfo(pod), state, f"n{number}"))

    def unreserve(self) -> None:
        if self.reserved:
            _, pod, state, node_name = self.reserved.pop(0)
            self.plugin.unreserve(state, pod, node_name)

    def write(self) -> None:
        """A claim in flight arrives."""
        if self.reserved:
            uid = self.reserved.pop(0).claim.metadata.uid
            claims = KnownDevices.of(self.objects, DEFAULT_GATES).claims
            claim = claims.in_flight(uid)
            assert claim is not None
            self.objects.put(claim)
            claims.end_allocation(uid, force=True)

    def interrupt(self, kind: str, calls: int) -> None:
        """A search begins and is set aside."""
        self.snapshot.refresh(self.cache)
        pod, state = self._pod(kind), CycleState()
        timer: Any = InterruptsOnce(calls)
        state.timer = timer
        with suppress(SetAsideError):
            run_filter(self.plugin, pod, self.snapshot, state=state)

    def check(self) -> None:
        """Every kind of pod gets the same from the plugin as from one made just now."""
        self.snapshot.refresh(self.cache)
        for kind in (*REQUESTS, "extended"):
            pod = self._pod(kind)
            assert self._ask(self.plugin, pod) == self._ask(self._make_plugin(fresh=True), pod)

    def _pod(self, kind: str) -> Pod:
        if kind == "extended":
            return make_pod(requests={GPU: 1})
        claim = make_claim(kind, REQUESTS[kind])
        self.objects.put(claim)
        return make_pod(resource_claims=[_naming(claim)])

    def _make_plugin(self, *, fresh: bool = False) -> DynamicResources:
        objects = self.objects
        if fresh:  # Everything that is kept belongs to the stores.
            objects = ClusterObjects()
            for store in (
                self.objects.device_classes,
                self.objects.resource_slices,
                self.objects.resource_claims,
            ):
                objects.put(*store)
            # To others, devices in flight are as good as gone.
            claims = KnownDevices.of(self.objects, DEFAULT_GATES).claims
            in_flight = (claims.in_flight(each.claim.metadata.uid) for each in self.reserved)
            objects.put(*(claim for claim in in_flight if claim is not None))
        handle = make_handle(self.snapshot, objects=objects)
        return DynamicResources(DynamicResourcesArgs(), handle)

    def _ask(self, plugin: DynamicResources, pod: Pod) -> object:
        state = CycleState()
        verdicts = run_filter(plugin, pod, self.snapshot, state=state)
        attempt: DeviceAttempt = state.read(plugin.name)
        found = {name: attempt.allocations.get(name) for name in self.snapshot.names}
        scores = plugin.score(state, PodInfo(pod), nodes_of(self.snapshot))
        return (
            {name: status.message for name, status in verdicts.items()},
            {
                name: [each.result for each in would_get.allocations]
                for name, would_get in found.items()
                if would_get is not None
            },
            scores if isinstance(scores, int) else scores.tolist(),
        )


class InterruptsOnce(NoTimer):
    def __init__(self, after: int) -> None:
        self._left = after

    def may_interrupt(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise SetAsideError(0.0)


def _naming(claim: ResourceClaim) -> PodResourceClaim:
    return PodResourceClaim(name="c", resource_claim_name=claim.metadata.name)


NUMBERS = st.integers(0, 2)
POOLS = st.sampled_from(("p0", "p1", "p2", "net"))
DEVICES = st.sampled_from(("d0", "d1", "net"))
Step = Callable[[Lab], None]


def _step(
    action: Callable[..., None], *arguments: st.SearchStrategy[object]
) -> st.SearchStrategy[Step]:
    """The action with such arguments, to be taken in some lab."""

    def given_these(values: tuple[object, ...]) -> Step:
        return lambda lab: action(lab, *values)

    return st.tuples(*arguments).map(given_these)


STEPS: st.SearchStrategy[Step] = st.one_of(
    _step(Lab.put_node, NUMBERS, st.sampled_from(("plain", "ssd", "gpu"))),
    _step(Lab.remove_node, NUMBERS),
    _step(Lab.put_slice, NUMBERS, st.integers(0, 3), st.booleans()),
    _step(Lab.put_network_slice, st.sampled_from(("ssd", "all"))),
    _step(Lab.allocate, POOLS, DEVICES),
    _step(Lab.free, POOLS, DEVICES),
    _step(Lab.put_class, st.sampled_from(("true", FAST))),
    _step(Lab.reserve, st.sampled_from(("one", "two", "choice")), NUMBERS),
    _step(Lab.unreserve),
    _step(Lab.write),
    _step(Lab.interrupt, st.sampled_from((*REQUESTS,)), st.integers(1, 12)),
)


@given(st.lists(STEPS, max_size=8))
def test_kept_answers_equal_fresh_ones(steps: list[Step]) -> None:
    lab = Lab()
    lab.check()
    with mock.patch("kubestow.plugins.dynamic_resources.walk.STEPS_PER_CHECK", 1):
        for step in steps:  # An interrupted search may still be there when more happens.
            step(lab)
        lab.check()


@given(st.lists(STEPS, max_size=8))
def test_kept_answers_equal_fresh_ones_at_every_step(steps: list[Step]) -> None:
    lab = Lab()
    lab.check()
    for step in steps:
        step(lab)
        lab.check()


def test_a_search_goes_on_until_a_device_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.plugins.dynamic_resources.walk.STEPS_PER_CHECK", 1)
    lab, begun = Lab(), list[str]()
    search = lab.plugin._filter._allocator.search

    def counted(node: Node, plans: Sequence[ClaimPlan]) -> NodeSearch:
        begun.append(node.metadata.name)
        return search(node, plans)

    monkeypatch.setattr(lab.plugin._filter._allocator, "search", counted)
    lab.interrupt("two", 3)
    lab.interrupt("two", 2)
    assert begun == ["n0"]
    lab.allocate("p0", "d0")
    lab.interrupt("two", 2)
    assert begun == ["n0", "n0"]


def test_so_many_interrupted_searches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.plugins.dynamic_resources.answers.INTERRUPTED_MAX", 2)
    lab = Lab()
    answers, search = Answers(NodeSlots()), lab.plugin._filter._allocator.search
    for name in "abc":
        answers.keep_interrupted((name,), 0, search(make_node(name), ()))
    assert answers.take_interrupted(("a",), 0) is None
    assert answers.take_interrupted(("b",), 0) is not None
    assert answers.take_interrupted(("b",), 0) is None
    assert answers.take_interrupted(("c",), 0) is not None


def test_equal_claims_are_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.check()

    def fail(*_: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr("kubestow.plugins.dynamic_resources.search.Search.run", fail)
    pod = make_pod(resource_claims=[PodResourceClaim(name="c", resource_claim_name="other")])
    lab.objects.put(make_claim("other", REQUESTS["one"]))
    assert run_filter(lab.plugin, pod, lab.snapshot) == {}
    lab.allocate("p1", "d0")
    with pytest.raises(AssertionError, match="searched again"):
        run_filter(lab.plugin, pod, lab.snapshot)


def test_answers_asked_for_last_are_kept_until_a_class_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubestow.plugins.dynamic_resources.answers.CLAIM_SETS_MAX", 2)
    book = AnswerBook(KnownDevices.of(Lab().objects, DEFAULT_GATES))

    def answers(count: int) -> Answers:
        attempt = DeviceAttempt()
        attempt.claims, attempt.unallocated = [make_claim("c", make_request(count=count))], [0]
        return book.look_up(attempt, make_pod())

    first = answers(1)
    answers(2)
    assert answers(1) is first
    answers(3)
    assert answers(1) is first
    answers(2)
    answers(3)
    first, before = answers(1), first
    assert first is not before
    book._known.classes.put(make_device_class("new"))
    assert answers(1) is not first


def test_claims_of_another_pod_are_reserved_under_their_own_name() -> None:
    lab = Lab()
    lab.check()
    claim: ResourceClaim = make_claim("mine", REQUESTS["one"])
    lab.objects.put(claim)
    pod = make_pod(resource_claims=[PodResourceClaim(name="c", resource_claim_name="mine")])
    state = CycleState()
    run_filter(lab.plugin, pod, lab.snapshot, state=state)
    lab.plugin.reserve(state, PodInfo(pod), "n1")
    attempt: DeviceAttempt = state.read(lab.plugin.name)
    assert [each.metadata.uid for each in attempt.claims] == [claim.metadata.uid]
    assert msgspec.structs.asdict(attempt.reserved[0])["node_selector"] is not None
