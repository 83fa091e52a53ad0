"""Equal pods that follow each other get the nodes that the first one left (spec 04 §15)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.decode import to_document
from kubestow.api.pod import (
    Affinity,
    ImageVolume,
    NamedSource,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodResourceClaim,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.arrays import IntArray
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.plugin_args import InterPodAffinityArgs, PodTopologySpreadArgs
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.engine.batching import (
    EXPIRED,
    NOTHING_KEPT,
    POD_INCOMPATIBLE,
    POD_SKIPPED,
    Asking,
    BatchRules,
    BatchState,
    KeptNodes,
    LastCycle,
    ScoredNodes,
    Stored,
    Unusable,
    signature_of,
    stored,
)
from kubestow.engine.deciding import DecidingHalf, NoQueue
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.scheduler import Scheduler
from kubestow.engine.select_host import PreorderSelector
from kubestow.explain.verdicts import node_explanations, search_end
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult, place
from kubestow.testing import ManualClock, make_container, make_node, make_pod
from kubestow.testing.profiles import make_plugin

# --- the heap ---


def scored(totals: Iterable[int], *, popped: int = 0) -> ScoredNodes:
    array = np.array(list(totals), np.int64)
    return ScoredNodes(
        [str(row) for row in range(len(array))], range(len(array)), array, popped=popped
    )


@pytest.mark.parametrize(
    ("totals", "order"),
    [
        pytest.param([5, 5, 5, 5, 5], [0, 4, 3, 2, 1], id="8.5-2-all-equal"),
        pytest.param([3, 9, 9], [1, 2, 0], id="8.5-2-two-best"),
        pytest.param([1, 7, 9, 9, 2], [3, 2, 1, 4, 0], id="8.5-2-not-the-first"),
        pytest.param([10, 20, 20, 20], [1, 3, 2, 0], id="8.5-2-three-best"),
        pytest.param([7], [0], id="one"),
    ],
)
def test_nodes_are_popped_in_the_order_of_the_heap(totals: list[int], order: list[int]) -> None:
    nodes = scored(totals)
    assert [int(nodes.pop()) for _ in totals] == order
    assert len(nodes) == 0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=200))
def test_the_first_is_the_chosen_node_and_totals_never_rise(totals: list[int]) -> None:
    nodes = scored(totals)
    assert int(nodes.best) == PreorderSelector().select(np.array(totals, np.int64))
    order = [int(nodes.pop()) for _ in totals]
    assert sorted(order) == list(range(len(totals)))
    popped = [totals[position] for position in order]
    assert popped == sorted(totals, reverse=True)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_what_is_left_is_the_same_as_after_a_pop(totals: list[int]) -> None:
    left, nodes = scored(totals, popped=1), scored(totals)
    assert len(left) == len(totals) - 1
    nodes.pop()
    assert left.names == nodes.names


# --- the rules as values ---

SIGNATURE = {"labels": {"app": "web"}}


def kept(*totals: int) -> KeptNodes:
    return KeptNodes(SIGNATURE, scored(totals), made_s=10.0)


def asking(cycle: int = 5, signature: Any = SIGNATURE, now_s: float = 10.1) -> Asking:
    return Asking(cycle, signature, now_s)


LAST = LastCycle(4, "n")
FULL = BatchState(LAST, kept(1, 2))


@pytest.mark.parametrize(
    ("state", "request_", "expected"),
    [
        pytest.param(FULL, asking(), FULL.kept, id="equal-and-next"),
        pytest.param(BatchState(), asking(), NOTHING_KEPT, id="nothing-kept"),
        pytest.param(BatchState(LAST, kept()), asking(), NOTHING_KEPT, id="all-used"),
        pytest.param(FULL, asking(6), POD_SKIPPED, id="another-pod-between"),
        pytest.param(FULL, asking(4), POD_SKIPPED, id="the-same-cycle"),
        pytest.param(FULL, asking(signature=None), POD_INCOMPATIBLE, id="unsigned"),
        pytest.param(
            FULL, asking(signature={"labels": {}}), POD_INCOMPATIBLE, id="another-signature"
        ),
        pytest.param(
            FULL,
            asking(signature={"labels": np.array((1, 2))}),
            POD_INCOMPATIBLE,
            id="cannot-be-compared",
        ),
        pytest.param(FULL, asking(6, None, 99.0), POD_SKIPPED, id="cycle-is-first"),
        pytest.param(FULL, asking(5, None, 99.0), POD_INCOMPATIBLE, id="signature-before-age"),
        pytest.param(FULL, asking(now_s=10.5), FULL.kept, id="half-a-second-old"),
        pytest.param(FULL, asking(now_s=10.500001), EXPIRED, id="too-old"),
    ],
)
def test_when_what_is_kept_is_of_use(
    state: BatchState, request_: Asking, expected: KeptNodes | Unusable
) -> None:
    assert BatchRules().kept_for(state, request_) is expected


LEFT = scored([3, 4])


@pytest.mark.parametrize(
    ("hint", "left", "signature", "expected"),
    [
        pytest.param(
            "a", None, SIGNATURE, Stored(BatchState(LastCycle(5, "a"), FULL.kept), "hint_used")
        ),
        pytest.param(
            "b",
            LEFT,
            SIGNATURE,
            Stored(
                BatchState(LastCycle(5, "a"), KeptNodes(SIGNATURE, LEFT, 10.1)), "hint_not_used"
            ),
        ),
        pytest.param(
            "b",
            None,
            SIGNATURE,
            Stored(BatchState(LastCycle(5, "a")), "hint_not_used", "empty_list"),
        ),
        pytest.param(
            "",
            LEFT,
            SIGNATURE,
            Stored(BatchState(LastCycle(5, "a"), KeptNodes(SIGNATURE, LEFT, 10.1)), ""),
        ),
        pytest.param("", None, None, Stored(BatchState(LastCycle(5, "a")), "", "empty_list")),
        pytest.param(
            "", LEFT, None, Stored(BatchState(LastCycle(5, "a")), "", "pod_not_batchable")
        ),
    ],
)
def test_what_is_kept_after_a_node_was_chosen(
    hint: str, left: ScoredNodes | None, signature: Any, expected: Stored
) -> None:
    assert stored(FULL, asking(signature=signature), hint, "a", left) == expected


# --- cycles ---


class Capacity:
    """A rule by name of the node: how many pods it takes, and its score."""

    def __init__(self, **nodes: tuple[int, int]) -> None:
        self.nodes = nodes

    def filter(self, state: Any, pod: PodInfo, nodes: Nodes) -> IntArray:
        limits = np.array([self.nodes[name][0] for name in nodes.names], np.int64)
        return (nodes.pod_count >= limits).astype(np.int64)

    def score(self, state: Any, pod: PodInfo, nodes: Nodes) -> IntArray:
        return np.array([self.nodes[name][1] for name in nodes.names], np.int64)

    def sign(self, pod: PodInfo) -> Mapping[str, object]:
        return {"labels": pod.pod.metadata.labels}

    def plugin(self, **methods: Any) -> Any:
        return make_plugin(
            "Capacity",
            **{
                "filter": self.filter,
                "filter_status": lambda state, code: Status.unschedulable("full"),
                "score": self.score,
                "sign_pod": self.sign,
                **methods,
            },
        )


Run = Callable[[Any], None]


class Placing:
    """Schedules pods one after the other in a world of nodes with these capacities and scores."""

    def __init__(self, make_world: Any, capacity: Capacity, *more: Any, **options: Any) -> None:
        nodes = [make_node(name) for name in capacity.nodes]
        self.world = make_world(capacity.plugin(), *more, nodes=nodes, **options)

    def place(self, name: str, **fields: Any) -> tuple[str, str, int]:
        """The node, the result for the metrics, how many nodes were looked at."""
        self.world.create(make_pod(name, **fields))
        decision = self.world.schedule()
        assert decision is not None
        batch = decision.batch
        result = "alone" if batch is None else batch.result
        return decision.node_name, result, decision.evaluated_count


ONE_EACH = Capacity(a=(1, 9), b=(1, 8), c=(1, 7), d=(1, 6))


def test_1_each_pod_gets_the_next_best(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        assert placing.place("p1") == ("a", "no_hint", 4)
        start = placing.world.scheduler.decider.next_start_index
        assert placing.place("p2") == ("b", "hint_used", 1)
        assert placing.place("p3") == ("c", "hint_used", 1)
        assert placing.world.scheduler.decider.next_start_index == start
        assert placing.place("p4") == ("d", "hint_used", 1)
        assert placing.place("p5") == ("", "no_hint", 4)

    run(test())


def test_2_a_node_with_room_left_has_all_searched(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, Capacity(a=(2, 9), b=(1, 8), c=(1, 7)))
        assert placing.place("p1") == ("a", "no_hint", 3)
        assert placing.place("p2") == ("a", "no_hint", 3)
        assert placing.world.decisions[-1].batch.flushed == ["node_not_full"]
        assert placing.place("p3") == ("b", "hint_used", 1)

    run(test())


def test_3_a_pod_of_another_profile_between(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH, profile_names=("default-scheduler", "other"))
        placing.place("p1")
        assert placing.place("q1", scheduler_name="other") == ("b", "no_hint", 4)
        assert placing.place("p2") == ("c", "no_hint", 4)
        assert placing.world.decisions[-1].batch.flushed == ["pod_skipped"]

    run(test())


def test_4_half_a_second_later_nothing_is_kept(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        await asyncio.sleep(0.4)
        assert placing.place("p2") == ("b", "hint_used", 1)
        await asyncio.sleep(0.2)
        assert placing.place("p3") == ("c", "no_hint", 4)
        assert placing.world.decisions[-1].batch.flushed == ["expired"]

    run(test())


def test_5_a_hint_that_does_not_fit_any_more(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        placing.world.scheduler.handlers.pod_added(make_pod("bound", node="b"))
        assert placing.place("p2") == ("c", "hint_not_used", 4)
        # What the search of p2 has left.
        assert placing.place("p3") == ("d", "hint_used", 1)

    run(test())


def test_a_decision_says_that_it_followed_a_hint(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        placing.place("p2")
        frozen = placing.world.decisions[-1].freeze()
        assert (frozen.via_hint, frozen.via_nominated_node) == (True, False)
        assert search_end(frozen) == "Hint"
        codes = {each.name: each.reason_codes for each in node_explanations(frozen)}
        assert codes["c"] == ("HintFits",)

    run(test())


def test_what_is_decided_alone_has_no_part(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        scheduler = placing.world.scheduler
        profile = scheduler.profiles["default-scheduler"]
        decision = scheduler.decider.decide(profile, PodInfo(make_pod("alone")))
        assert (decision.batch, decision.evaluated_count) == (None, 4)
        # Nor does it take anything away.
        assert placing.place("p2") == ("b", "hint_used", 1)

    run(test())


def test_what_is_forgotten_gives_no_hint(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        placing.world.scheduler.batches.forget()
        assert placing.place("p2") == ("b", "no_hint", 4)

    run(test())


def test_6_a_nomination_consumes_the_hint(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        assert placing.place("p2", nominated_node="c") == ("c", "hint_not_used", 1)
        decision = placing.world.decisions[-1]
        assert decision.batch.flushed == ["empty_list"]
        assert (decision.via_nominated_node, decision.via_hint) == (True, False)
        assert placing.place("p3") == ("b", "no_hint", 4)

    run(test())


def test_pods_that_differ_have_all_searched(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1", labels={"app": "web"})
        assert placing.place("p2", labels={"app": "db"}) == ("b", "no_hint", 4)
        assert placing.world.decisions[-1].batch.flushed[0] == "pod_incompatible"

    run(test())


def test_a_failed_attempt_leaves_nothing_to_the_next(make_world: Any, run: Run) -> None:
    async def test() -> None:
        only_web = make_plugin(
            "OnlyWeb",
            filter=lambda state, pod, nodes: np.full(
                len(nodes), not pod.pod.metadata.labels, np.int64
            ),
            filter_status=lambda state, code: Status.unschedulable("no label"),
            sign_pod=lambda pod: {},
        )
        placing = Placing(make_world, ONE_EACH, only_web)
        placing.place("p1", labels={"app": "web"})
        assert placing.place("p2") == ("", "no_hint", 4)
        assert placing.place("p3", labels={"app": "web"}) == ("b", "no_hint", 4)
        assert placing.world.decisions[-1].batch.flushed == ["pod_skipped"]

    run(test())


def test_a_changed_pod_is_signed_again(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        world = placing.world
        placing.place("p1", labels={"app": "web"})
        old = world.create(make_pod("p2", labels={"app": "web"}))
        world.change(old, make_pod("p2", labels={"app": "db"}))
        decision = world.schedule()
        assert (decision.node_name, decision.via_hint) == ("b", False)

    run(test())


def test_the_last_node_is_gone(make_world: Any, run: Run) -> None:
    async def test() -> None:
        placing = Placing(make_world, ONE_EACH)
        placing.place("p1")
        placing.world.scheduler.handlers.node_deleted(make_node("a"))
        assert placing.place("p2")[:2] == ("b", "no_hint")
        assert placing.world.decisions[-1].batch.flushed == ["node_missing"]

    run(test())


# --- who takes part ---


def test_one_plugin_that_does_not_sign_leaves_the_profile_out(make_world: Any, run: Run) -> None:
    async def test() -> None:
        silent = make_plugin("Silent", score=lambda state, pod, nodes: 0)
        placing = Placing(make_world, ONE_EACH, silent)
        assert placing.world.scheduler.batches is None
        assert placing.place("p1") == ("a", "alone", 4)

    run(test())


def profile_of(*configs: ProfileConfig, gates: FeatureGates = DEFAULT_GATES) -> Profile:
    objects = ClusterObjects()
    deciding = DecidingHalf(
        config=SchedulerConfig(profiles=configs or (ProfileConfig(),)),
        objects=objects,
        clock=ManualClock(),
        client=MemoryClient(MemoryCluster(ManualClock())),
        make_queue=lambda _: NoQueue(objects),
        registry=rules_of(gates.edition).registry,
        gates=gates,
    )
    (profile,) = deciding.profiles.values()
    return profile


LIST = ProfileConfig(
    plugin_config=(
        PluginConfig(name="PodTopologySpread", args=PodTopologySpreadArgs(defaulting_type="List")),
    )
)
WITHOUT_SPREAD = ProfileConfig(
    plugins=Plugins(multi_point=PluginSet(disabled=(PluginRef("PodTopologySpread"),)))
)


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
@pytest.mark.parametrize(
    ("config", "is_signing"),
    [
        pytest.param(ProfileConfig(), False, id="default"),
        pytest.param(LIST, True, id="no-default-constraints"),
        pytest.param(WITHOUT_SPREAD, True, id="without-the-plugin"),
    ],
)
def test_which_profiles_sign(version: str, config: ProfileConfig, is_signing: bool) -> None:
    gates = FeatureGates({}, edition_named(version))
    assert (profile_of(config, gates=gates).signers is not None) is is_signing


def test_plugins_at_other_points_need_not_sign(make_world: Any, run: Run) -> None:
    async def test() -> None:
        permit = make_plugin("Permit", permit=lambda state, pod, node_name: (None, 0))
        placing = Placing(make_world, ONE_EACH, permit)
        placing.place("p1")
        assert placing.place("p2") == ("b", "hint_used", 1)

    run(test())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda pod: None, id="refuses"),
        pytest.param(lambda pod: 5, id="no-mapping"),
        pytest.param(lambda pod: pod.gone, id="raises"),
    ],
)
def test_a_plugin_without_an_answer_leaves_the_pod_unsigned(
    answer: Any, make_world: Any, run: Run
) -> None:
    async def test() -> None:
        other = make_plugin("Other", score=lambda state, pod, nodes: 0, sign_pod=answer)
        placing = Placing(make_world, ONE_EACH, other)
        placing.place("p1")
        assert placing.place("p2") == ("b", "no_hint", 4)

    run(test())


# --- what tells pods apart (spec 05 §14) ---

PORT = make_pod(host_ports=[80])


def with_volumes(*volumes: Volume) -> Pod:
    return make_pod(volumes=volumes)


def tolerating(*keys: str) -> Pod:
    return make_pod(tolerations=[Toleration(key=key, operator="Exists") for key in keys])


def preferring(*weights: int) -> Pod:
    terms = [
        PreferredSchedulingTerm(
            weight=weight,
            preference=NodeSelectorTerm(
                match_expressions=(
                    NodeSelectorRequirement(key="disk", operator="In", values=("a", "b")),
                )
            ),
        )
        for weight in weights
    ]
    return make_pod(node_affinity=NodeAffinity(preferred=tuple(terms)))


def selecting(*values: str) -> Pod:
    term = NodeSelectorTerm(
        match_expressions=(NodeSelectorRequirement(key="k", operator="In", values=values),)
    )
    required = NodeSelector(node_selector_terms=(term,))
    return make_pod(node_affinity=NodeAffinity(required=required))


@pytest.fixture(scope="module")
def profile() -> Profile:
    return profile_of(LIST)


@pytest.mark.parametrize(
    ("pod", "other"),
    [
        pytest.param(make_pod("a", priority=1), make_pod("b", priority=2), id="name-and-priority"),
        pytest.param(
            make_pod(host_ports=[80, 81]), make_pod(host_ports=[81, 80]), id="order-of-ports"
        ),
        pytest.param(PORT, make_pod(host_ports=["127.0.0.1:80"]), id="ip-of-a-port"),
        pytest.param(PORT, make_pod(host_ports=["80/UDP"]), id="protocol-of-a-port"),
        pytest.param(tolerating("a", "b"), tolerating("b", "a"), id="order-of-tolerations"),
        pytest.param(preferring(1, 2), preferring(2, 1), id="order-of-terms"),
        pytest.param(selecting("x", "y"), selecting("y", "x"), id="order-of-values"),
        pytest.param(make_pod(image="nginx"), make_pod(image="nginx:latest"), id="no-tag"),
        pytest.param(
            make_pod(cpu="1"),
            make_pod(containers=[make_container("a", cpu="500m"), make_container("b", cpu="500m")]),
            id="the-same-requests-in-two-containers",
        ),
        pytest.param(
            with_volumes(Volume(name="a", image=ImageVolume(reference="x"))),
            with_volumes(Volume(name="b", image=ImageVolume(reference="x"))),
            id="name-of-a-volume",
        ),
        pytest.param(
            with_volumes(Volume(name="a", secret=NamedSource())), make_pod(), id="a-secret"
        ),
    ],
)
def test_equal_pods(profile: Profile, pod: Pod, other: Pod) -> None:
    found = signature_of(profile, PodInfo(pod))
    assert found is not None
    assert found == signature_of(profile, PodInfo(other))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(cpu="2"), id="requests"),
        pytest.param(make_pod(requests={"example.com/x": "0"}), id="a-scalar-of-0"),
        pytest.param(make_pod(labels={"app": "web"}), id="labels"),
        pytest.param(PORT, id="port"),
        pytest.param(tolerating("a"), id="toleration"),
        pytest.param(tolerating("a", "a"), id="a-toleration-twice"),
        pytest.param(preferring(1), id="preferred-affinity"),
        pytest.param(preferring(1, 1), id="a-term-twice"),
        pytest.param(selecting("x"), id="required-affinity"),
        pytest.param(make_pod(node_affinity=NodeAffinity()), id="empty-affinity"),
        pytest.param(make_pod(node_selector={"a": "b"}), id="node-selector"),
        pytest.param(make_pod(node_selector={}), id="empty-node-selector"),
        pytest.param(make_pod(image="redis"), id="image"),
        pytest.param(make_pod(pvcs=["data"]), id="claim"),
        pytest.param(
            with_volumes(Volume(name="a", image=ImageVolume(reference="x"))), id="image-volume"
        ),
        pytest.param(make_pod(scheduler_name="other"), id="scheduler-name"),
        pytest.param(make_pod(host_users=False, host_network=True), id="required-features"),
    ],
)
def test_different_pods(profile: Profile, pod: Pod) -> None:
    found = signature_of(profile, PodInfo(pod))
    assert found is not None
    assert found != signature_of(profile, PodInfo(make_pod()))


NEAR = Affinity(pod_affinity=PodAffinity())
CLAIM = PodResourceClaim(name="gpu", resource_claim_name="gpu")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(affinity=NEAR), id="empty-pod-affinity"),
        pytest.param(
            make_pod(spread=[TopologySpreadConstraint(max_skew=1, topology_key="zone")]),
            id="spread-constraint",
        ),
        pytest.param(make_pod(resource_claims=[CLAIM]), id="resource-claim"),
    ],
)
def test_pods_without_an_equal(profile: Profile, pod: Pod) -> None:
    assert signature_of(profile, PodInfo(pod)) is None


def test_labels_do_not_count_where_other_pods_terms_are_ignored() -> None:
    ignoring = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    args = (*LIST.plugin_config, PluginConfig(name="InterPodAffinity", args=ignoring))
    profile = profile_of(msgspec.structs.replace(LIST, plugin_config=args))
    pods = [PodInfo(make_pod(labels=labels)) for labels in ({}, {"app": "web"})]
    assert signature_of(profile, pods[0]) == signature_of(profile, pods[1])


# --- a whole cluster ---


class WithoutReuse(SchedulerFactory):
    """Every plugin is asked for every pod."""

    def build(self) -> Scheduler:
        scheduler = super().build()
        scheduler.decider._records = None
        return scheduler


def placed(nodes: list[Any], pods: list[Any], version: str, **options: Any) -> dict[str, str]:
    gates = FeatureGates({}, edition_named(version))
    if factory := options.pop("base", None):
        made = type("Made", (factory, rules_of(gates.edition).factory), {})
        options["factory"] = made
    documents = map(to_document, [*nodes, *pods])
    config = SchedulerConfig(profiles=(LIST,))
    registry = rules_of(gates.edition).registry
    result = SimulationResult.of(
        run_scenario(placing(documents), config, registry, gates, **options)
    )
    return {pod.name: pod.node for pod in result.pods}


def prefer_nodes(**weights: int) -> NodeAffinity:
    terms = [
        PreferredSchedulingTerm(
            weight=weight,
            preference=NodeSelectorTerm(
                match_expressions=(
                    NodeSelectorRequirement(
                        key="kubernetes.io/hostname", operator="In", values=(name,)
                    ),
                )
            ),
        )
        for name, weight in weights.items()
    ]
    return NodeAffinity(preferred=tuple(terms))


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_7_the_kept_order_is_not_that_of_a_search(version: str) -> None:
    nodes = [
        make_node(name, cpu=cpu, memory=memory, labels={"kubernetes.io/hostname": name})
        for name, cpu, memory in (
            ("a", "1", "500Mi"),
            ("b", "1600m", "800Mi"),
            ("c", "4", "2000Mi"),
        )
    ]
    affinity = prefer_nodes(a=100, b=50, c=40)
    pods = [
        make_pod(name, cpu="800m", memory="400Mi", node_affinity=affinity) for name in ("p1", "p2")
    ]
    assert placed(nodes, pods, version) == {"p1": "a", "p2": "c"}
    off = FeatureGates({"OpportunisticBatching": False}, edition_named(version))
    documents = map(to_document, [*nodes, *pods])
    result = place(
        documents, SchedulerConfig(profiles=(LIST,)), rules_of(off.edition).registry, off
    )
    assert {pod.name: pod.node for pod in result.pods} == {"p1": "a", "p2": "b"}


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
@given(st.integers(0, 2**32))
@settings(max_examples=15)
def test_reused_answers_give_the_same_hints(version: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"n{number:02}" for number in range(rng.integers(2, 25))]
    nodes = [
        make_node(
            name,
            cpu=str(rng.integers(1, 5)),
            memory=f"{rng.integers(1, 9)}Gi",
            labels={"kubernetes.io/hostname": name},
        )
        for name in names
    ]
    shapes = [
        {
            "cpu": f"{rng.integers(2, 20)}00m",
            "memory": f"{rng.integers(1, 20)}00Mi",
            "node_affinity": prefer_nodes(
                **{str(name): int(rng.integers(1, 100)) for name in rng.choice(names, 2)}
            ),
            "host_ports": [80] if rng.random() < 0.3 else [],
        }
        for _ in range(rng.integers(1, 4))
    ]
    pods: list[Pod] = []
    while len(pods) < 40:
        shape = shapes[rng.integers(len(shapes))]
        pods += [make_pod(f"p{len(pods) + more:03}", **shape) for more in range(rng.integers(1, 9))]
    plain = placed(nodes, pods, version, base=WithoutReuse)
    assert placed(nodes, pods, version) == plain
