"""The pools a node sees (spec 08 B7.1)."""

import pytest

from kubestow.api.device import ResourceSlice
from kubestow.api.pod import NodeSelector
from kubestow.cache.numbering import NUMBERED_SPARE
from kubestow.cache.objects import ObjectStore
from kubestow.errors import PluginError
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots
from kubestow.plugins.dynamic_resources.pools import NodePools, PoolCache, PoolGathering
from kubestow.testing import make_node, make_term
from kubestow.testing.devices import make_device, make_slice

NODE = make_node("n1", labels={"rack": "7"})


def selector(*terms: str) -> NodeSelector:
    return NodeSelector(node_selector_terms=tuple(make_term(term) for term in terms))


def make_inventory(*slices: ResourceSlice) -> DeviceInventory:
    store = ObjectStore[ResourceSlice]()
    for each in slices:
        store.put(each)
    return DeviceInventory(store, NodeSlots())


def pools_of(*slices: ResourceSlice) -> NodePools:
    return PoolGathering(make_inventory(*slices)).of(NODE)


def names(pools: NodePools) -> list[str]:
    return [published.device.name for published, _ in pools.devices]


@pytest.mark.parametrize(
    ("published", "is_seen"),
    [
        (make_slice("a", node="n1"), True),
        (make_slice("a", node="n2"), False),
        (make_slice("a", all_nodes=True), True),
        (make_slice("a", node_selector=selector("rack In 7")), True),
        (make_slice("a", node_selector=selector("rack In 8")), False),
        (make_slice(make_device("a", node="n1"), per_device=True), True),
        (make_slice(make_device("a", node="n2"), per_device=True), False),
        (make_slice(make_device("a", all_nodes=True), per_device=True), True),
        (
            make_slice(make_device("a", node_selector=selector("rack Exists")), per_device=True),
            True,
        ),
        (make_slice("a", per_device=False), False),
    ],
)
def test_slices_name_the_nodes_that_reach_them(published: ResourceSlice, is_seen: bool) -> None:
    assert names(pools_of(published)) == (["a"] if is_seen else [])


def test_pools_are_tried_by_driver_and_name_and_slices_by_name() -> None:
    pools = pools_of(
        make_slice("d", name="s2", driver="b.com", pool="p", slice_count=2),
        make_slice("c", name="s1", driver="b.com", pool="p", slice_count=2),
        make_slice("b", driver="a.com", pool="z"),
        make_slice("a", driver="a.com", pool="Z"),
    )
    assert names(pools) == ["a", "b", "c", "d"]


def test_pools_with_devices_to_prepare_come_last() -> None:
    pools = pools_of(
        make_slice(make_device("slow", binding_conditions=["Ready"]), pool="a"),
        make_slice("quick", pool="b"),
    )
    assert names(pools) == ["quick", "slow"]


def test_only_the_newest_generation_counts() -> None:
    pools = pools_of(
        make_slice("new", name="b", generation=2),
        make_slice("old", name="a", generation=1),
        make_slice("old2", name="c", generation=1),
    )
    assert names(pools) == ["new"]


def test_slices_elsewhere_complete_a_pool() -> None:
    pools = pools_of(
        make_slice("here", node="n1", slice_count=2), make_slice("there", node="n2", slice_count=2)
    )
    assert names(pools) == ["here"]
    assert pools.pools[0].is_complete


def test_a_pool_that_lacks_a_slice_has_no_devices() -> None:
    pools = pools_of(make_slice("a", node="n1", slice_count=2))
    assert names(pools) == []
    assert [pool.is_complete for pool in pools.pools] == [False]
    assert not pools.has_invalid


def test_a_pool_with_newer_slices_elsewhere_is_not_there_at_all() -> None:
    pools = pools_of(
        make_slice("a", node="n1", slice_count=2), make_slice("b", node="n2", generation=2)
    )
    assert pools.pools == ()


COUNTERS = make_slice(name="counters", slice_count=2, counters={"set": {"memory": "4"}})


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param([make_slice("a", "a")], id="device-twice"),
        pytest.param(
            [
                COUNTERS,
                make_slice(name="again", slice_count=2, counters={"set": {"memory": "4"}}),
            ],
            id="counter-set-twice",
        ),
        pytest.param(
            [
                COUNTERS,
                make_slice(make_device("a", consumes={"other": {"memory": "1"}}), slice_count=2),
            ],
            id="unknown-counter-set",
        ),
        pytest.param(
            [
                COUNTERS,
                make_slice(make_device("a", consumes={"set": {"cores": "1"}}), slice_count=2),
            ],
            id="unknown-counter",
        ),
        pytest.param(
            [
                COUNTERS,
                make_slice(
                    make_device("a", consumes={"set": {"cores": "1"}}), node="n2", slice_count=2
                ),
            ],
            id="unknown-counter-on-another-node",
        ),
    ],
)
def test_invalid_pools_have_no_devices(slices: list[ResourceSlice]) -> None:
    pools = pools_of(*slices)
    assert names(pools) == []
    assert pools.has_invalid


def test_counters_are_the_pools() -> None:
    pools = pools_of(
        COUNTERS, make_slice(make_device("a", consumes={"set": {"memory": "1"}}), slice_count=2)
    )
    assert names(pools) == ["a"]
    assert pools.pools[0].counters == {"set": {"memory": 4 * 10**9}}


def test_a_selector_that_does_not_parse_fails_every_node() -> None:
    with pytest.raises(PluginError) as caught:
        pools_of(make_slice("a", name="s", node_selector=selector("rack Gt abc")))
    assert str(caught.value) == (
        "gather pool information: failed to perform node selection for slice s: "
        "failed to parse node selector &NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{"
        "NodeSelectorTerm{MatchExpressions:[]NodeSelectorRequirement{NodeSelectorRequirement{"
        "Key:rack,Operator:Gt,Values:[abc],},},MatchFields:[]NodeSelectorRequirement{},},},}: "
        'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "abc": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )


def test_pools_are_kept_until_slices_or_labels_change() -> None:
    store = ObjectStore[ResourceSlice]()
    store.put(make_slice("a", node_selector=selector("rack In 7")))
    cache = PoolCache(PoolGathering(DeviceInventory(store, NodeSlots())))
    pools = cache.of(NODE)
    assert cache.of(NODE) is pools
    assert cache.of(make_node("n1", cpu="1", labels={"rack": "7"})) is pools
    assert names(cache.of(make_node("n1", labels={"rack": "8"}))) == []
    store.put(make_slice("b", node="n2", pool="other"))
    pools = cache.of(NODE)
    store.put(make_slice("b", node="n1", pool="other"))
    assert cache.of(NODE) is not pools


def test_pools_are_kept_for_a_limited_number_of_nodes() -> None:
    """Nodes of autoscaled clusters come and go with ever new names."""
    cache = PoolCache(PoolGathering(DeviceInventory(ObjectStore[ResourceSlice](), NodeSlots())))
    for number in range(3 * NUMBERED_SPARE):
        cache.of(make_node(f"n{number}"))
        assert len(cache._kept) <= 2 * NUMBERED_SPARE + 64


def test_devices_of_deleted_nodes_are_forgotten() -> None:
    store = ObjectStore[ResourceSlice]()
    cache = PoolCache(PoolGathering(DeviceInventory(store, NodeSlots())))
    staying = make_node("staying")
    store.put(make_slice("staying", node="staying", pool="staying"))
    for number in range(500):
        name = f"n{number}"
        store.put(make_slice(name, name=name, node=name, pool=name))
        assert names(cache.of(make_node(name))) == [name]
        pools = cache.of(staying)
        assert store.remove(name) is not None
        assert len(cache._kept) <= 70
        assert cache.of(staying) is pools
