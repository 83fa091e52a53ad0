"""What a trial leaves behind: nothing, also in plugins that count volumes and devices."""

from typing import Any

import pytest
from tests.cache.dice import Dice
from tests.cache.test_trial import contents
from tests.engine.groups.play import GANG, TAS, WAP, Play, own_mode

from kubestow.api.decode import to_document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import PodResourceClaim
from kubestow.index.devices import KnownDevices
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.testing import make_node, make_pod, make_pod_group

CLASS: JsonObject = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
DEVICE_CLASS: JsonObject = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}


def volume(number: int, node: str) -> JsonObject:
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": [node]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{number}", "uid": f"pv-{number}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Available"},
    }


def volume_claim(number: int) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"pvc-{number}", "namespace": "default", "uid": f"pvc-{number}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def device_claim(number: int) -> JsonObject:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    request = {"name": "r", "exactly": exactly}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{number}", "namespace": "default", "uid": f"claim-{number}"},
        "spec": {"devices": {"requests": [request]}},
    }


def devices(node: str, count: int) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": [{"name": f"gpu-{i}"} for i in range(count)],
        },
    }


def fill(play: Play, rng: Dice) -> None:
    """Nodes with volumes and devices, and a gang of which some members need them."""
    names = [f"n{i}" for i in range(rng.between(2, 4))]
    for index, name in enumerate(names):
        labels = {"host": name, "rack": f"r{index % 2}"}
        play.create(make_node(name, cpu=str(rng.between(1, 3)), labels=labels))
        play.create_document("resourceslices", devices(name, rng.between(0, 2)))
    play.create_document("storageclasses", CLASS)
    play.create_document("deviceclasses", DEVICE_CLASS)
    for number in range(4):
        play.create_document("pvs", volume(number, rng.choice(names)))
        play.create_document("pvcs", volume_claim(number))
        play.create_document("resourceclaims", device_claim(number))
    for number in range(rng.between(0, 3)):
        node, priority = rng.choice(names), rng.choice((0, 200))
        play.create(make_pod(f"old-{number}", cpu="500m", node=node, priority=priority))
    topology = rng.choice((None, "rack"))
    play.create(make_pod_group("g", min_count=rng.between(2, 4), topology_key=topology))
    for number in range(5):
        has_device = rng.is_likely(0.5)
        claims = [PodResourceClaim(name="c", resource_claim_name=f"claim-{number % 4}")]
        play.create(
            make_pod(
                f"p{number}",
                cpu="500m",
                priority=100,
                group="g",
                pvcs=[f"pvc-{number}"] if number < 4 and rng.is_likely(0.5) else (),
                resource_claims=claims if has_device else (),
                nominated_node=rng.choice(names) if rng.is_likely(0.3) else "",
            )
        )


def state(play: Play) -> dict[str, Any]:
    """Everything that a trial touches."""
    scheduler = play.world.scheduler
    (profile,) = scheduler.profiles.values()
    volumes = profile.plugins["VolumeBinding"]
    assert isinstance(volumes, VolumeBinding)
    known = KnownDevices.existing(scheduler.objects)
    assert known is not None
    nominator = play.world.queue.nominator
    groups = scheduler.cache.groups
    assert groups is not None
    return {
        "snapshot": contents(scheduler.snapshot),
        "generations": [info.generation for info in scheduler.snapshot.node_infos],
        "hidden": dict(scheduler.snapshot.hidden_terms),
        "groups": {
            key: (list(each.unscheduled), list(each.assumed), list(each.assigned), each.leaving)
            for key, each in groups.all_members().items()
        },
        "volumes": [to_document(each) for each in volumes._volumes.assumed()],
        "claims": [to_document(each) for each in volumes._claims.assumed()],
        "devices": {uid: entry.sharers for uid, entry in known.claims._in_flight.items()},
        "allocated": dict(known.claims.allocated.dedicated),
        "nominated": {
            # Restored in the order of the trial, as upstream.
            node: sorted(pod.name for pod in nominator.nominated_pods_for_node(node))
            for node in sorted(nominator.nominated_nodes())
        },
        "waiting": len(scheduler.waiting_pods),
    }


GATES = [GANG, (*GANG, TAS), (*GANG, TAS, WAP), (*GANG, WAP)]


@pytest.mark.parametrize("is_own", [False, True], ids=["upstream", "own"])
@pytest.mark.parametrize("seed", range(16))
def test_a_trial_leaves_nothing_behind(seed: int, is_own: bool) -> None:
    config = own_mode() if is_own else {}
    with Play(gates=GATES[seed % 4], config=config, deletion="terminate") as play:
        fill(play, Dice(seed))
        scheduler = play.world.scheduler
        groups = scheduler.groups
        assert groups is not None
        popped = play.world.queue.pop_nowait()
        assert popped is not None
        attempt = groups.collector.collect(popped)
        assert attempt is not None
        scheduler.snapshot.refresh(scheduler.cache)
        cycle = groups.new_cycle(attempt)
        cycle.runs_post_filter = False  # Evictions are not undone.
        before = state(play)
        groups.run_algorithm(attempt, cycle)
        assert state(play) == before


def test_the_state_shows_what_a_trial_does() -> None:
    """The comparison above is not blind: within these trials everything differs at some time."""
    changed: set[str] = set()
    for seed in range(16):
        with Play(gates=GANG) as play:
            fill(play, Dice(seed))
            changed |= changed_parts(play)
    assert {"snapshot", "volumes", "devices", "allocated", "nominated"} <= changed


def changed_parts(play: Play) -> set[str]:
    scheduler = play.world.scheduler
    groups = scheduler.groups
    assert groups is not None
    popped = play.world.queue.pop_nowait()
    assert popped is not None
    attempt = groups.collector.collect(popped)
    assert attempt is not None
    scheduler.snapshot.refresh(scheduler.cache)
    before, changed = state(play), set[str]()
    try_member = groups.trials.try_member

    def note(*args: Any) -> Any:
        changed.update(part for part, value in state(play).items() if value != before[part])
        return try_member(*args)

    groups.trials.try_member = note  # type: ignore[method-assign]
    groups.run_algorithm(attempt, groups.new_cycle(attempt))
    return changed
