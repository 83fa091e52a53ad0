"""The worked examples of spec 11 §4.3 (S) and §15 (E), on a whole scheduler."""

from datetime import UTC, datetime

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
    order,
)

from kubestow.api.group import group_key_of
from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    assign,
)
from kubestow.api.pod_group import PodGroup
from kubestow.api.workload import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ObjectStore
from kubestow.errors import CacheError
from kubestow.testing import make_node, make_pod, make_pod_group
from kubestow.testing.devices import make_claim, make_device_class, make_request, make_slice

PA = "no new claims to deallocate, preemption: "
UNSCHEDULABLE = "pod group is unschedulable"
WAITING = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"
NO_VICTIMS = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
NO_EVICTION = "Preemption is not helpful for scheduling"
SHORT_OF_CPU = "0/1 nodes are available: 1 Insufficient cpu."
WITH_TAS = (*GANG, TAS)
WITH_WAP = (*GANG, WAP)


def member(name: str, cpu: str = "1", group: str = "g", **more: object) -> Pod:
    return make_pod(name, cpu=cpu, group=group, **more)  # type: ignore[arg-type]


def running(
    name: str, node: str, cpu: str, priority: int = 10, start: int = 1, **more: object
) -> Pod:
    started = datetime(2026, 2, 1, second=start, tzinfo=UTC)
    return make_pod(
        name,
        cpu=cpu,
        node=node,
        priority=priority,
        start_time=started,
        **more,  # type: ignore[arg-type]
    )


# --- group state -------------------------------------------------------------------------------


def groups_with(*pods: Pod) -> Groups:
    groups = Groups(ObjectStore[PodGroup]())
    for pod in pods:
        groups.add(pod)
    return groups


def counts(groups: Groups) -> tuple[list[str], list[str], list[str], list[str]]:
    """Names of all members, and of those unscheduled, assumed, assigned."""
    members = groups.find(KEY)
    if members is None:
        return [], [], [], []
    names = {uid: pod.metadata.name for uid, pod in members.pods.items()}
    return (
        list(names.values()),
        [names[uid] for uid in members.unscheduled],
        [names[uid] for uid in members.assumed],
        [names[uid] for uid in members.assigned],
    )


A, B = member("a"), member("b")
KEY = group_key_of(A)


def test_s1_unassigned_members_are_unscheduled() -> None:
    assert counts(groups_with(A, B)) == (["a", "b"], ["a", "b"], [], [])


def test_s2_an_assumed_member_counts_as_scheduled() -> None:
    groups = groups_with(A, B)
    groups.assume(assign(A, "n1"))
    assert counts(groups) == (["a", "b"], ["b"], ["a"], [])
    assert groups.members(KEY).scheduled_count == 1


def test_s3_s4_a_bound_member_is_assigned_and_one_that_ended_is_gone() -> None:
    groups = groups_with(A, B)
    bound = assign(A, "n1")
    groups.assume(bound)
    groups.remove(bound)
    groups.add(bound)
    assert counts(groups) == (["b", "a"], ["b"], [], ["a"])
    groups.remove(bound)
    assert counts(groups) == (["b"], ["b"], [], [])


def test_s5_a_member_deleted_at_permit_leaves_nothing_to_forget() -> None:
    groups = groups_with(A, B)
    assumed = assign(A, "n1")
    groups.assume(assumed)
    groups.remove(A)
    groups.forget(assumed)
    assert counts(groups) == (["b"], ["b"], [], [])


def test_s6_an_unknown_group_takes_the_assumed_copy_as_assigned() -> None:
    groups = groups_with()
    assumed = assign(A, "n1")
    groups.assume(assumed)
    assert counts(groups) == (["a"], [], [], ["a"])
    groups.forget(assumed)
    assert counts(groups) == (["a"], [], [], ["a"])
    groups.remove(assumed)
    with pytest.raises(CacheError, match="pod group state not found for pod group default/g"):
        groups.members(KEY)


def test_s7_members_of_other_schedulers_count_once_they_are_bound() -> None:
    other = member("x", scheduler_name="other")
    with Play(make_node("n1", cpu="4"), other) as play:
        assert "groups" not in play.state
        play.patch("pods", "x", {"spec": {"nodeName": "n1"}})
        assert play.state["groups"]["default/g"]["assigned"] == 1


# --- queue and gating --------------------------------------------------------------------------


def test_e1_e2_e3_a_gang_waits_for_its_object_and_its_members() -> None:
    with Play(make_node("n1", cpu="4"), member("p1")) as play:
        assert play.state["gated"] == {"default/p1": ["GangScheduling"]}
        play.create(make_pod_group("g", min_count=2))
        assert play.state["gated"] == {"default/p1": ["GangScheduling"]}
        play.advance(5)
        play.create(member("p2"))
        assert play.state["active"] == ["default/p1", "default/p2"]
        result = play.round()
        assert result["popped"] == "p1"
        assert order(result) == ["p2", "p1"]
        assert play.nodes_of("p1", "p2") == ["n1", "n1"]


def test_e4_a_gated_member_counts_and_the_others_back_off() -> None:
    pods = [member("p1"), member("p2"), member("p3", gates=["later"])]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=3), *pods) as play:
        result = play.round()
        assert messages(result) == dict.fromkeys(("p1", "p2"), UNSCHEDULABLE + TAIL)
        assert play.state["errorBackoff"] == {"default/p1": 1.0, "default/p2": 1.0}
        play.advance(2)
        play.round()
        assert play.state["errorBackoff"] == {"default/p1": 4.0, "default/p2": 4.0}
        play.patch("pods", "p3", {"spec": {"schedulingGates": None}})
        play.round()
        assert play.nodes_of("p1", "p2", "p3") == ["n1"] * 3


def test_e5_members_are_ordered_by_priority_then_by_first_attempt() -> None:
    pods = [
        member("p1", priority=100),
        member("p2", priority=200),
        member("p4", priority=150),
        member("p3", priority=150),
    ]
    with Play(make_node("n1", cpu="4"), *pods, make_pod_group("g", min_count=4)) as play:
        assert order(play.round()) == ["p2", "p4", "p3", "p1"]


def test_e6_a_sibling_in_flight_is_left_out() -> None:
    pods = [member("p1"), member("p2")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods) as play:
        in_flight = play.world.queue.pop_nowait()
        assert in_flight is not None
        left = {"p1", "p2"} - {in_flight.pod_info.name}
        assert set(order(play.round())) == left


def test_e7_a_sibling_comes_along_before_its_backoff_is_over() -> None:
    pods = [member("p1", cpu="3"), member("p2", cpu="3")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods) as play:
        play.round()
        # The one that fitted waits for the end of its error backoff, the other can be popped.
        assert set(play.state["errorBackoff"]) == {"default/p2"}
        result = play.round()
        assert result["popped"] == "p1"
        assert order(result) == ["p2", "p1"]


def test_e8_members_of_two_profiles_fail_together() -> None:
    pods = [member("p1"), member("p2", scheduler_name="second")]
    profiles = [{"schedulerName": "second"}]
    with Play(
        make_node("n1", cpu="4"), *pods, make_pod_group("g", min_count=2), profiles=profiles
    ) as play:
        result = play.round()
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            'got: "second" and "default-scheduler"'
        )
        assert messages(result) == {"p1": text, "p2": text}
        assert play.condition() is None


def test_e9_a_member_whose_group_is_gone_is_dropped() -> None:
    with Play(make_node("n1", cpu="4"), member("p1"), make_pod_group("g", min_count=1)) as play:
        queued_pod = play.world.queue.pop_nowait()
        assert queued_pod is not None
        play.delete("pods", "p1")
        play.world.take()
        with play.world.cycle():
            play.world.scheduler.schedule_one(queued_pod)
        assert "events" not in play.world.take()
        assert "inFlight" not in play.state


def test_e9a_a_gang_without_room_is_retried_without_a_pause() -> None:
    pods = [member("p1", cpu="5"), member("p2", cpu="5")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods) as play:
        first = play.round()
        text = f"{SHORT_OF_CPU} {PA}0/1 nodes are available: 1 {NO_EVICTION}."
        assert messages(first) == {"p1": text, "p2": text}
        assert len(first["writes"]) == 3
        second = play.round()
        assert "writes" not in second
        assert len(second["events"]) == 2


def test_e10_members_that_ended_shrink_the_gang() -> None:
    pods = [running(name, "n1", "1", group="g") for name in ("p1", "p2", "p3")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=3), *pods) as play:
        play.delete("pods", "p1")
        play.delete("pods", "p2")
        play.create(member("p2b"))
        assert play.state["gated"] == {"default/p2b": ["GangScheduling"]}


# --- cycle and submission ----------------------------------------------------------------------


def test_e11_two_gangs_do_not_block_each_other() -> None:
    pods = [member(f"{group}{i}", group=group) for group in "gh" for i in range(3)]
    groups = [make_pod_group(name, min_count=3) for name in "gh"]
    with Play(make_node("n1", cpu="4"), *groups, *pods) as play:
        play.round()
        assert play.nodes_of("g0", "g1", "g2") == ["n1"] * 3
        result = play.round()
        misfit = f"{SHORT_OF_CPU} {PA}{NO_VICTIMS}"
        found = messages(result)
        assert sorted(found.values()) == sorted([misfit, misfit, UNSCHEDULABLE + TAIL])
        assert play.condition("h") == ("False", "Unschedulable", UNSCHEDULABLE)
        assert "assumed" not in play.state


def test_e12_members_preempt_one_by_one_and_the_group_waits() -> None:
    pods = [member("p1", cpu="2", priority=100), member("p2", cpu="2", priority=100)]
    victim = running("v", "n1", "4")
    with Play(make_node("n1", cpu="4"), victim, make_pod_group("g", min_count=2), *pods) as play:
        result = play.round()
        assert messages(result) == dict.fromkeys(("p1", "p2"), SHORT_OF_CPU)
        assert [failure["nominatedNode"] for failure in result["failures"]] == ["n1", "n1"]
        assert play.condition() == ("False", "Unschedulable", WAITING)
        assert play.nodes_of("v") == ["gone"]


def test_e13_an_eviction_is_not_taken_back() -> None:
    pods = [member("p1", cpu="2", priority=100), member("p2", cpu="2", priority=100)]
    others = [running("v", "n1", "2"), running("x", "n2", "2", priority=200)]
    nodes = [make_node("n1", cpu="2"), make_node("n2", cpu="2")]
    with Play(*nodes, *others, make_pod_group("g", min_count=2), *pods) as play:
        found = messages(play.round())
        assert UNSCHEDULABLE + TAIL in found.values()
        assert play.nodes_of("v", "x") == ["gone", "n2"]
        assert play.nominated("p1") == play.nominated("p2") == ""


@pytest.mark.parametrize(
    ("group", "names"),
    [
        pytest.param(make_pod_group("g"), ["p1", "p2"], id="E14-basic"),
        pytest.param(make_pod_group("g", min_count=2), ["p0", "p1", "p2"], id="E15-surplus"),
    ],
)
def test_a_later_member_that_preempts_makes_a_possible_group_wait(
    group: PodGroup, names: list[str]
) -> None:
    nodes = [make_node("n0", cpu="2"), make_node("n1", cpu="2"), make_node("n2", cpu="2")]
    busy = [running("v", "n2", "2")]
    if len(names) == 2:
        busy.append(running("z", "n0", "2", priority=200))
    pods = [member(name, cpu="2", priority=100) for name in names]
    with Play(*nodes, *busy, group, *pods) as play:
        result = play.round()
        found = messages(result)
        assert sorted(found.values())[-1] == WAITING
        assert play.condition() == ("False", "Unschedulable", WAITING)
        assert [play.nominated(name) for name in names].count("") == 0
        play.round()
        assert "" not in play.nodes_of(*names)


def test_e16_e17_e18_a_surplus_member_that_does_not_fit_stays_behind() -> None:
    pods = [member(name, cpu="2") for name in ("p1", "p2", "p3")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods) as play:
        result = play.round()
        assert list(messages(result)) == ["p3"]
        assert play.nodes_of("p1", "p2", "p3") == ["n1", "n1", ""]
        assert play.condition() == ("True", "Scheduled", "")
        failed_again = play.round()
        assert play.condition() == ("True", "Scheduled", "")
        assert "writes" not in failed_again
        play.create(make_node("n2", cpu="2"))
        play.round()
        assert play.nodes_of("p3") == ["n2"]


def test_e20_e21_a_member_turned_down_at_the_end_lets_the_others_wait() -> None:
    pods = [member(name) for name in ("p1", "p2", "p3")]
    with Play(
        make_node("n1", cpu="4"), make_pod_group("g", min_count=3), *pods, config=FAIL_RESERVE
    ) as play:
        play.world.failing_reserves["default/p2"] = 1
        result = play.round()
        assert list(messages(result).values()) == [
            "0/1 nodes are available: 1 held back by the scenario."
        ]
        assert play.state["waiting"] == ["default/p1", "default/p3"]
        assert play.condition() == ("True", "Scheduled", "")
        play.round()
        assert play.nodes_of("p1", "p2", "p3") == ["n1"] * 3


def test_e22_members_at_permit_time_out() -> None:
    pods = [member(name) for name in ("p1", "p2", "p3")]
    with Play(
        make_node("n1", cpu="4"), make_pod_group("g", min_count=3), *pods, config=FAIL_RESERVE
    ) as play:
        play.world.failing_reserves["default/p2"] = 1
        play.round()
        play.delete("pods", "p2")
        happened = play.advance(301)
        text = (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s "
            "at plugin GangScheduling."
        )
        assert messages(happened) == {"p1": text, "p3": text}


def test_e23_a_group_that_vanished_fails_its_members() -> None:
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), member("p1")) as play:
        play.create(member("p2"))
        play.delete("podgroups", "g")
        found = messages(play.round())
        own = (
            'running Permit plugin "GangScheduling": failed to get podGroup default/g: '
            'podgroup.scheduling.k8s.io "g" not found'
        )
        assert sorted(found.values()) == [
            f"failed to schedule other pod from a pod group: {own}",
            own,
        ]
        assert set(play.state["gated"]) == {"default/p1", "default/p2"}


def test_e24_without_the_gang_gate_any_member_is_enough() -> None:
    with Play(
        make_node("n1", cpu="1"), member("p1"), member("p2"), gates=["GenericWorkload"]
    ) as play:
        result = play.round()
        assert play.nodes_of("p1", "p2") == ["n1", ""]
        assert list(messages(result)) == ["p2"]


def test_e25_a_terminating_member_is_left_out() -> None:
    deleted = datetime(2026, 2, 1, tzinfo=UTC)
    pods = [member("p1"), member("p2", deleted=deleted), member("p3")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods) as play:
        result = play.round()
        notes = [event["note"] for event in result["events"]]
        assert "skip schedule deleting pod: default/p2" in notes
        assert play.nodes_of("p1", "p2", "p3") == ["n1", "", "n1"]


def test_e26_a_nomination_is_restored_and_then_cleared() -> None:
    pods = [member("p1", nominated_node="n1"), member("p2", cpu="5")]
    with Play(make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods) as play:
        result = play.round()
        assert messages(result)["p1"] == UNSCHEDULABLE + TAIL
        assert play.nominated("p1") == ""
        assert "nominated" not in play.state


def apart() -> Affinity:
    selector = LabelSelector(match_labels={"a": "b"})
    term = PodAffinityTerm(label_selector=selector, topology_key="kubernetes.io/hostname")
    return Affinity(pod_anti_affinity=PodAffinity(required=(term,)))


@pytest.mark.parametrize(
    ("second_has_it", "node_count"),
    [pytest.param(True, 2, id="both"), pytest.param(False, 1, id="only-the-first")],
)
def test_e27_terms_of_members_in_the_same_cycle_are_not_listed(
    second_has_it: bool, node_count: int
) -> None:
    pods = [
        member("p1", labels={"a": "b"}, affinity=apart()),
        member("p2", labels={"a": "b"}, affinity=apart() if second_has_it else None),
    ]
    # The second node is full for a pod without terms, so that it would have to share.
    nodes = [make_node("n1", cpu="4"), make_node("n2", cpu="4" if second_has_it else "500m")]
    with Play(*nodes, make_pod_group("g", min_count=2), *pods) as play:
        play.round()
        assert len(set(play.nodes_of("p1", "p2"))) == node_count


# --- placements --------------------------------------------------------------------------------


def racks(**racks: str) -> list[object]:
    return [
        make_node(name, cpu="8", memory="16Gi", labels={"rack": rack} if rack else {})
        for name, rack in racks.items()
    ]


def placements(result: dict[str, object]) -> dict[str, list[str]]:
    return {each["name"]: each["nodes"] for each in result["placements"]}  # type: ignore[attr-defined,index]


def test_e28_e29_one_placement_per_label_value() -> None:
    nodes = racks(a="r1", b="r1", c="r2", d="")
    group = make_pod_group("g", min_count=1, topology_key="rack")
    with Play(*nodes, group, member("p1"), gates=WITH_TAS) as play:
        assert placements(play.round()) == {"r1": ["a", "b"], "r2": ["c"]}
    bound = running("old", "c", "1", group="g")
    with Play(*nodes, group, bound, member("p1"), gates=WITH_TAS) as play:
        assert placements(play.round()) == {"r2": ["c"]}
    bound = running("old", "d", "1", group="g")
    with Play(*nodes, group, bound, member("p1"), gates=WITH_TAS) as play:
        text = (
            "cannot determine domain for already scheduled pods: "
            "no topology domain found for pod default/old"
        )
        assert messages(play.round()) == {"p1": text}


def test_e30_no_node_has_the_label() -> None:
    group = make_pod_group("g", min_count=1, topology_key="rack")
    with Play(*racks(a="", b=""), group, member("p1"), gates=WITH_TAS) as play:
        result = play.round()
        assert messages(result) == {"p1": "no feasible placements found"}
        assert play.condition() == ("False", "Unschedulable", "no feasible placements found")
        assert set(play.state["errorBackoff"]) == {"default/p1"}


def test_e31_the_fuller_placement_wins() -> None:
    group = make_pod_group("g", min_count=4, topology_key="rack")
    used = running("u1", "c", "4", memory="8Gi")
    pods = [member(f"p{i}", cpu="2", memory="4Gi") for i in range(4)]
    nodes = racks(a="r1", b="r1", c="r2", d="r2")
    with Play(*nodes, used, group, *pods, gates=WITH_TAS) as play:
        result = play.round()
        scores = {each["name"]: each["scores"] for each in result["placements"]}
        assert scores == {
            "r1": {"NodeResourcesFit": 50, "PodGroupPodsCount": 100},
            "r2": {"NodeResourcesFit": 75, "PodGroupPodsCount": 100},
        }
        assert set(play.nodes_of("p0", "p1", "p2", "p3")) <= {"c", "d"}


def test_e32_a_tie_goes_to_the_first_placement() -> None:
    group = make_pod_group("g", min_count=2, topology_key="rack")
    used = [running("u1", "c", "8", memory="16Gi"), running("u2", "d", "4", memory="8Gi")]
    pods = [member(f"p{i}", cpu="2", memory="4Gi") for i in range(4)]
    nodes = racks(a="r1", b="r1", c="r2", d="r2")
    with Play(*nodes, *used, group, *pods, gates=WITH_TAS) as play:
        result = play.round()
        totals = {each["name"]: each["total"] for each in result["placements"]}
        assert totals == {"r1": 150, "r2": 150}
        assert set(play.nodes_of("p0", "p1", "p2", "p3")) == {"a", "b"}


def test_e33_no_placement_is_large_enough() -> None:
    group = make_pod_group("g", min_count=3, topology_key="rack")
    pods = [member(f"p{i}", cpu="8") for i in range(3)]
    nodes = racks(a="r1", b="r1", c="r2", d="r2")
    with Play(*nodes, group, *pods, gates=WITH_TAS) as play:
        found = messages(play.round())
        misfit = (
            f"0/2 nodes are available: 2 Insufficient cpu. {PA}"
            "not eligible due to placement-based pod group scheduling limitation"
        )
        assert sorted(found.values()) == [misfit, UNSCHEDULABLE + TAIL, UNSCHEDULABLE + TAIL]
        text = f"0/2 placements are available, first placement status: {UNSCHEDULABLE}"
        assert play.condition() == ("False", "Unschedulable", text)


def test_e35_every_group_is_tried_by_placements() -> None:
    pods = [member("p1", cpu="5"), member("p2", cpu="5")]
    with Play(
        make_node("n1", cpu="4"), make_pod_group("g", min_count=2), *pods, gates=WITH_TAS
    ) as play:
        play.round()
        text = f"0/1 placements are available, first placement status: {UNSCHEDULABLE}"
        assert play.condition() == ("False", "Unschedulable", text)
    pods = [member("p1", cpu="2", priority=100), member("p2", cpu="2", priority=100)]
    with Play(
        make_node("n1", cpu="4"),
        running("v", "n1", "4"),
        make_pod_group("g", min_count=2),
        *pods,
        gates=WITH_TAS,
    ) as play:
        play.round()
        assert play.condition() == ("False", "Unschedulable", WAITING)


# --- preemption for whole groups ---------------------------------------------------------------


def test_e37_the_most_important_pods_stay() -> None:
    low = [running(f"l{i}", "n1", "1", start=i) for i in range(1, 5)]
    group = make_pod_group("g", min_count=3, priority=100)
    pods = [member(f"p{i}", priority=100) for i in range(3)]
    with Play(
        make_node("n1", cpu="4"), *low, group, *pods, gates=WITH_WAP, deletion="terminate"
    ) as play:
        result = play.round()
        misfit = f"{SHORT_OF_CPU} {PA}not eligible due to workload aware preemption enabled"
        assert set(messages(result).values()) == {misfit}
        assert evicted(result) == ["l2", "l3", "l4"]
        assert play.condition() == ("False", "Unschedulable", UNSCHEDULABLE)
        assert [play.nominated(f"p{i}") for i in range(3)] == ["", "", ""]


@pytest.mark.parametrize(
    ("priority", "victims"),
    [pytest.param(5, ["g1", "g2"], id="E38"), pytest.param(10, ["a", "b"], id="E39")],
)
def test_a_group_that_is_evicted_whole_is_one_unit(priority: int, victims: list[str]) -> None:
    nodes = [make_node("n1", cpu="4"), make_node("n2", cpu="4")]
    whole = make_pod_group("w", min_count=2, priority=priority, disruption_mode="PodGroup")
    old = [
        running("a", "n1", "2"),
        running("g1", "n1", "2", priority=100, group="w"),
        running("g2", "n2", "2", priority=100, group="w"),
        running("b", "n2", "2"),
    ]
    group = make_pod_group("g", min_count=2, priority=50)
    pods = [member("p1", cpu="2"), member("p2", cpu="2")]
    with Play(*nodes, whole, *old, group, *pods, gates=WITH_WAP) as play:
        assert sorted(evicted(play.round())) == victims


def test_e40_one_member_of_a_basic_group_is_enough() -> None:
    low = [running(f"l{i}", "n1", "1", start=i) for i in range(1, 4)]
    group = make_pod_group("g", priority=100)
    pods = [member(f"p{i}") for i in range(3)]
    with Play(make_node("n1", cpu="3"), *low, group, *pods, gates=WITH_WAP) as play:
        assert evicted(play.round()) == ["l3"]


def test_e41_budgets_protect_units() -> None:
    labels = {"app": "x"}
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default", uid="b"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=1),
    )
    nodes = [make_node(f"n{i}", cpu="1") for i in range(4)]
    whole = make_pod_group("w", min_count=2, priority=10, disruption_mode="PodGroup")
    old = [
        running("g1", "n0", "1", group="w", labels=labels),
        running("g2", "n1", "1", group="w", labels=labels),
        running("z", "n2", "1", labels=labels),
        running("free", "n3", "1", start=9),
    ]
    group = make_pod_group("g", min_count=1, priority=50)
    with Play(budget, *nodes, whole, *old, group, member("p1"), gates=WITH_WAP) as play:
        # All but the last violate the budget and are put back first.
        assert evicted(play.round()) == ["free"]


@pytest.mark.parametrize(
    ("group", "pod", "reason"),
    [
        pytest.param(
            make_pod_group("g", min_count=1, priority=100),
            member("p1", preemption_policy="Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="E42",
        ),
        pytest.param(
            make_pod_group("g", min_count=1),
            member("p1", priority=1000),
            "No preemption victims found for incoming preemptor",
            id="E43",
        ),
        pytest.param(
            make_pod_group("g", min_count=1, priority=100),
            member("p1", cpu="9"),
            UNSCHEDULABLE,
            id="not-even-without-victims",
        ),
    ],
)
def test_why_a_group_does_not_preempt(group: PodGroup, pod: Pod, reason: str) -> None:
    with Play(
        make_node("n1", cpu="1"), running("l", "n1", "1"), group, pod, gates=WITH_WAP
    ) as play:
        assert evicted(play.round()) == []
        assert play.condition() == ("False", "Unschedulable", f"{UNSCHEDULABLE}, {reason}")


def test_e44_victims_that_are_leaving_are_chosen_again() -> None:
    group = make_pod_group("g", min_count=1, priority=100)
    with Play(
        make_node("n1", cpu="1"),
        running("l", "n1", "1"),
        group,
        member("p1"),
        gates=WITH_WAP,
        deletion="terminate",
    ) as play:
        assert evicted(play.round()) == ["l"]
        play.advance(330)  # Only the flush of pods parked for long asks the gate again.
        assert evicted(play.round()) == []
        assert play.condition() == ("False", "Unschedulable", UNSCHEDULABLE)


def test_e45_an_ordinary_preemptor_takes_single_members() -> None:
    whole = make_pod_group("w", min_count=2, priority=1000, disruption_mode="PodGroup")
    old = [running(f"o{i}", f"n{i}", "1", group="w") for i in range(2)]
    nodes = [make_node(f"n{i}", cpu="1") for i in range(2)]
    with Play(
        *nodes, whole, *old, make_pod("strong", cpu="1", priority=50), gates=WITH_WAP
    ) as play:
        assert len(evicted(play.round())) == 1


@pytest.mark.parametrize("policies", [("Never", None), (None, "Never")])
def test_members_that_may_not_preempt_are_not_equal_to_others(
    policies: tuple[str | None, str | None],
) -> None:
    """Rules about one node treat both alike; PostFilter does not."""
    pods = [
        member(f"p{i}", cpu="4", priority=100, preemption_policy=policies[i >= 4]) for i in range(8)
    ]
    victim = running("v", "n1", "3")
    nodes = [make_node("n1", cpu="4"), make_node("n2", cpu="2")]
    with Play(*nodes, victim, make_pod_group("g", min_count=8), *pods) as play:
        found = messages(play.round())
        for pod in pods:
            is_never = pod.spec.preemption_policy == "Never"
            text = "not eligible due to preemptionPolicy=Never."
            assert (text in found[pod.metadata.name]) is is_never
        assert play.nodes_of("v") == ["gone"]


def test_e48_members_that_share_a_claim_race_at_binding() -> None:
    """Where the device is, is not checked for a reused allocation: any node will do (§10)."""
    claim = make_claim("c", make_request("r"))
    entry = PodResourceClaim(name="shared", resource_claim_name="c")
    pods = [member(f"p{i}", cpu="3", resource_claims=[entry]) for i in (1, 2)]
    nodes = [make_node("n1", cpu="4"), make_node("n2", cpu="4")]
    devices = [make_device_class("any"), make_slice("d1", node="n1")]
    group = make_pod_group("g", min_count=2)
    with Play(*nodes, *devices, claim, group, *pods) as play:
        result = play.round()
        chosen = {attempt["pod"]: attempt["node"] for attempt in result["attempts"]}
        assert list(chosen.values()) == ["n1", "n2"], "the second reuses what the first reserved"
        later = play.advance(1)
        (loser,) = messages(result) | messages(later)
        (winner,) = {"p1", "p2"} - {loser}
        assert play.nodes_of(winner, loser) == [chosen[f"default/{winner}"], ""]
        assert (messages(result) | messages(later))[loser] == (
            'running PreBind plugin "DynamicResources": '
            "claim default/c got allocated elsewhere in the meantime"
        )
        assert play.condition() == ("True", "Scheduled", "")
