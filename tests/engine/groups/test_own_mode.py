"""What the plugin Gangs does in another way than upstream; each test shows both."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.engine.groups.play import (
    FAIL_RESERVE,
    GANG,
    TAIL,
    TAS,
    WAP,
    Play,
    evicted,
    messages,
    own_mode,
)

from kubestow.api.pod import Pod
from kubestow.testing import make_node, make_pod, make_pod_group

UNSCHEDULABLE = "pod group is unschedulable"
UPSTREAM: dict[str, Any] = {}
OWN = own_mode()
Config = Mapping[str, Any]


def member(name: str, cpu: str = "1", group: str = "g", **more: Any) -> Pod:
    return make_pod(name, cpu=cpu, group=group, **more)


def without(option: str) -> dict[str, Any]:
    """Own mode with one option off: upstream's behaviour in this respect."""
    return own_mode(**{option: False})


def has_work(play: Play) -> bool:
    """Whether a pop finds a pod, be it before the end of its backoff."""
    queue = play.world.queue.statistics()
    return queue.active + queue.backoff > 0


# --- no eviction unless the whole group then runs -------------------------------------------------


@pytest.mark.parametrize(
    ("config", "left"),
    [
        pytest.param(UPSTREAM, ["gone", "n2"], id="upstream"),
        pytest.param(without("evictForWholeGroups"), ["gone", "n2"], id="option-off"),
        pytest.param(OWN, ["n1", "n2"], id="own"),
    ],
)
def test_no_pod_is_evicted_for_a_group_that_does_not_run_then(
    config: Config, left: list[str]
) -> None:
    nodes = [make_node("n1", cpu="2"), make_node("n2", cpu="2")]
    pods = [member("p1", cpu="2", priority=100), member("p2", cpu="2", priority=100)]
    others = [
        make_pod("v", cpu="2", node="n1", priority=10),
        make_pod("x", cpu="2", node="n2", priority=200),
    ]
    group = make_pod_group("g", min_count=2)
    with Play(*nodes, *others, group, *pods, config=dict(config)) as play:
        play.round()
        assert play.nodes_of("v", "x") == left


def test_pods_are_evicted_for_the_whole_group_and_their_nodes_are_kept_for_it() -> None:
    nodes = [make_node("n1", cpu="2"), make_node("n2", cpu="2")]
    pods = [member("p1", cpu="2", priority=100), member("p2", cpu="2", priority=100)]
    others = [make_pod(f"v{i}", cpu="2", node=f"n{i}", priority=10) for i in (1, 2)]
    group = make_pod_group("g", min_count=2)
    with Play(*nodes, *others, group, *pods, config=OWN) as play:
        # The group has no priority of its own: that of its pods counts.
        assert sorted(evicted(play.round())) == ["v1", "v2"]
        assert sorted([play.nominated("p1"), play.nominated("p2")]) == ["n1", "n2"]
        # A weaker pod does not get what was freed.
        play.create(make_pod("late", cpu="2", priority=50))
        for _ in range(2):
            play.round()
        assert play.nodes_of("late") == [""]
        assert sorted(play.nodes_of("p1", "p2")) == ["n1", "n2"]


# --- no busy retry -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "is_retried"),
    [
        pytest.param(UPSTREAM, True, id="upstream"),
        pytest.param(without("waitForEvents"), True, id="option-off"),
        pytest.param(OWN, False, id="own"),
    ],
)
def test_a_group_that_does_not_fit_waits_for_an_event(config: Config, is_retried: bool) -> None:
    pods = [member("p1", cpu="3"), member("p2", cpu="3")]
    group = make_pod_group("g", min_count=2)
    with Play(make_node("n1", cpu="4"), group, *pods, config=dict(config)) as play:
        found = messages(play.round())
        assert UNSCHEDULABLE + TAIL in found.values()
        assert has_work(play) == is_retried
        play.advance(30)
        assert has_work(play) == is_retried
        play.create(make_node("n2", cpu="4"))
        play.round()
        assert sorted(play.nodes_of("p1", "p2")) == ["n1", "n2"]


def test_a_member_that_fits_waits_for_what_lets_it_go_elsewhere() -> None:
    # The small member takes the only large node; a small node more is of use to the group.
    small, large = member("small", cpu="1", priority=9), member("large", cpu="4")
    group = make_pod_group("g", min_count=2)
    with Play(make_node("n1", cpu="4"), group, small, large, config=OWN) as play:
        play.round()
        play.advance(30)
        assert not has_work(play)
        play.create(make_node("n2", cpu="1"))
        # Still greedy: which node the small one gets is the choice of the scores.
        assert play.round()["popped"] == "small"


# --- surplus -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "placed"),
    [
        pytest.param(UPSTREAM, 0, id="upstream"),
        pytest.param(without("ignoreSurplus"), 2, id="only-preemption-for-the-whole"),
        pytest.param(own_mode(evictForWholeGroups=False, ignoreSurplus=False), 0, id="options-off"),
        pytest.param(own_mode(evictForWholeGroups=False), 2, id="only-surplus"),
        pytest.param(OWN, 2, id="own"),
    ],
)
def test_surplus_members_do_not_delay_the_others(config: Config, placed: int) -> None:
    nodes = [make_node(f"n{i}", cpu="2") for i in range(3)]
    victim = make_pod("v", cpu="2", node="n2", priority=10)
    pods = [member(name, cpu="2", priority=100) for name in ("p0", "p1", "p2")]
    group = make_pod_group("g", min_count=2)
    with Play(*nodes, victim, group, *pods, config=dict(config)) as play:
        play.round()
        nodes_of = play.nodes_of("p0", "p1", "p2")
        assert sum(node != "" for node in nodes_of) == placed
        for _ in range(3):
            if has_work(play):
                play.round()
        assert play.nodes_of("v") == ["gone"]
        assert sorted(play.nodes_of("p0", "p1", "p2")) == ["n0", "n1", "n2"]


# --- timeout -------------------------------------------------------------------------------------


def test_a_gang_that_stays_incomplete_is_given_up_as_a_whole() -> None:
    pods = [member(name) for name in ("p1", "p2", "p3")]
    own = own_mode(schedulingTimeout="30s")
    own["plugins"] |= FAIL_RESERVE["plugins"]
    group = make_pod_group("g", min_count=3)
    own_text = (
        "0/1 nodes are available: 1 pod group default/g was given up after waiting 30s "
        "for 1 more members to be placed."
    )
    upstream_text = (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s "
        "at plugin GangScheduling."
    )
    for config, after_s, text in ((FAIL_RESERVE, 300, upstream_text), (own, 30, own_text)):
        with Play(make_node("n1", cpu="4"), group, *pods, config=config) as play:
            play.world.failing_reserves["default/p2"] = 1
            play.round()
            assert play.state["waiting"] == ["default/p1", "default/p3"]
            play.delete("pods", "p2")
            assert messages(play.advance(after_s - 1)) == {}
            happened = play.advance(2)
            assert messages(happened) == {"p1": text, "p3": text}
            assert {event["reason"] for event in happened["events"]} == {"FailedScheduling"}
            assert "waiting" not in play.state
            assert play.state["groups"]["default/g"].get("assumed", 0) == 0


def test_members_are_not_released_by_a_trial() -> None:
    """Spec 11 §7.4: upstream releases them though the last member is turned down again."""
    pods = [member(name) for name in ("p1", "p2", "p3")]
    own = own_mode(waitForEvents=False)
    own["plugins"] |= FAIL_RESERVE["plugins"]
    group = make_pod_group("g", min_count=3)
    for config, bound in ((FAIL_RESERVE, 2), (own, 0)):
        with Play(make_node("n1", cpu="4"), group, *pods, config=config) as play:
            play.world.failing_reserves["default/p2"] = 2
            play.round()
            play.round()
            placed = play.nodes_of("p1", "p2", "p3")
            assert sum(node != "" for node in placed) == bound


# --- pod sets ------------------------------------------------------------------------------------


def ray(cpu: str) -> list[Any]:
    """A head and two workers, as two groups that name each other."""
    sets = {"kubestow.io/pod-sets": "head,workers"}
    return [
        make_pod_group("head", min_count=1, annotations=sets),
        make_pod_group("workers", min_count=2, annotations=sets),
        member("h", group="head"),
        member("w1", cpu=cpu, group="workers"),
        member("w2", cpu=cpu, group="workers"),
    ]


@pytest.mark.parametrize(
    ("config", "head"),
    [
        pytest.param(UPSTREAM, "n1", id="upstream"),
        pytest.param(without("joinPodSets"), "n1", id="option-off"),
        pytest.param(OWN, "", id="own"),
    ],
)
def test_pod_sets_are_placed_together_or_not_at_all(config: Config, head: str) -> None:
    with Play(make_node("n1", cpu="4"), *ray("3"), config=dict(config)) as play:
        play.round()
        if has_work(play):
            play.round()
        assert play.nodes_of("h", "w1", "w2") == [head, "", ""]


def test_pod_sets_that_fit_are_placed_in_one_cycle() -> None:
    with Play(make_node("n1", cpu="4"), *ray("1"), config=OWN) as play:
        assert len(play.round()["pods"]) == 3
        assert play.nodes_of("h", "w1", "w2") == ["n1"] * 3
        scheduled = ("True", "Scheduled", "")
        assert play.condition("head") == play.condition("workers") == scheduled


def test_pod_sets_wait_for_each_other_in_any_order_of_arrival() -> None:
    objects = ray("1")
    for last in range(len(objects)):
        with Play(make_node("n1", cpu="4"), config=OWN) as play:
            play.create(*objects[last + 1 :], *objects[:last])
            assert not has_work(play)
            play.create(objects[last])
            play.round()
            assert play.nodes_of("h", "w1", "w2") == ["n1"] * 3


# --- gangs as victims ----------------------------------------------------------------------------


def gang_running(count: int, priority: int = 10) -> list[Any]:
    return [
        make_pod_group("w", min_count=2),
        *(make_node(f"n{i}", cpu="1") for i in range(count)),
        *(
            make_pod(f"o{i}", cpu="1", node=f"n{i}", group="w", priority=priority)
            for i in range(count)
        ),
    ]


@pytest.mark.parametrize(
    ("config", "count", "gone"),
    [
        pytest.param(UPSTREAM, 2, 1, id="upstream"),
        pytest.param(without("evictWholeGangs"), 2, 1, id="option-off"),
        pytest.param(OWN, 2, 2, id="own"),
        pytest.param(OWN, 3, 1, id="own-surplus"),
    ],
)
def test_a_pod_evicts_a_whole_gang_or_its_surplus(config: Config, count: int, gone: int) -> None:
    strong = make_pod("strong", cpu="1", priority=50)
    with Play(*gang_running(count), strong, config=dict(config)) as play:
        assert len(evicted(play.round())) == gone


def test_a_pod_prefers_not_to_break_a_gang() -> None:
    # By age alone it would evict the member.
    alone = [make_node("m", cpu="1"), make_pod("alone", cpu="1", node="m", priority=10)]
    strong = make_pod("strong", cpu="1", priority=50)
    with Play(*gang_running(2), *alone, strong, config=OWN) as play:
        assert evicted(play.round()) == ["alone"]


def test_a_gang_with_an_important_pod_is_not_broken() -> None:
    important = make_pod("o2", cpu="1", node="n2", group="w", priority=90)
    strong = make_pod("strong", cpu="1", priority=50)
    objects = [*gang_running(2), make_node("n2", cpu="1"), important, strong]
    objects[0] = make_pod_group("w", min_count=3)
    for config, gone in ((UPSTREAM, 1), (OWN, 0)):
        with Play(*objects, config=config) as play:
            assert len(evicted(play.round())) == gone


@pytest.mark.parametrize(
    ("config", "count", "gone"),
    [
        pytest.param(own_mode(evictWholeGangs=False), 2, 1, id="option-off"),
        pytest.param(OWN, 2, 2, id="own"),
        pytest.param(OWN, 3, 1, id="own-surplus"),
        pytest.param(OWN, 4, 2, id="own-two-surplus"),
    ],
)
def test_a_gang_evicts_a_whole_gang_or_its_surplus(config: Config, count: int, gone: int) -> None:
    needed = 2 if count == 4 else 1
    pods = [member(f"p{i}", priority=100) for i in range(needed)]
    group = make_pod_group("g", min_count=needed)
    with Play(*gang_running(count), group, *pods, config=dict(config)) as play:
        assert len(evicted(play.round())) == gone


# --- topology in levels --------------------------------------------------------------------------

LEVELS = ["block", "rack"]
WITH_TAS = (*GANG, TAS)
RACKS = {"a": ("b1", "r1"), "b": ("b1", "r1"), "c": ("b1", "r2"), "d": ("b2", "r1")}


def racks(**cpu: str) -> list[Any]:
    """Nodes a and b in a rack, c in another of the same block, d in a rack of the next block."""
    return [
        make_node(name, cpu=cpu.get(name, "1"), labels={"block": block, "rack": rack})
        for name, (block, rack) in RACKS.items()
    ]


def wide_gang(count: int, **annotations: str) -> list[Any]:
    named = {f"kubestow.io/{key}-topology": value for key, value in annotations.items()}
    return [
        make_pod_group("g", min_count=count, annotations=named),
        *(member(f"p{i}") for i in range(count)),
    ]


@pytest.mark.parametrize(
    ("config", "cpu", "annotations", "nodes"),
    [
        pytest.param(UPSTREAM, {}, {"preferred": "rack"}, "abcd", id="upstream-knows-no-levels"),
        pytest.param(own_mode(topologyLevels=LEVELS), {}, {"preferred": "rack"}, "ab", id="rack"),
        pytest.param(
            own_mode(topologyLevels=LEVELS),
            {"a": "500m", "c": "1"},
            {"preferred": "rack"},
            "bc",
            id="next-wider-level",
        ),
        pytest.param(
            own_mode(topologyLevels=LEVELS),
            {"a": "500m", "c": "500m"},
            {"preferred": "rack"},
            "bd",
            id="anywhere-in-the-end",
        ),
        pytest.param(
            own_mode(topologyLevels=LEVELS),
            {"a": "500m", "c": "500m"},
            {"preferred": "rack", "required": "block"},
            "",
            id="not-beyond-what-is-required",
        ),
        pytest.param(
            own_mode(topologyLevels=LEVELS),
            {"b": "500m", "d": "1"},
            {"required": "rack"},
            "",
            id="racks-of-one-name-in-two-blocks",
        ),
        pytest.param(
            own_mode(topologyLevels=LEVELS), {}, {"required": "rack"}, "ab", id="required-alone"
        ),
    ],
)
def test_topology_in_levels(
    config: Config, cpu: dict[str, str], annotations: dict[str, str], nodes: str
) -> None:
    objects = [*racks(**cpu), *wide_gang(2, **annotations)]
    with Play(*objects, gates=WITH_TAS, config=dict(config)) as play:
        play.round()
        placed = {node for node in play.nodes_of("p0", "p1") if node}
        assert placed <= set(nodes)
        assert len(placed) == (2 if nodes else 0)


def test_a_group_prefers_the_domain_in_which_it_runs() -> None:
    group, *pods = wide_gang(2, preferred="rack")
    running = make_pod("p9", cpu="1", node="d", group="g")
    config = own_mode(topologyLevels=LEVELS)
    with Play(*racks(d="3"), group, running, *pods, gates=WITH_TAS, config=config) as play:
        play.round()
        assert play.nodes_of("p0", "p1") == ["d", "d"]


def test_pods_are_evicted_for_a_group_with_topology_by_choice() -> None:
    group, *pods = wide_gang(2, required="rack")
    pods = [member(f"p{i}", priority=100) for i in range(len(pods))]
    victims = [make_pod(f"v-{name}", cpu="1", node=name, priority=1) for name in RACKS]
    upstream = make_pod_group("g", min_count=2, topology_key="rack")
    own = own_mode(topologyLevels=LEVELS)
    for config, used, gone in (({}, upstream, []), (own, group, ["v-a", "v-b"])):
        gates = (*WITH_TAS, WAP)
        with Play(*racks(), *victims, used, *pods, gates=gates, config=config) as play:
            assert sorted(evicted(play.round())) == gone
