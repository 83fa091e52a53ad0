"""Published slices by node and pool."""

from kubestow.api.device import ResourceSlice
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots
from kubestow.testing.devices import make_slice


def names(inventory: DeviceInventory, node_name: str) -> list[str]:
    return [each.name for each in inventory.candidates(node_name)]


def make_inventory(*slices: ResourceSlice) -> tuple[ObjectStore[ResourceSlice], DeviceInventory]:
    store = ObjectStore[ResourceSlice]()
    for each in slices:
        store.put(each)
    return store, DeviceInventory(store, NodeSlots())


def test_a_node_sees_its_own_slices_and_those_of_no_node() -> None:
    _, inventory = make_inventory(
        make_slice(name="mine", node="n1"),
        make_slice(name="theirs", node="n2"),
        make_slice(name="all", all_nodes=True),
        make_slice(name="counters", node="n2", counters={"set": {"memory": "1"}}),
    )
    assert names(inventory, "n1") == ["mine", "all", "counters"]
    assert names(inventory, "n3") == ["all", "counters"]


def test_slices_come_move_and_go() -> None:
    store, inventory = make_inventory()
    store.put(make_slice("a", name="s", node="n1"))
    assert names(inventory, "n1") == ["s"]
    store.put(make_slice("a", name="s", node="n2", pool="other"))
    assert names(inventory, "n1") == []
    assert names(inventory, "n2") == ["s"]
    assert list(inventory.of_pool(("d.com", "pool"))) == []
    store.remove("s")
    assert names(inventory, "n2") == []
    assert list(inventory) == []


def test_a_stamp_moves_with_every_slice_of_the_pools_a_node_sees() -> None:
    store, inventory = make_inventory(
        make_slice(name="a", node="n1", pool="wide"),
        make_slice(name="b", node="n2", pool="wide"),
        make_slice(name="c", node="n3", pool="narrow"),
    )
    before = [inventory.stamp_of(node) for node in ("n1", "n2", "n3")]
    store.put(make_slice(name="b", node="n2", pool="wide", generation=2))
    after = [inventory.stamp_of(node) for node in ("n1", "n2", "n3")]
    assert [old != new for old, new in zip(before, after, strict=True)] == [True, True, False]


def test_slices_of_no_node_concern_all_nodes() -> None:
    store, inventory = make_inventory()
    before = inventory.stamp_of("n1")
    store.put(make_slice(all_nodes=True))
    assert inventory.stamp_of("n1") != before


def test_no_stamp_comes_again_and_none_is_kept_for_a_node_without_slices() -> None:
    store, inventory = make_inventory()
    nothing, seen = inventory.stamp_of("n1"), set[tuple[int, int]]()
    for generation in range(1, 4):
        store.put(make_slice(name="s", node="n1", generation=generation))
        stamp = inventory.stamp_of("n1")
        assert stamp != nothing
        assert stamp not in seen
        seen.add(stamp)
        store.remove("s")
        assert inventory.stamp_of("n1") == nothing
        assert not inventory._local_stamps
