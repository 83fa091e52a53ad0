"""The caches of v1.9, v1.17 and v1.20 agree with a slow reading of spec 03 §14.

The reading keeps one entry per pod and no sums; for v1.17 also the list of zones with their
positions. Snapshots of v1.20 and v1.9 list nodes as v1.36 does.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import NANOSECONDS
from kubestow.editions.shared.cache import CacheWithExpiry
from kubestow.editions.v1_17.cache import Cache117, Snapshot117
from kubestow.editions.v1_20.cache import Cache120
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.testing import ManualClock, make_node, make_pod

NODES = ("a1", "a2", "b1")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("assume", "finish", "forget", "add", "update", "remove", "expire")),
        st.sampled_from(("p", "q")),
        st.sampled_from(("a1", "a1", "a1", "a2")),
        st.sampled_from((0, 0, 15, 30)),
    ),
    min_size=10,
    max_size=40,
)


class Entry:
    def __init__(self, node: str, *, is_assumed: bool) -> None:
        self.node = node
        self.is_assumed = is_assumed
        self.deadline_s: float | None = None


class Reading:
    """Spec 03 §14.2; the answer of an operation is its error, None if it has none."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.now_s = 0.0

    def apply(self, operation: str, key: str, node: str) -> str | None:
        entry = self.entries.get(key)
        match operation:
            case "assume":
                if entry is not None:
                    return f"pod {key} is in the cache, so can't be assumed"
                self.entries[key] = Entry(node, is_assumed=True)
            case "finish":
                if entry is not None and entry.is_assumed:
                    entry.deadline_s = self.now_s + 30
            case "forget":
                if entry is not None and entry.node != node:
                    return f"pod {key} was assumed on {node} but assigned to {entry.node}"
                if entry is None or not entry.is_assumed:
                    return f"pod {key} wasn't assumed so cannot be forgotten"
                del self.entries[key]
            case "add":
                if entry is not None and not entry.is_assumed:
                    return f"pod {key} was already in added state"
                self.entries[key] = Entry(node, is_assumed=False)
            case "update":
                if entry is None or entry.is_assumed:
                    return f"pod {key} is not added to scheduler cache, so cannot be updated"
                if entry.node != node:
                    return "fatal"
            case "remove":
                if entry is None or entry.is_assumed:
                    return (
                        f"pod {key} is not found in scheduler cache, so cannot be removed from it"
                    )
                if entry.node != node:
                    return "fatal"
                del self.entries[key]
            case _:
                for pod, found in list(self.entries.items()):
                    is_late = found.deadline_s is not None and self.now_s > found.deadline_s
                    if found.is_assumed and is_late:
                        del self.entries[pod]
        return None


def apply(cache: CacheWithExpiry, operation: str, key: str, node: str) -> str | None:
    pod = make_pod(key, uid=key, node=node, cpu="1")
    try:
        match operation:
            case "assume":
                cache.assume_pod(PodInfo(pod))
            case "finish":
                cache.finish_binding(pod)
            case "forget":
                cache.forget_pod(pod)
            case "add":
                cache.add_pod(PodInfo(pod))
            case "update":
                cache.update_pod(pod, PodInfo(pod))
            case "remove":
                cache.remove_pod(pod)
            case _:
                cache.expire_assumed_pods()
    except CacheCorruptedError:
        return "fatal"
    except CacheError as error:
        return str(error)
    return None


@settings(max_examples=80)
@given(steps=STEPS, make=st.sampled_from((Cache117, Cache120)))
def test_the_state_machine_agrees_with_the_reading(
    steps: list[tuple[str, str, str, int]], make: type[Cache120]
) -> None:
    clock = ManualClock()
    cache, reading = make(clock), Reading()
    for name in NODES:
        cache.add_node(make_node(name))
    for operation, key, node, seconds in steps:
        clock.set_s(clock.now_ns() / NANOSECONDS + seconds)
        reading.now_s = clock.now_ns() / NANOSECONDS
        expected = reading.apply(operation, key, node)
        assert apply(cache, operation, key, node) == expected
        if expected == "fatal":
            return  # The process ends.
        _compare(cache, reading)


@settings(max_examples=80)
@given(steps=STEPS)
def test_v1_9_expires_what_is_not_confirmed(steps: list[tuple[str, str, str, int]]) -> None:
    """Its other operations are v1.36's, whose texts differ: what holds is compared."""
    clock = ManualClock()
    cache, reading = CacheWithExpiry(clock), Reading()
    for name in NODES:
        cache.add_node(make_node(name))
    for operation, key, node, seconds in steps:
        clock.set_s(clock.now_ns() / NANOSECONDS + seconds)
        reading.now_s = clock.now_ns() / NANOSECONDS
        if operation not in ("assume", "finish", "expire"):
            continue
        reading.apply(operation, key, node)
        apply(cache, operation, key, node)
        _compare(cache, reading)


def _compare(cache: CacheWithExpiry, reading: Reading) -> None:
    on_nodes = {pod.uid: name for name, info in cache.nodes.items() for pod in info.pods}
    assert on_nodes == {key: entry.node for key, entry in reading.entries.items()}
    for key, entry in reading.entries.items():
        assert cache.is_assumed(make_pod(key, uid=key)) == entry.is_assumed
    for name, info in cache.nodes.items():
        pod_count = sum(entry.node == name for entry in reading.entries.values())
        assert info.requested.milli_cpu == 1000 * pod_count


# --- the order of nodes ---

NAMES = [f"{zone}{number}" for zone in "abc" for number in range(3)]
TREE_STEPS = st.lists(
    st.one_of(st.tuples(st.just("toggle"), st.sampled_from(NAMES)), st.just(("list", ""))),
    min_size=10,
    max_size=40,
)


class Tree117:
    """Spec 03 §14.3, step by step."""

    def __init__(self) -> None:
        self.zones: list[str] = []
        self.names: dict[str, list[str]] = {}
        self.last_index: dict[str, int] = {}
        self.zone_index = 0

    def add(self, name: str) -> None:
        zone = name[0]
        if zone not in self.zones:
            self.zones.append(zone)
            self.names[zone], self.last_index[zone] = [], 0
        self.names[zone].append(name)

    def remove(self, name: str) -> None:
        zone = name[0]
        self.names[zone].remove(name)
        if not self.names[zone]:
            self.zones.remove(zone)
            del self.names[zone], self.last_index[zone]

    def next(self) -> str:
        exhausted = 0
        while True:
            if self.zone_index >= len(self.zones):
                self.zone_index = 0
            zone = self.zones[self.zone_index]
            self.zone_index += 1
            if self.last_index[zone] < len(self.names[zone]):
                self.last_index[zone] += 1
                return self.names[zone][self.last_index[zone] - 1]
            exhausted += 1
            if exhausted >= len(self.zones):
                self.last_index = dict.fromkeys(self.zones, 0)
                self.zone_index = 0


@settings(max_examples=80)
@given(TREE_STEPS)
def test_snapshots_of_v1_17_continue_where_the_last_ended(steps: list[tuple[str, str]]) -> None:
    cache, snapshot, tree = Cache117(ManualClock()), Snapshot117(), Tree117()
    present: set[str] = set()
    for operation, name in steps:
        node = make_node(name, labels={"topology.kubernetes.io/zone": name[:1]})
        if operation == "list":
            snapshot.refresh(cache)
            assert list(snapshot.names) == [tree.next() for _ in present]
        elif name in present:
            present.remove(name)
            cache.remove_node(node)
            tree.remove(name)
        else:
            present.add(name)
            cache.add_node(node)
            tree.add(name)


@settings(max_examples=80)
@given(st.lists(st.sampled_from(NAMES), max_size=30))
def test_snapshots_of_v1_20_begin_with_the_first_zone(toggled: list[str]) -> None:
    cache, snapshot = Cache120(ManualClock()), Snapshot()
    zones: dict[str, list[str]] = {}
    for name in toggled:
        node = make_node(name, labels={"topology.kubernetes.io/zone": name[:1]})
        if name in zones.get(name[0], ()):
            cache.remove_node(node)
            zones[name[0]].remove(name)
            if not zones[name[0]]:
                del zones[name[0]]
        else:
            cache.add_node(node)
            zones.setdefault(name[0], []).append(name)
        # Every time: a node that is removed and added again meanwhile would keep its place.
        snapshot.refresh(cache)
        turns = max(map(len, zones.values()), default=0)
        assert list(snapshot.names) == [
            names[turn] for turn in range(turns) for names in zones.values() if turn < len(names)
        ]
