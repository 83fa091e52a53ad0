"""Group cycles on random clusters: undone completely, the same twice, reuse changes nothing."""

from typing import Any

import pytest
from tests.cache.dice import Dice
from tests.cache.test_trial import affinity, contents
from tests.engine.groups.play import GANG, TAS, WAP, Play

from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.engine.decide import Decider
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.testing import make_node, make_pod, make_pod_group
from kubestow.testing.devices import make_claim, make_device_class, make_request, make_slice
from kubestow.testing.storage import make_claim as make_volume_claim
from kubestow.testing.storage import make_storage_class, make_volume


class PlainDecider(Decider):
    """Asks every plugin anew for each pod."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "reuses_answers": False})


def some_objects(rng: Dice) -> list[Any]:
    racks = rng.between(1, 3)
    nodes = [
        make_node(
            f"n{i}", cpu=str(rng.between(1, 4)), memory="8Gi", labels={"rack": f"r{i % racks}"}
        )
        for i in range(rng.between(2, 6))
    ]
    running = [
        make_pod(
            f"old-{i}",
            cpu=f"{rng.between(2, 12) * 100}m",
            node=rng.choice(nodes).metadata.name,
            priority=rng.choice((0, 5, 200)),
            labels={"a": rng.choice("xy")},
            affinity=affinity(rng),
        )
        for i in range(rng.between(0, 8))
    ]
    group = make_pod_group(
        "g",
        min_count=rng.between(1, 4),
        priority=rng.choice((None, 10)),
        topology_key=rng.choice((None, None, "rack")),
    )
    members = [some_member(rng, i) for i in range(rng.between(4, 7))]
    return [*nodes, *running, group, *members]


def some_member(rng: Dice, number: int) -> Pod:
    return make_pod(
        f"p{number}",
        cpu=rng.choice(("200m", "1", "1", "1", "6")),
        priority=rng.choice((10, 10, 10, 50)),
        labels={"a": rng.choice("xy")},
        affinity=affinity(rng) if rng.is_likely(0.4) else None,
        group="g",
    )


def shown(outcome: GroupOutcome) -> Any:
    status = outcome.status
    return (
        None if status is None else (status.code, status.message),
        outcome.is_waiting,
        [
            (
                member.queued_pod.pod_info.name,
                member.node_name,
                None if member.status is None else member.status.message,
                None if member.permit is None else member.permit.message,
            )
            for member in outcome.members
        ],
    )


GATES = [GANG, (*GANG, TAS), (*GANG, TAS, WAP), (*GANG, WAP)]


@pytest.mark.parametrize("seed", range(24))
def test_a_trial_is_undone_and_can_be_repeated(seed: int) -> None:
    rng = Dice(seed)
    with Play(*some_objects(rng), gates=GATES[seed % 4], deletion="terminate") as play:
        scheduler = play.world.scheduler
        groups, decider = scheduler.groups, scheduler.decider
        assert groups is not None
        popped = play.world.queue.pop_nowait()
        assert popped is not None
        attempt = groups.collector.collect(popped)
        assert attempt is not None
        scheduler.snapshot.refresh(scheduler.cache)
        cycle = groups.new_cycle(attempt)
        cycle.runs_post_filter = False  # Evictions are not undone.
        before = contents(scheduler.snapshot)
        members = play.state["groups"]
        start = decider.next_start_index
        first = shown(groups.run_algorithm(attempt, cycle))
        assert contents(scheduler.snapshot) == before
        assert play.state["groups"] == members
        decider.next_start_index = start
        assert shown(groups.run_algorithm(attempt, cycle)) == first
        assert contents(scheduler.snapshot) == before


def some_stateful_objects(rng: Dice) -> list[Any]:
    """Members whose Reserve changes what plugins keep: device claims, shared or not, and volumes
    that are chosen with the node."""
    nodes = [make_node(f"n{i}", cpu="4", memory="8Gi") for i in range(3)]
    devices = [make_device_class("any")]
    devices += [make_slice(f"d{i}", name=f"s{i}", pool=f"p{i}", node=f"n{i}") for i in range(3)]
    names = ["shared", *(f"own-{i}" for i in range(5))]
    claims = [make_claim(name, make_request("r")) for name in names]
    storage = [
        make_storage_class("late"),
        *(make_volume(f"v{i}", class_name="late") for i in range(3)),
        *(make_volume_claim(f"disk-{i}", class_name="late") for i in range(5)),
    ]
    members = [
        make_pod(
            f"p{i}",
            cpu=rng.choice(("1", "2")),
            group="g",
            nominated_node=rng.choice(("", "", "n1")),
            resource_claims=[
                PodResourceClaim(
                    name="device", resource_claim_name=rng.choice(("shared", f"own-{i}"))
                )
            ]
            if rng.is_likely(0.7)
            else (),
            pvcs=[f"disk-{i}"] if rng.is_likely(0.6) else (),
        )
        for i in range(5)
    ]
    group = make_pod_group("g", min_count=rng.between(2, 5))
    return [*nodes, *devices, *claims, *storage, group, *members]


def kept_by_plugins(scheduler: Any) -> Any:
    """What plugins and the nominator remember between attempts."""
    (profile,) = scheduler.profiles.values()
    volumes, devices = profile.plugins["VolumeBinding"], profile.plugins["DynamicResources"]
    claims = devices._claims
    nominator = scheduler.queue.nominator
    return {
        "volumes": volumes.assumed_volumes(),
        "claims of volumes": volumes.assumed_claims(),
        "device claims": {key: id(claim) for key, claim in claims._latest.items()},
        "in flight": {uid: entry.sharers for uid, entry in claims._in_flight.items()},
        "counted": set(claims._counted),
        "allocated": {
            name: dict(getattr(claims.allocated, name))
            for name in ("dedicated", "_shared", "_consumed", "_listing", "_reasons")
        },
        # As upstream, they come back in the order of the undoing.
        "nominated": {
            node: {pod.uid for pod in nominator.nominated_pods_for_node(node)}
            for node in nominator.nominated_nodes()
        },
    }


@pytest.mark.parametrize("seed", range(16))
def test_a_trial_leaves_what_plugins_keep(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with Play(*some_stateful_objects(Dice(seed))) as play:
        scheduler = play.world.scheduler
        groups = scheduler.groups
        assert groups is not None
        popped = play.world.queue.pop_nowait()
        assert popped is not None
        attempt = groups.collector.collect(popped)
        assert attempt is not None
        scheduler.snapshot.refresh(scheduler.cache)
        before = contents(scheduler.snapshot), kept_by_plugins(scheduler)
        seen: list[Any] = []
        try_member = groups.trials.try_member

        def watched(*arguments: Any) -> Any:
            member = try_member(*arguments)
            seen.append(kept_by_plugins(scheduler))
            return member

        monkeypatch.setattr(groups.trials, "try_member", watched)
        groups.decide(attempt)
        assert any(state != before[1] for state in seen), "no member has reserved anything"
        assert (contents(scheduler.snapshot), kept_by_plugins(scheduler)) == before


@pytest.mark.parametrize("seed", range(24))
def test_reuse_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list[Any]:
        rng = Dice(seed)
        objects = some_objects(rng)
        with Play(*objects, gates=GATES[seed % 4]) as play:
            results = [play.round() for _ in range(3) if play.world.queue.statistics().active]
            play.advance(1)
            names = [each.metadata.name for each in objects if isinstance(each, Pod)]
            return [*results, play.nodes_of(*names), play.condition()]

    reused = without_uids(run())
    monkeypatch.setattr("kubestow.engine.deciding.Decider", PlainDecider)
    assert without_uids(run()) == reused


def without_uids(results: list[Any]) -> list[Any]:
    """Events name the UID of the preemptor, which differs between two runs."""
    for result in results:
        if isinstance(result, dict):
            for event in result.get("events", ()):
                if event["reason"] == "Preempted":
                    event["note"] = "Preempted"
    return results
