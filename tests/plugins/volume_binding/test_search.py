"""Masks, groups and kept answers against a reading of spec 07 §2.4 to §2.6 node by node."""

from typing import NamedTuple
from unittest import mock

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import Selector, parse_label_selector
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Status
from kubestow.index.selector_patterns import UNUSED_SELECTORS_MAX
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.plugins.volume_binding.capacity import StorageCapacities
from kubestow.plugins.volume_binding.demand import ClaimDemand
from kubestow.plugins.volume_binding.free_matching import FreeMatcher
from kubestow.plugins.volume_binding.free_volumes import ClassVolumes, VolumesByClass
from kubestow.plugins.volume_binding.search import REASONS, Failure
from kubestow.testing import (
    make_cache,
    make_handle,
    make_node,
    make_pod,
    make_term,
    run_filter,
)
from kubestow.testing.storage import (
    make_capacity,
    make_claim,
    make_csi_driver,
    make_storage_class,
    make_volume,
)
from kubestow.testing.topology import make_selector

SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLASSES = ("static", "fast", "zoned")
SIZES = ("1Gi", "2Gi", "3Gi")


class Outcome(NamedTuple):
    failures: Failure
    bindings: list[tuple[str, str]]
    provisions: list[str]


# --- The slow reading -------------------------------------------------------------------------


def size_of(claim: PersistentVolumeClaim) -> int:
    requests = claim.spec.resources.requests
    return requests["storage"].value() if requests else 0


def reaches(node: Node, volume: PersistentVolume) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(
        all(
            node.metadata.labels.get(requirement.key) in (requirement.values or ())
            for requirement in term.match_expressions
        )
        for term in affinity.required.node_selector_terms
    )


def find(
    claim: PersistentVolumeClaim, volumes: list[PersistentVolume], node: Node, chosen: set[str]
) -> PersistentVolume | None:
    best: PersistentVolume | None = None
    for volume in sorted(volumes, key=lambda each: each.metadata.name):
        size = volume.spec.capacity["storage"].value()
        ref = volume.spec.claim_ref
        if volume.spec.storage_class_name != claim.spec.storage_class_name:
            continue
        if volume.metadata.name in chosen or size < size_of(claim):
            continue
        if ref is not None:
            if ref.name != claim.metadata.name or ref.uid not in ("", claim.metadata.uid):
                continue
            return volume if reaches(node, volume) else None
        if volume.status.phase != "Available" or not reaches(node, volume):
            continue
        selector = claim.spec.selector
        if selector and not parse_label_selector(selector).matches(volume.metadata.labels):
            continue
        if best is None or size < best.spec.capacity["storage"].value():
            best = volume
    return best


def provision_failure(
    claims: list[PersistentVolumeClaim], node: Node, stores: ClusterObjects
) -> Failure:
    for claim in claims:
        storage_class = stores.storage_classes.get(claim.spec.storage_class_name or "")
        assert isinstance(storage_class, StorageClass)
        if storage_class.provisioner == "kubernetes.io/no-provisioner":
            return Failure.NOTHING_TO_BIND
        topologies = storage_class.allowed_topologies
        if topologies and not any(
            all(
                node.metadata.labels.get(expression.key) in expression.values
                for expression in term.match_label_expressions
            )
            for term in topologies
        ):
            return Failure.NOTHING_TO_BIND
        if storage_class.provisioner == "limited.csi" and not any(
            has_room(capacity, claim, node) for capacity in stores.csi_storage_capacities.list()
        ):
            return Failure.NO_SPACE
    return Failure.NONE


def has_room(capacity: CSIStorageCapacity, claim: PersistentVolumeClaim, node: Node) -> bool:
    assert capacity.capacity is not None
    return (
        capacity.storage_class_name == claim.spec.storage_class_name
        and capacity.capacity.value() >= size_of(claim)
        and parse_label_selector(capacity.node_topology).matches(node.metadata.labels)
    )


def outcome(
    claims: list[PersistentVolumeClaim],
    volumes: list[PersistentVolume],
    node: Node,
    stores: ClusterObjects,
) -> Outcome:
    failures = Failure.NONE
    by_name = {volume.metadata.name: volume for volume in volumes}
    for claim in claims:
        if claim.spec.volume_name:
            volume = by_name.get(claim.spec.volume_name)
            if volume is None:
                failures |= Failure.VOLUME_MISSING
                break
            if not reaches(node, volume):
                failures |= Failure.AFFINITY
                break
    unbound = [claim for claim in claims if not claim.spec.volume_name]
    selected = [claim for claim in unbound if SELECTED_NODE in claim.metadata.annotations]
    if any(claim.metadata.annotations[SELECTED_NODE] != node.metadata.name for claim in selected):
        return Outcome(failures | Failure.NOTHING_TO_BIND, [], [])
    bindings: list[tuple[str, str]] = []
    chosen = set[str]()
    missing = list(selected)
    for claim in sorted((each for each in unbound if each not in selected), key=size_of):
        volume = find(claim, volumes, node, chosen)
        if volume is None:
            missing.append(claim)
        else:
            chosen.add(volume.metadata.name)
            bindings.append((claim.metadata.name, volume.metadata.name))
    failures |= provision_failure(missing, node, stores)
    return Outcome(failures, bindings, [claim.metadata.name for claim in missing])


# --- The world --------------------------------------------------------------------------------

zones = st.sampled_from("ab")
terms = st.one_of(
    st.none(),
    st.builds(lambda zone: [make_term(f"zone In {zone}")], zones),
    st.builds(lambda number: [make_term(f"host In n{number}")], st.integers(0, 3)),
    st.just([make_term("zone In a", "disk In ssd"), make_term("host In n0,n1")]),
)
volumes = st.builds(
    lambda number, size, class_name, where, claim, is_free, kind: make_volume(
        f"pv{number}",
        size=size,
        class_name=class_name,
        terms=where,
        claim=claim,
        phase="Available" if is_free else "Released",
        labels={"kind": kind},
    ),
    st.integers(0, 7),
    st.sampled_from(SIZES),
    st.sampled_from(CLASSES),
    terms,
    st.sampled_from([None, None, None, "default/c0", "default/c1"]),
    st.sampled_from([True, True, True, False]),
    st.sampled_from("xy"),
)
claims = st.builds(
    lambda number, size, class_name, volume, selected, selector: make_claim(
        f"c{number}",
        size=size,
        class_name=class_name,
        volume=volume,
        selected_node=None if volume else selected,
        selector=selector,
    ),
    st.integers(0, 3),
    st.sampled_from(SIZES),
    st.sampled_from(CLASSES),
    st.sampled_from(["", "", "", "pv0", "pv9"]),
    st.sampled_from([None, None, None, "n0"]),
    st.sampled_from([None, None, make_selector("kind=x")]),
)
capacities = st.builds(
    lambda number, size, where: make_capacity(
        f"cap{number}", class_name="zoned", size=size, topology=make_selector(*where)
    ),
    st.integers(0, 2),
    st.sampled_from(SIZES),
    st.sampled_from([(), ("zone=a",), ("host=n1",), ("zone=b", "disk=ssd")]),
)
nodes = st.builds(
    lambda number, zone, disk: make_node(
        f"n{number}", labels={"host": f"n{number}", "zone": zone, "disk": disk}
    ),
    st.integers(0, 3),
    zones,
    st.sampled_from(["ssd", "hdd"]),
)
steps = st.one_of(
    volumes,
    claims,
    capacities,
    nodes,
    st.sampled_from([f"pv{number}" for number in range(8)]),
    st.sampled_from(["c0", "c1", "c2", "c3"]),
    # A pod may use a claim more than once.
    st.lists(st.sampled_from(["c0", "c1", "c2", "c3"]), min_size=1, max_size=4),
)
FIXED: tuple[ApiObject, ...] = (
    make_storage_class("static", provisioner="kubernetes.io/no-provisioner"),
    make_storage_class("fast", topologies=[{"zone": ["a"]}]),
    make_storage_class("zoned", provisioner="limited.csi"),
    make_csi_driver("limited.csi", capacity=True),
    *(make_claim(f"c{number}", class_name="static") for number in range(4)),
    *(make_volume(f"pv{number}", class_name="static") for number in range(3)),
)


class World:
    def __init__(self) -> None:
        self.stores = ClusterObjects()
        self.stores.put(*FIXED)
        self.cache = make_cache(
            make_node(f"n{number}", labels={"host": f"n{number}", "zone": "a"})
            for number in range(3)
        )
        self.snapshot = Snapshot()
        self.plugin = VolumeBinding(None, make_handle(self.snapshot, objects=self.stores))
        self.kept: list[tuple[CycleState, Pod, str]] = []

    def apply(self, step: object) -> None:
        match step:
            case Node():
                self.cache.update_node(None, step)
            case ApiObject():
                self.stores.put(step)
            case str() if step.startswith("pv"):
                self.stores.persistent_volumes.remove(step)
            case str():
                # The pod that reserved last gives up.
                if self.kept:
                    state, pod, node = self.kept.pop()
                    self.plugin.unreserve(state, PodInfo(pod), node)
            case list():
                self.schedule(make_pod(pvcs=step))
            case _:
                raise AssertionError(step)

    def schedule(self, pod: Pod) -> None:
        self.snapshot.refresh(self.cache)
        state = CycleState()
        answers = run_filter(self.plugin, pod, self.snapshot, state=state)
        shown = self.shown_claims(pod)
        volumes = self.shown_volumes()
        outcomes = {
            node.metadata.name: outcome(shown, volumes, node, self.stores)
            for node in self.snapshot.nodes
        }
        assert answers == {
            name: Status.unresolvable(*(text for bit, text in REASONS.items() if bit & failures))
            for name, (failures, _, _) in outcomes.items()
            if failures
        }
        fitting = [name for name, each in outcomes.items() if not each.failures]
        if fitting:
            self.reserve(state, pod, fitting[-1], outcomes[fitting[-1]])

    def reserve(self, state: CycleState, pod: Pod, node: str, expected: Outcome) -> None:
        assert self.plugin.reserve(state, PodInfo(pod), node) is None
        self.kept.append((state, pod, node))
        taken = {
            volume.metadata.name: volume.spec.claim_ref.name
            for volume in self.plugin.assumed_volumes()
            if volume.spec.claim_ref is not None
        }
        selected = {
            claim.metadata.name: claim.metadata.annotations[SELECTED_NODE]
            for claim in self.plugin.assumed_claims()
        }
        assert taken.items() >= {(volume, claim) for claim, volume in expected.bindings}
        assert selected.items() >= {(claim, node) for claim in expected.provisions}

    def shown_claims(self, pod: Pod) -> list[PersistentVolumeClaim]:
        assumed = {claim.metadata.name: claim for claim in self.plugin.assumed_claims()}
        found: list[PersistentVolumeClaim] = []
        for volume in pod.spec.volumes:
            assert volume.persistent_volume_claim is not None
            name = volume.persistent_volume_claim.claim_name
            claim = assumed.get(name) or self.stores.persistent_volume_claims.get("default", name)
            assert claim is not None
            found.append(claim)
        return found

    def shown_volumes(self) -> list[PersistentVolume]:
        assumed = {volume.metadata.name: volume for volume in self.plugin.assumed_volumes()}
        return [
            assumed.get(volume.metadata.name, volume)
            for volume in self.stores.persistent_volumes.list()
        ]


@given(st.lists(steps, max_size=30), st.sampled_from([0, 1024]), st.sampled_from([0, 8]))
def test_answers_equal_a_reading_node_by_node(
    script: list[object], unused_max: int, few: int
) -> None:
    """Also where selectors are renumbered as soon as one is unused, and where two claims or
    selectors are treated as very many."""
    with (
        mock.patch("kubestow.index.selector_patterns.UNUSED_SELECTORS_MAX", unused_max),
        mock.patch("kubestow.index.selector_patterns._CANDIDATES_FEW", few),
        mock.patch("kubestow.plugins.volume_binding.free_matching.CLAIMS_FEW", few),
    ):
        world = World()
        for step in script:
            world.apply(step)
        for names in (["c0"], ["c1", "c2"], ["c0", "c1", "c2", "c3"]):
            world.schedule(make_pod(pvcs=names))


@given(st.lists(volumes, min_size=4, max_size=10), st.lists(claims, min_size=2, max_size=4))
def test_every_pod_of_a_workload_gets_what_a_reading_gives(
    given_volumes: list[PersistentVolume], given_claims: list[PersistentVolumeClaim]
) -> None:
    world = World()
    for new in (*given_volumes, *given_claims):
        world.apply(new)
    for names in (["c0"], ["c1"], ["c2"], ["c3"], ["c0", "c1"], ["c2", "c3"]):
        world.schedule(make_pod(pvcs=names))


many_volumes = st.lists(
    st.builds(
        lambda size, where, kind, mode: make_volume(
            class_name="static", size=size, terms=where, labels=kind, modes=mode
        ),
        st.sampled_from(SIZES),
        terms,
        st.dictionaries(st.sampled_from("kl"), st.sampled_from("xyz")),
        st.sampled_from([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany")]),
    ),
    max_size=20,
)
many_claims = st.lists(
    st.builds(
        lambda size, selector, mode: make_claim(
            class_name="static", size=size, selector=selector, modes=mode
        ),
        st.sampled_from(SIZES),
        st.sampled_from(
            [
                None,
                make_selector("k=x"),
                make_selector("k In x,y", "l Exists"),
                make_selector("l NotIn z"),
                make_selector("k DoesNotExist"),
            ]
        ),
        st.sampled_from([("ReadWriteOnce",), ("ReadOnlyMany",)]),
    ),
    min_size=1,
    max_size=14,
)


@given(many_volumes, many_claims)
def test_many_claims_get_what_they_get_one_by_one(
    given_volumes: list[PersistentVolume], given_claims: list[PersistentVolumeClaim]
) -> None:
    free = ClassVolumes()
    for number, volume in enumerate(given_volumes):
        metadata = msgspec.structs.replace(volume.metadata, name=f"pv{number % 7}-{number}")
        free.add(msgspec.structs.replace(volume, metadata=metadata))
    demands = sorted(map(ClaimDemand.of, given_claims), key=lambda each: each.requested.nano)
    matcher = FreeMatcher(free, demands)
    for pattern in ((), tuple(free.groups), tuple(free.groups)[:1], tuple(free.groups)[1:]):
        with mock.patch("kubestow.plugins.volume_binding.free_matching.CLAIMS_FEW", 0):
            found = matcher.match(pattern)
        assert found == matcher._one_by_one(pattern)


def test_the_work_grows_with_claims_and_volumes_not_with_their_product() -> None:
    """Each volume has another affinity, each claim another selector: labels are read once each."""
    reads: list[int] = []
    for size in (40, 80):
        free = ClassVolumes()
        for number in range(2 * size):
            free.add(
                make_volume(
                    f"pv{number}",
                    class_name="static",
                    size=f"{number + 1}Gi",
                    labels={"k": f"{number}"},
                    terms=[make_term("host Exists", f"x{number} DoesNotExist")],
                )
            )
        demands = [
            ClaimDemand.of(make_claim(class_name="static", selector=make_selector(f"k NotIn {n}")))
            for n in range(size)
        ]
        with mock.patch.object(Selector, "matches", autospec=True) as matches:
            assert len(FreeMatcher(free, demands).match(tuple(free.groups))) == size
        reads.append(matches.call_count)
    assert reads == [0, 0]


def test_answers_for_the_demands_asked_about_last_are_kept() -> None:
    volumes = ClassVolumes()
    with mock.patch("kubestow.plugins.volume_binding.free_volumes._TABLES_MAX", 2):
        first = volumes.table("a")
        volumes.table("b")
        assert volumes.table("a") is first
        volumes.table("c")
        assert volumes.table("a") is first
        volumes.table("b")
        volumes.table("c")
        assert volumes.table("a") is not first


def test_selectors_of_objects_that_are_gone_are_forgotten() -> None:
    """Drivers report capacity, and local disks come, with a selector for each node."""
    stores = ClusterObjects()
    volumes_by_class = VolumesByClass(AssumeCache(stores.persistent_volumes, "persistentvolumes"))
    capacities_by_class = StorageCapacities(stores.csi_storage_capacities)
    for number in range(2 * UNUSED_SELECTORS_MAX + 10):
        stores.put(
            make_volume("pv", class_name="fast", terms=[make_term(f"host In h{number}")]),
            make_capacity("cap", class_name="fast", topology=make_selector(f"host=h{number}")),
        )
        volumes = volumes_by_class.of_class("fast")
        capacities = capacities_by_class.of_class("fast")
        assert len(volumes.patterns) <= UNUSED_SELECTORS_MAX + 2
        assert len(capacities._patterns) <= UNUSED_SELECTORS_MAX + 2
    assert len(volumes.groups) == len(capacities._groups) == 1


def test_classes_that_are_out_of_use_are_forgotten() -> None:
    """Every claim may name a class of its own."""
    stores = ClusterObjects()
    volumes = VolumesByClass(AssumeCache(stores.persistent_volumes, "persistentvolumes"))
    capacities = StorageCapacities(stores.csi_storage_capacities)
    for number in range(10):
        name = f"class-{number}"
        assert volumes.of_class(name) is volumes.of_class("another")
        assert capacities.of_class(name) is capacities.of_class("another")
        stores.put(
            make_volume("pv", class_name=name),
            make_capacity("cap", class_name=name, topology=make_selector("host=h")),
        )
        # Each object has another class now than before.
        assert len(volumes.of_class(name).groups) == 1
        assert list(volumes._classes) == list(capacities._classes) == [name]
    stores.persistent_volumes.remove("pv")
    stores.csi_storage_capacities.remove("drivers", "cap")
    assert not volumes._classes
    assert not capacities._classes
