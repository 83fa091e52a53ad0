"""Spec 05 §8.3: what a node lacks, in order, and whether evicting pods could help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.framework.status import Status
from kubestow.index import nodes as views
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_filter

FOO = "example.com/foo"
FOO_CLASS = DeviceClass(
    metadata=ObjectMeta(name="foo-class"), spec=DeviceClassSpec(extended_resource_name=FOO)
)
U, UAU = Status.unschedulable, Status.unresolvable


def make_plugin(
    *classes: DeviceClass, gates: dict[str, bool] | None = None, **args: tuple[str, ...]
) -> NodeResourcesFit:
    objects = ClusterObjects()
    for each in classes:
        objects.device_classes.put(each)
    handle = make_handle(objects=objects, feature_gates=FeatureGates(gates))
    return NodeResourcesFit(NodeResourcesFitArgs(**args), handle)


def example_node(**more: str) -> Node:
    return make_node("n", cpu="2", memory="4Gi", ephemeral_storage="10Gi", pods=3, allocatable=more)


def holding(pod_count: int, cpu: str = "0", memory: str = "0", **more: str) -> list[Pod]:
    """This many pods, of which one requests everything."""
    first = make_pod(node="n", cpu=cpu, memory=memory, requests=more)
    return [first, *(make_pod(node="n") for _ in range(pod_count - 1))][:pod_count]


@pytest.mark.parametrize(
    ("pods", "pod", "expected"),
    [
        pytest.param(
            holding(1, "1500m", "1Gi"), make_pod(cpu="500m", memory="3Gi"), None, id="1-exact-fit"
        ),
        pytest.param(
            holding(1, "1500m", "1Gi"),
            make_pod(cpu="600m", memory="1Gi"),
            U("Insufficient cpu"),
            id="2-cpu",
        ),
        pytest.param(
            holding(3, "1500m", "1Gi"),
            make_pod(cpu="600m"),
            U("Too many pods", "Insufficient cpu"),
            id="3-pods-and-cpu",
        ),
        pytest.param(
            [], make_pod(cpu="3", memory="1Gi"), UAU("Insufficient cpu"), id="4-never-fits"
        ),
        pytest.param(
            holding(1, "1500m", "3Gi"),
            make_pod(cpu="600m", memory="5Gi"),
            UAU("Insufficient cpu", "Insufficient memory"),
            id="5-one-of-them-never-fits",
        ),
        pytest.param(holding(3), make_pod(), U("Too many pods"), id="6-pods-alone"),
        pytest.param(holding(1, "2500m"), make_pod(memory="1Gi"), None, id="7-over-committed"),
        pytest.param(
            [], make_pod(requests={FOO: 1}), UAU(f"Insufficient {FOO}"), id="8-unknown-scalar"
        ),
        pytest.param([], make_pod(requests={FOO: 0}), None, id="12-zero-scalar"),
        pytest.param(
            [],
            make_pod(requests={"ephemeral-storage": "11Gi"}),
            UAU("Insufficient ephemeral-storage"),
            id="ephemeral-storage",
        ),
        pytest.param(
            [],
            make_pod(cpu="3", requests={"z.com/b": 1, "a.com/b": 1, "hugepages-2Mi": "2Mi"}),
            UAU(
                "Insufficient cpu",
                "Insufficient a.com/b",
                "Insufficient hugepages-2Mi",
                "Insufficient z.com/b",
            ),
            id="scalars-in-order-of-name",
        ),
    ],
)
def test_what_a_node_lacks(pods: list[Pod], pod: Pod, expected: Status | None) -> None:
    snapshot = make_snapshot([example_node()], pods)
    assert run_filter(make_plugin(), pod, snapshot) == ({} if expected is None else {"n": expected})


WANTS_FOO = make_pod(requests={FOO: 1})


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"ignored_resource_groups": ("example.com",)}, id="9-group"),
        pytest.param({"ignored_resources": (FOO,)}, id="9-name"),
    ],
)
def test_ignored_resources_are_left_to_others(args: dict[str, tuple[str, ...]]) -> None:
    assert run_filter(make_plugin(**args), WANTS_FOO, make_snapshot([example_node()])) == {}


def test_only_extended_resources_can_be_ignored() -> None:
    plugin = make_plugin(ignored_resources=("hugepages-2Mi",))
    pod = make_pod(requests={"hugepages-2Mi": "2Mi"})
    assert run_filter(plugin, pod, make_snapshot([example_node()]))


def test_10_devices_serve_what_no_node_publishes() -> None:
    assert run_filter(make_plugin(FOO_CLASS), WANTS_FOO, make_snapshot([example_node()])) == {}
    by_class = make_pod(requests={"deviceclass.resource.kubernetes.io/foo-class": 1})
    assert run_filter(make_plugin(FOO_CLASS), by_class, make_snapshot([example_node()])) == {}


def test_11_a_node_that_publishes_the_resource_is_not_served_by_devices() -> None:
    snapshot = make_snapshot(
        [example_node(**{FOO: "2"}), make_node("devices")], holding(1, **{FOO: "2"})
    )
    assert run_filter(make_plugin(FOO_CLASS), WANTS_FOO, snapshot) == {
        "n": U(f"Insufficient {FOO}")
    }


def test_without_its_gate_devices_serve_nothing() -> None:
    plugin = make_plugin(FOO_CLASS, gates={"DRAExtendedResource": False})
    assert run_filter(plugin, WANTS_FOO, make_snapshot([example_node()]))


def test_pod_level_requests_come_with_their_gate() -> None:
    pod = make_pod(pod_requests={"cpu": "3"})
    snapshot = make_snapshot([example_node()])
    assert run_filter(make_plugin(), pod, snapshot) == {"n": UAU("Insufficient cpu")}
    assert run_filter(make_plugin(gates={"PodLevelResources": False}), pod, snapshot) == {}


def test_a_node_without_allowance_for_pods_is_still_resolvable() -> None:
    snapshot = make_snapshot([make_node("n", pods=0)])
    assert run_filter(make_plugin(), make_pod(), snapshot) == {"n": U("Too many pods")}


def test_more_scalars_than_bits_keep_the_verdict() -> None:
    names = [f"example.com/r{number:02}" for number in range(70)]
    pod = make_pod(requests=dict.fromkeys(names, 1))
    rich = make_node("rich", allocatable=dict.fromkeys(names, "1"))
    short = make_node("short", allocatable=dict.fromkeys(names[:-1], "1"))
    rejected = run_filter(make_plugin(), pod, make_snapshot([rich, short]))
    assert list(rejected) == ["short"]
    assert f"Insufficient {names[-1]}" in rejected["short"].reasons


def test_a_simulated_node_has_the_simulated_pods() -> None:
    running = make_pod(node="n", cpu="1500m", requests={FOO: 1})
    snapshot = make_snapshot([example_node(**{FOO: "1"})], [running])
    pod = make_pod(cpu="1", requests={FOO: 1})
    node = SimulatedNode(snapshot, 0)
    assert run_filter(make_plugin(), pod, node) == {
        "n": U("Insufficient cpu", f"Insufficient {FOO}")
    }
    node.remove_pod(PodInfo(running))
    assert run_filter(make_plugin(), pod, node) == {}


NAMES = ["cpu", "memory", "ephemeral-storage", FOO, "example.com/bar", "hugepages-2Mi"]
amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 4))


@given(
    offered=st.lists(st.tuples(amounts, st.integers(0, 3)), max_size=5),
    running=st.lists(st.tuples(st.integers(0, 4), amounts), max_size=6),
    wanted=amounts,
    ignored=st.sets(st.sampled_from([FOO, "hugepages-2Mi"])),
    few=st.sampled_from([0, 4, 16]),
)
def test_arrays_equal_the_scalar_reading(
    offered: list[tuple[dict[str, int], int]],
    running: list[tuple[int, dict[str, int]]],
    wanted: dict[str, int],
    ignored: set[str],
    few: int,
) -> None:
    nodes = [
        make_node(f"n{number}", cpu=None, memory=None, pods=pods, allocatable=offer)
        for number, (offer, pods) in enumerate(offered)
    ]
    running = [(number, taken) for number, taken in running if number < len(nodes)]
    pods = [make_pod(node=f"n{number}", requests=taken) for number, taken in running]
    plugin = make_plugin(FOO_CLASS, ignored_resources=tuple(ignored))
    expected: dict[str, Status] = {}
    for number, (offer, allowed) in enumerate(offered):
        here = [taken for place, taken in running if place == number]
        reasons = ["Too many pods"] if len(here) + 1 > allowed else []
        is_unresolvable = False
        # The order of the reasons: the three basic resources, then the others by name.
        for name in [*NAMES[:3], *sorted(NAMES[3:])]:
            want, offers = wanted.get(name, 0), offer.get(name, 0)
            free = offers - sum(taken.get(name, 0) for taken in here)
            if not want or (name == FOO and (name in ignored or not offers)):
                continue
            if want > free:
                reasons.append(f"Insufficient {name}")
                is_unresolvable |= want > offers
        if reasons:
            expected[f"n{number}"] = UAU(*reasons) if is_unresolvable else U(*reasons)
    with pytest.MonkeyPatch.context() as patch:
        # Above this many, nodes that have a resource are read as an array.
        patch.setattr(views, "_FEW", few)
        found = run_filter(plugin, make_pod(requests=wanted), make_snapshot(nodes, pods))
    assert found == expected
