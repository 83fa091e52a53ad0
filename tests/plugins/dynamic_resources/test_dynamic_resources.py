"""DynamicResources at the extension points of the scheduling cycle (spec 08 B4 to B6, B9, B11)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from kubestow.api.device import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceRequest,
    ResourceClaim,
)
from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import NodeSelector, Pod, PodResourceClaim, PodResourceClaimStatus
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import SystemClock
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.dynamic_resources.allocator import TimedOut
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.testing import (
    ManualClock,
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    make_term,
    run_filter,
    run_hint,
    run_pre_filter,
)
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
DELETED = datetime(2026, 1, 1, tzinfo=UTC)
ANY = make_device_class()
SERVES_GPU = make_device_class("gpu", extended_resource=GPU)


class Lab:
    """A plugin in a cluster of two nodes with one device each, and what it writes."""

    def __init__(
        self,
        *objects: object,
        nodes: Sequence[Node] | None = None,
        args: DynamicResourcesArgs | None = None,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        self.objects = ClusterObjects()
        self.objects.put(
            ANY,
            make_slice("d1", node="n1", pool="p1"),
            make_slice("d2", node="n2", pool="p2"),
            *objects,  # pyright: ignore[reportArgumentType]
        )
        self.clock = ManualClock(1_000_000)
        self.snapshot = make_snapshot(nodes or [make_node("n1"), make_node("n2")])
        self.handle = make_handle(
            self.snapshot, objects=self.objects, clock=self.clock, feature_gates=gates
        )
        self.written: list[str] = []

        def note(work: object) -> None:
            self.written.append(getattr(work, "__qualname__", ""))
            work.close()  # pyright: ignore[reportAttributeAccessIssue]

        self.handle.spawn = note
        self.plugin = DynamicResources(args or DynamicResourcesArgs(), self.handle)

    def pre_filter(self, pod: Pod) -> Status | None:
        answer = run_pre_filter(self.plugin, pod, self.snapshot)
        assert answer is None or isinstance(answer, Status)
        return answer

    def filter(self, pod: Pod, state: CycleState | None = None) -> Mapping[str, str]:
        found = run_filter(self.plugin, pod, self.snapshot, state=state)
        return {name: status.message for name, status in found.items()}

    def post_filter(self, pod: Pod) -> str:
        state = CycleState()
        self.filter(pod, state)
        diagnosis = Diagnosis(self.snapshot.names)
        result, status = self.plugin.post_filter(state, PodInfo(pod), diagnosis)
        assert result is None
        assert status.code is Code.UNSCHEDULABLE
        return status.message


def claiming(*names: str, uid: str | None = None) -> Pod:
    """A pod that names these claims."""
    return make_pod(
        "web",
        uid=uid,
        resource_claims=[PodResourceClaim(name=name, resource_claim_name=name) for name in names],
    )


def templated(*generated: str | None) -> Pod:
    """A pod whose claim is made from a template; given is what was made so far."""
    pod = make_pod(
        "web", resource_claims=[PodResourceClaim(name="c", resource_claim_template_name="t")]
    )
    statuses = tuple(PodResourceClaimStatus(name="c", resource_claim_name=n) for n in generated)
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=statuses)
    return msgspec.structs.replace(pod, status=status)


def only_on(*names: str) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(make_term(fields=[f"metadata.name In {n}"]) for n in names)
    )


# --- PreEnqueue and claims (B4) ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "claims", "text"),
    [
        pytest.param(make_pod(), [], None, id="no-claims"),
        pytest.param(claiming("c"), [make_claim("c")], None, id="there"),
        pytest.param(templated(None), [], None, id="none-needed"),
        pytest.param(
            claiming("c"), [], 'could not find ResourceClaim "default/c"', id="B4-missing"
        ),
        pytest.param(
            templated(), [], 'pod "default/web": ResourceClaim not created yet', id="B4-not-yet"
        ),
        pytest.param(
            claiming("c"),
            [make_claim("c", deleted=DELETED)],
            'resourceclaim "c" is being deleted',
            id="B4-deleted",
        ),
        pytest.param(
            templated("c"),
            [make_claim("c", owner=make_pod("other"))],
            "ResourceClaim default/c was not created for Pod default/web (Pod is not owner)",
            id="B4-not-owner",
        ),
        pytest.param(
            make_pod("web", resource_claims=[PodResourceClaim(name="c")]),
            [],
            'pod "default/web", spec.resourceClaim "c": none of the supported fields are set',
            id="B4-nothing-set",
        ),
    ],
)
def test_pods_wait_for_their_claims(
    pod: Pod, claims: list[ResourceClaim], text: str | None
) -> None:
    lab = Lab(*claims)
    status = lab.plugin.pre_enqueue(pod)
    assert status == (None if text is None else Status.unresolvable(text))
    if text is not None:
        assert lab.pre_filter(pod) == Status.unresolvable(text)


def test_claims_of_templates_belong_to_the_pod() -> None:
    pod = templated("c")
    assert Lab(make_claim("c", owner=pod)).plugin.pre_enqueue(pod) is None


# --- PreFilter (B5) ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(
            make_request("r", device_class="gone"),
            "request r: device class gone does not exist",
            id="B5-class",
        ),
        pytest.param(
            make_alternatives(
                "r", make_alternative("a"), make_alternative("b", device_class="gone")
            ),
            "request r/b: device class gone does not exist",
            id="B5-class-of-an-alternative",
        ),
        pytest.param(
            DeviceRequest(name="r"),
            "resource claim default/c, request r: unknown request type",
            id="B5-unknown-request",
        ),
    ],
)
def test_requests_that_cannot_be_served_reject_the_pod(request_: DeviceRequest, text: str) -> None:
    assert Lab(make_claim("c", request_)).pre_filter(claiming("c")) == Status.unresolvable(text)


def test_a_request_without_class_is_an_error() -> None:
    lab = Lab(make_claim("c", make_request("r", device_class="")))
    with pytest.raises(PluginError, match=r"^request r: unsupported request type$"):
        lab.pre_filter(claiming("c"))


def test_a_node_selector_that_does_not_parse_is_an_error() -> None:
    selector = NodeSelector(node_selector_terms=(make_term("rack Gt r9"),))
    lab = Lab(make_claim("c", allocation=make_allocation(node_selector=selector)))
    with pytest.raises(PluginError) as caught:
        lab.pre_filter(claiming("c"))
    assert str(caught.value) == (
        'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "r9": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )


def test_pods_without_claims_are_left_alone() -> None:
    lab = Lab()
    state = CycleState()
    pod = PodInfo(make_pod(cpu="1"))
    assert lab.plugin.pre_filter(state, pod, nodes_of(lab.snapshot)) == Status.skip()
    diagnosis = Diagnosis(lab.snapshot.names)
    _, status = lab.plugin.post_filter(state, pod, diagnosis)
    assert status.message == "no new claims to deallocate"


def test_claims_in_flight_reject_other_pods() -> None:
    lab = Lab(make_claim("c", make_request()))
    state = CycleState()
    pod = claiming("c")
    lab.filter(pod, state)
    lab.plugin.reserve(state, PodInfo(pod), "n1")
    assert lab.pre_filter(claiming("c")) == Status.unresolvable(
        "resource claim default/c is in the process of being allocated"
    )
    lab.plugin.unreserve(state, PodInfo(pod), "n1")
    assert lab.pre_filter(claiming("c")) is None


# --- Filter (B6) ------------------------------------------------------------------------------


def test_nodes_without_devices_are_rejected() -> None:
    lab = Lab(make_claim("c", make_request()), make_claim("x", allocation=make_allocation("p1/d1")))
    assert lab.filter(claiming("c")) == {"n1": "cannot allocate all claims"}


def test_allocated_claims_go_where_their_devices_are() -> None:
    allocation = make_allocation("p2/d2", node_selector=only_on("n2"))
    lab = Lab(make_claim("c", allocation=allocation))
    assert lab.filter(claiming("c")) == {"n1": "resourceclaim not available on the node"}


def test_a_failed_search_is_reported_before_an_unavailable_claim() -> None:
    lab = Lab(
        make_claim("c", allocation=make_allocation("p2/d2", node_selector=only_on("n2"))),
        make_claim("d", make_request(count=2)),
    )
    assert lab.filter(claiming("c", "d")) == {
        "n1": "cannot allocate all claims",
        "n2": "cannot allocate all claims",
    }


def test_invalid_pools_are_reported() -> None:
    lab = Lab(make_claim("c", make_request(count=2)), make_slice("x", "x", node="n1", pool="odd"))
    assert lab.filter(claiming("c")) == {
        "n1": "invalid resource pools were encountered",
        "n2": "cannot allocate all claims",
    }


def test_a_nanosecond_times_out() -> None:
    lab = Lab(make_claim("c", make_request()), args=DynamicResourcesArgs(filter_timeout="1ns"))
    found = run_filter(lab.plugin, claiming("c"), lab.snapshot)
    assert found["n1"].code is Code.ERROR
    assert found["n1"].message == "node n1: timed out trying to allocate devices"


def test_one_node_that_times_out_ends_the_attempt() -> None:
    """The other nodes are not searched: that would take as long again on each of them."""
    lab = Lab(make_claim("c", make_request()))
    searched: list[str] = []

    def time_out(node: Node, *given: object) -> None:
        searched.append(node.metadata.name)
        raise TimedOut

    lab.plugin._filter._allocator.search = time_out  # pyright: ignore
    found = run_filter(lab.plugin, claiming("c"), lab.snapshot)
    assert searched == ["n1"]
    assert [found[name].message for name in ("n1", "n2")] == [
        "node n1: timed out trying to allocate devices",
        "node n2: timed out trying to allocate devices",
    ]
    run_filter(lab.plugin, claiming("c"), lab.snapshot)
    assert searched == ["n1", "n1"]


def test_the_filter_timeout_is_real_time() -> None:
    """Simulated time stands still during a search, however long it takes."""
    lab = Lab()
    allocator = lab.plugin._filter._allocator  # pyright: ignore[reportPrivateUsage]
    assert isinstance(allocator._clock, SystemClock)  # pyright: ignore[reportPrivateUsage]


def test_alternatives_need_their_gate() -> None:
    lab = Lab(make_claim("c", CHOICE), gates=FeatureGates({"DRAPrioritizedList": False}))
    status = lab.pre_filter(claiming("c"))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == (
        "resource claim default/c, request r: has subrequests, "
        "but the DRAPrioritizedList feature is disabled"
    )


def test_alternatives_allocated_before_score_nothing_without_their_gate() -> None:
    earlier = make_claim("e", CHOICE, allocation=make_allocation("p9/x", request="r/big"))
    gates = FeatureGates({"DRAPrioritizedList": False})
    lab = Lab(earlier, make_claim("c", make_request()), gates=gates)
    state = CycleState()
    lab.filter(claiming("e", "c"), state)
    assert lab.plugin.score(state, PodInfo(claiming("e", "c")), nodes_of(lab.snapshot)) == 0


def test_extended_resources_need_their_gate() -> None:
    lab = Lab(SERVES_GPU, gates=FeatureGates({"DRAExtendedResource": False}))
    status = lab.pre_filter(make_pod(requests={GPU: 1}))
    assert status is not None
    assert status.code is Code.SKIP


def test_failed_binding_conditions_need_their_gate() -> None:
    claim = waiting_claim(condition="True", failure="True")
    gates = FeatureGates({"DRADeviceBindingConditions": False})
    assert set(Lab(claim).filter(claiming("c"))) == {"n1", "n2"}
    assert Lab(claim, gates=gates).filter(claiming("c")) == {}


def test_errors_are_the_nodes_own() -> None:
    lab = Lab(make_claim("c", make_request("r", 'device.attributes["d.com"].x')))
    found = run_filter(lab.plugin, claiming("c"), lab.snapshot)
    assert {name: status.code for name, status in found.items()} == {
        "n1": Code.ERROR,
        "n2": Code.ERROR,
    }


def waiting_claim(
    *, allocated: datetime | None = None, condition: str = "", failure: str = ""
) -> ResourceClaim:
    """An allocated claim whose device has to be prepared, with the conditions of its driver."""
    allocation = make_allocation("p1/d1")
    result = msgspec.structs.replace(
        allocation.devices.results[0],
        binding_conditions=("Ready",),
        binding_failure_conditions=("Broken",),
    )
    devices = msgspec.structs.replace(allocation.devices, results=(result,))
    claim = make_claim(
        "c", allocation=AllocationResult(devices=devices, allocation_timestamp=allocated)
    )
    reported = AllocatedDeviceStatus(
        driver="d.com",
        pool="p1",
        device="d1",
        conditions=(
            Condition(type="Ready", status=condition),
            Condition(type="Broken", status=failure, reason="Burnt", message="smoke"),
        ),
    )
    status = msgspec.structs.replace(claim.status, devices=(reported,) if condition else ())
    return msgspec.structs.replace(claim, status=status)


EARLIER = datetime.fromtimestamp(1_000_000 - 601, UTC)
JUST_NOW = datetime.fromtimestamp(1_000_000 - 600, UTC)


@pytest.mark.parametrize(
    ("claim", "is_available"),
    [
        pytest.param(waiting_claim(condition="True"), True, id="ready"),
        pytest.param(waiting_claim(allocated=JUST_NOW), True, id="still-waiting"),
        pytest.param(waiting_claim(allocated=EARLIER), False, id="timed-out"),
        pytest.param(waiting_claim(), True, id="waiting-without-timestamp"),
        pytest.param(waiting_claim(condition="True", failure="True"), False, id="failed"),
        pytest.param(waiting_claim(allocated=EARLIER, condition="False"), False, id="never-ready"),
    ],
)
def test_claims_whose_devices_will_not_be_ready_are_unavailable(
    claim: ResourceClaim, is_available: bool
) -> None:
    lab = Lab(claim)
    text = "resourceclaim not available on the node"
    assert lab.filter(claiming("c")) == ({} if is_available else {"n1": text, "n2": text})


# --- Extended resources (B11) -----------------------------------------------------------------

BOTH = [make_node("n1", allocatable={GPU: 4}), make_node("n2")]


def asking(amount: int = 1, *claims: str) -> Pod:
    return make_pod(
        "web",
        requests={GPU: amount},
        resource_claims=[PodResourceClaim(name=name, resource_claim_name=name) for name in claims],
    )


def allocations(lab: Lab, pod: Pod) -> dict[str, dict[str, list[str]]]:
    state = CycleState()
    lab.filter(pod, state)
    attempt: DeviceAttempt = state.read(lab.plugin.name)
    found = {name: attempt.allocations.get(name) for name in lab.snapshot.names}
    return {
        name: {
            claim.metadata.name: [result.device for result in each.result.devices.results]
            for claim, each in zip(would_get.claims, would_get.allocations, strict=True)
        }
        for name, would_get in found.items()
        if would_get is not None
    }


def test_devices_serve_where_no_device_plugin_does() -> None:
    lab = Lab(SERVES_GPU, nodes=BOTH)
    assert lab.filter(asking()) == {}
    assert allocations(lab, asking()) == {"n2": {"<extended-resources>": ["d2"]}}
    assert lab.filter(asking(2)) == {"n2": "cannot allocate all claims"}


def test_the_special_claim_comes_along_with_others() -> None:
    lab = Lab(SERVES_GPU, make_claim("c", make_request()), nodes=BOTH)
    lab.objects.put(make_slice("d3", node="n2", pool="p3"))
    assert allocations(lab, asking(1, "c")) == {
        "n1": {"c": ["d1"], "<extended-resources>": []},
        "n2": {"c": ["d2"], "<extended-resources>": ["d3"]},
    }


def test_resources_that_nothing_serves_do_not_fit() -> None:
    lab = Lab(SERVES_GPU)
    pod = make_pod(requests={GPU: 1, "example.com/other": 1})
    assert lab.filter(pod) == {"n1": "cannot fit resource", "n2": "cannot fit resource"}


def test_resources_without_class_need_no_claim() -> None:
    assert Lab().pre_filter(asking()) == Status.skip()
    assert Lab(SERVES_GPU).pre_filter(asking(0)) == Status.skip()


def test_classes_serve_under_their_own_name() -> None:
    lab = Lab(nodes=[make_node("n2")])
    pod = make_pod(requests={"deviceclass.resource.kubernetes.io/any": 1})
    assert allocations(lab, pod) == {"n2": {"<extended-resources>": ["d2"]}}


def test_a_claim_left_over_is_deleted_first() -> None:
    pod = asking()
    left = make_claim(
        "web-extended-resources-x",
        make_request(),
        owner=pod,
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
    )
    lab = Lab(SERVES_GPU, left)
    text = "cannot schedule extended resource claim"
    assert lab.filter(pod) == {"n1": text, "n2": text}
    assert lab.post_filter(pod) == "deletion of ResourceClaim completed"
    assert len(lab.written) == 1


# --- PostFilter (B9) --------------------------------------------------------------------------


def test_without_state_postfilter_fails() -> None:
    lab = Lab()
    with pytest.raises(PluginError, match=r"^not found$"):
        lab.plugin.post_filter(CycleState(), PodInfo(make_pod()), Diagnosis(("n1",)))


def test_a_pod_rejected_at_prefilter_gives_up_nothing() -> None:
    lab = Lab(
        make_claim("c", allocation=make_allocation("p1/d1", node_selector=only_on("gone"))),
        make_claim("d", make_request(device_class="gone")),
    )
    assert lab.post_filter(claiming("c", "d")) == "no new claims to deallocate"


OTHER = make_pod("other")


@pytest.mark.parametrize(
    ("reserved_for", "text", "written"),
    [
        pytest.param([], "deallocation of ResourceClaim completed", 1, id="no-consumer"),
        pytest.param(["self"], "deallocation of ResourceClaim completed", 1, id="only-this-pod"),
        pytest.param(["self", "other"], "still not schedulable", 0, id="another-pod"),
    ],
)
def test_claims_that_are_in_the_way_are_given_up(
    reserved_for: list[str], text: str, written: int
) -> None:
    pod = claiming("c")
    pods = {"self": pod, "other": OTHER}
    claim = make_claim(
        "c",
        allocation=make_allocation("p9/d9", node_selector=only_on("gone")),
        reserved_for=[pods[name] for name in reserved_for],
    )
    lab = Lab(claim)
    assert lab.post_filter(pod) == text
    assert len(lab.written) == written


def test_claims_that_are_not_in_the_way_stay() -> None:
    lab = Lab(
        make_claim("c", allocation=make_allocation("p1/d1")), make_claim("d", make_request(count=2))
    )
    assert lab.post_filter(claiming("c", "d")) == "still not schedulable"


# --- Score (B9) -------------------------------------------------------------------------------

CHOICE = make_alternatives(
    "r",
    make_alternative("big", 'device.attributes["d.com"].?big.orValue(false)'),
    make_alternative("small"),
)


def scores(lab: Lab, pod: Pod) -> tuple[list[int], list[int]]:
    state = CycleState()
    lab.filter(pod, state)
    nodes = nodes_of(lab.snapshot)
    raw = lab.plugin.score(state, PodInfo(pod), nodes)
    assert not isinstance(raw, int)
    return raw.tolist(), lab.plugin.normalize(state, PodInfo(pod), raw).tolist()


def test_better_alternatives_score_higher() -> None:
    lab = Lab(make_claim("c", CHOICE))
    lab.objects.put(make_slice(make_device("b", attributes={"big": True}), node="n1", pool="big"))
    assert scores(lab, claiming("c")) == ([8, 7], [100, 87])


def test_earlier_allocations_count_on_every_node_that_gives_devices() -> None:
    earlier = make_claim("e", CHOICE, allocation=make_allocation("p9/x", request="r/big"))
    lab = Lab(earlier, make_claim("c", make_request()))
    assert scores(lab, claiming("e", "c")) == ([8, 8], [100, 100])
    assert scores(lab, claiming("e")) == ([0, 0], [0, 0])


def test_claims_without_alternatives_score_nothing() -> None:
    lab = Lab(make_claim("c", make_request()))
    state = CycleState()
    lab.filter(claiming("c"), state)
    assert lab.plugin.score(state, PodInfo(claiming("c")), nodes_of(lab.snapshot)) == 0


# --- Reserve ----------------------------------------------------------------------------------


def test_reserving_on_a_node_that_was_not_filtered_fails() -> None:
    lab = Lab(make_claim("c", make_request()))
    state = CycleState()
    lab.filter(claiming("c"), state)
    with pytest.raises(PluginError, match=r"^claim allocation not found for node$"):
        lab.plugin.reserve(state, PodInfo(claiming("c")), "n3")


def test_where_a_device_plugin_serves_there_is_nothing_to_reserve() -> None:
    lab = Lab(SERVES_GPU, nodes=BOTH)
    state = CycleState()
    lab.filter(asking(), state)
    assert lab.plugin.reserve(state, PodInfo(asking()), "n1") is None
    assert state.read(lab.plugin.name).reserved == {}


def test_reserved_devices_are_gone_for_others() -> None:
    lab = Lab(make_claim("c", make_request()), make_claim("d", make_request()))
    state = CycleState()
    lab.filter(claiming("c"), state)
    lab.plugin.reserve(state, PodInfo(claiming("c")), "n1")
    assert lab.filter(claiming("d")) == {"n1": "cannot allocate all claims"}


# --- Queueing hints (B12, 02 §7.3h) -----------------------------------------------------------

CLAIM_ADD = ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD)
CLAIM_UPDATE = ClusterEvent(Resource.RESOURCE_CLAIM, Action.UPDATE)
FREE, HELD = make_claim("other"), make_claim("other", allocation=make_allocation("p1/d1"))
MINE = make_claim("c")
MINE_HELD = msgspec.structs.replace(
    MINE, status=msgspec.structs.replace(MINE.status, allocation=make_allocation("p1/d1"))
)


@pytest.mark.parametrize(
    ("event", "old", "new", "claims", "hint"),
    [
        pytest.param(CLAIM_UPDATE, HELD, FREE, [], Hint.SKIP, id="claims-do-not-resolve"),
        pytest.param(CLAIM_UPDATE, HELD, FREE, [MINE], Hint.QUEUE, id="deallocated"),
        pytest.param(CLAIM_UPDATE, FREE, HELD, [MINE], Hint.SKIP, id="not-mine"),
        pytest.param(CLAIM_ADD, None, MINE, [MINE], Hint.QUEUE, id="created"),
        pytest.param(CLAIM_UPDATE, MINE, MINE, [MINE], Hint.SKIP, id="status-unchanged"),
        pytest.param(CLAIM_UPDATE, MINE, MINE_HELD, [MINE], Hint.QUEUE, id="status-changed"),
        pytest.param(
            ClusterEvent(Resource.RESOURCE_CLAIM, Action.DELETE),
            MINE,
            None,
            [MINE],
            None,
            id="deleted",
        ),
    ],
)
def test_claim_events(
    event: ClusterEvent,
    old: ResourceClaim | None,
    new: ResourceClaim | None,
    claims: list[ResourceClaim],
    hint: Hint | None,
) -> None:
    assert run_hint(Lab(*claims).plugin, event, claiming("c"), old, new) == hint


@pytest.mark.parametrize(
    ("uid", "claims", "hint"),
    [
        ("mine", [MINE], Hint.QUEUE),
        ("mine", [], Hint.SKIP),
        ("theirs", [MINE], Hint.SKIP),
    ],
)
def test_generated_claims(uid: str, claims: list[ResourceClaim], hint: Hint) -> None:
    event = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    pod, new = claiming("c", uid="mine"), claiming("c", uid=uid)
    assert run_hint(Lab(*claims).plugin, event, pod, pod, new) == hint


@pytest.mark.parametrize(
    "event",
    [
        ClusterEvent(Resource.NODE, Action.ADD),
        ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL),
        ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE),
        ClusterEvent(Resource.DEVICE_CLASS, Action.UPDATE),
        ClusterEvent(Resource.RESOURCE_SLICE, Action.ADD),
    ],
)
def test_events_that_always_help(event: ClusterEvent) -> None:
    assert run_hint(Lab().plugin, event, claiming("c"), None, None) is Hint.QUEUE


# --- Arguments --------------------------------------------------------------------------------


def test_arguments_have_to_be_durations() -> None:
    with pytest.raises(ConfigError, match='filterTimeout: time: missing unit in duration "10"'):
        Lab(args=DynamicResourcesArgs(filter_timeout="10"))
