"""Which constraints a pod has (spec 06 §6.3.2), and the default selector (spec 01 §14)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kubestow.api.labels import EVERYTHING, NOTHING, Selector, parse_label_selector
from kubestow.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubestow.api.pod import Pod, TopologySpreadConstraint
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import (
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
)
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.plugins.pod_topology_spread import plugin as plugin_module
from kubestow.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    Constraint,
    Constraints,
)
from kubestow.testing import make_handle
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.snapshots import make_snapshot
from kubestow.testing.topology import make_selector, make_spread


def meta(name: str, namespace: str = "ns") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


def service(name: str, selector: Mapping[str, str] | None, namespace: str = "ns") -> Service:
    spec = ServiceSpec(selector=None if selector is None else dict(selector))
    return Service(metadata=meta(name, namespace), spec=spec)


def replica_set(selector: LabelSelector | None) -> ReplicaSet:
    return ReplicaSet(metadata=meta("rs1"), spec=ReplicaSetSpec(selector=selector))


def objects() -> ClusterObjects:
    stores = ClusterObjects()
    stores.put(
        service("s1", {"app": "web"}),
        service("s2", {"tier": "fe"}),
        service("s3", None),
        service("s4", {}, "ns2"),
        replica_set(make_selector("app=web", "h=abc")),
        StatefulSet(metadata=meta("ss1"), spec=ReplicaSetSpec(selector=make_selector("db Exists"))),
        ReplicationController(
            metadata=meta("rc1"), spec=ReplicationControllerSpec(selector={"app": "other"})
        ),
    )
    return stores


def owner(
    kind: str, name: str, api_version: str = "apps/v1", controller: bool | None = True
) -> OwnerReference:
    return OwnerReference(kind=kind, name=name, api_version=api_version, controller=controller)


def pod(labels: Mapping[str, str], of: OwnerReference | None = None, namespace: str = "ns") -> Pod:
    return make_pod(namespace=namespace, labels=labels, owner=of)


WEB = {"app": "web"}
WEB_RS = {"app": "web", "h": "abc"}
RS1 = owner("ReplicaSet", "rs1")


def constraints(
    stores: ClusterObjects | None = None,
    args: PodTopologySpreadArgs | None = None,
    *,
    merges_label_keys: bool = True,
) -> Constraints:
    return Constraints(
        args or PodTopologySpreadArgs(),
        stores or ClusterObjects(),
        merges_label_keys=merges_label_keys,
    )


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(WEB), ["app=web"], id="D1-service"),
        pytest.param(pod({"app": "web", "tier": "fe"}), ["app=web", "tier=fe"], id="D2-services"),
        pytest.param(pod({}), None, id="D3-no-service"),
        pytest.param(pod({"q": "r"}, namespace="ns2"), None, id="D3-service-for-all-pods"),
        pytest.param(pod(WEB_RS, RS1), ["app=web", "app In web", "h=abc"], id="D4-replica-set"),
        pytest.param(
            pod(WEB_RS, owner("ReplicaSet", "rs1", controller=None)),
            ["app=web"],
            id="D5-no-controller",
        ),
        pytest.param(
            pod(WEB_RS, owner("ReplicaSet", "rs1", "apps/v1beta2")), ["app=web"], id="D5-version"
        ),
        pytest.param(pod(WEB_RS, owner("ReplicaSet", "gone")), ["app=web"], id="D5-missing"),
        pytest.param(
            pod(WEB, owner("ReplicationController", "rc1", "v1")), ["app=other"], id="D6-rc-wins"
        ),
        pytest.param(
            pod({"k": "v"}, owner("StatefulSet", "ss1")), ["db Exists"], id="D7-stateful-set"
        ),
        pytest.param(pod({"k": "v"}, owner("Job", "j", "batch/v1")), None, id="D8-job"),
    ],
)
def test_default_selectors(subject: Pod, expected: list[str] | None) -> None:
    found = constraints(objects()).of(subject, SOFT)
    if expected is None:
        assert found == []
    else:
        assert [each.topology_key for each in found] == [
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        ]
        assert [each.max_skew for each in found] == [3, 5]
        assert {each.selector for each in found} == {parsed(*expected)}


def test_default_selectors_follow_services_and_owners() -> None:
    stores = objects()
    subject = constraints(stores)
    owned = pod(WEB_RS, RS1)

    def selector() -> Selector:
        return subject.of(owned, SOFT)[0].selector

    assert selector() == parsed("app=web", "app In web", "h=abc")
    stores.put(service("s5", {"h": "abc"}))
    assert selector() == parsed("app=web", "h=abc", "app In web", "h In abc")
    stores.put(replica_set(make_selector("h Exists")))
    assert selector() == parsed("app=web", "h=abc", "h Exists")
    stores.put(replica_set(make_selector("h Bogus x")))
    assert selector() == parsed("app=web", "h=abc")
    stores.replica_sets.remove("ns", "rs1")
    stores.services.remove("ns", "s5")
    assert selector() == parsed("app=web")
    stores.put(replica_set(None))
    assert selector() == parsed("app=web")


def test_own_constraints_of_any_action_switch_the_defaults_off() -> None:
    subject = constraints(objects())
    hard = make_pod(namespace="ns", labels=WEB, spread=[make_spread("zone", "app=web")])
    assert len(subject.of(hard, HARD)) == 1
    assert subject.of(hard, SOFT) == []


def test_constraints_keep_their_order_and_are_picked_by_action() -> None:
    given = [make_spread(key, "a=b", hard=key in "pr") for key in "pqrs"]
    subject = make_pod(spread=given)
    assert [each.topology_key for each in constraints().of(subject, HARD)] == ["p", "r"]
    assert [each.topology_key for each in constraints().of(subject, SOFT)] == ["q", "s"]


def test_what_is_not_said_has_a_default() -> None:
    assert own(make_spread("zone", "app=web", max_skew=4)) == Constraint(
        max_skew=4,
        topology_key="zone",
        selector=parsed("app=web"),
        min_domains=1,
        honors_affinity=True,
        honors_taints=False,
    )


def test_what_is_said_is_kept() -> None:
    found = own(
        make_spread(
            "zone", "app=web", min_domains=7, affinity_policy="Ignore", taints_policy="Honor"
        )
    )
    assert (found.min_domains, found.honors_affinity, found.honors_taints) == (7, False, True)


@pytest.mark.parametrize(
    ("selector", "keys", "expected"),
    [
        pytest.param(make_selector("app=web"), ["v"], ["app=web", "v=1"], id="merged"),
        pytest.param(make_selector("app=web"), ["none"], ["app=web"], id="label-missing"),
        pytest.param(make_selector(), ["v"], ["v=1"], id="everything-is-no-longer-empty"),
        pytest.param(make_selector(), ["none"], EVERYTHING, id="everything-stays"),
        pytest.param(None, ["v"], NOTHING, id="nothing-stays-nothing"),
        pytest.param(
            make_selector("v In 0"), ["v"], ["v In 0", "v In 1"], id="both-values-are-required"
        ),
    ],
)
def test_match_label_keys(
    selector: LabelSelector | None, keys: list[str], expected: list[str] | Selector
) -> None:
    found = own(make_spread("zone", selector=selector, match_label_keys=keys))
    assert found.selector == (parsed(*expected) if isinstance(expected, list) else expected)


def test_match_label_keys_without_the_gate_are_ignored() -> None:
    given = make_spread("zone", "app=web", match_label_keys=["v"])
    subject = make_pod(labels={"v": "1"}, spread=[given])
    (found,) = constraints(merges_label_keys=False).of(subject, HARD)
    assert found.selector == parsed("app=web")


def test_list_defaults() -> None:
    defaults = (
        msgspec.structs.replace(make_spread("rack", max_skew=2), match_label_keys=("h",)),
        make_spread("zone", hard=False),
    )
    args = PodTopologySpreadArgs(defaulting_type="List", default_constraints=defaults)
    subject = constraints(objects(), args)
    (hard,) = subject.of(pod(WEB_RS), HARD)
    assert (hard.topology_key, hard.max_skew, hard.selector) == ("rack", 2, parsed("app=web"))
    (soft,) = subject.of(pod(WEB_RS), SOFT)
    assert soft.topology_key == "zone"


def test_an_empty_list_means_no_defaults() -> None:
    subject = constraints(objects(), PodTopologySpreadArgs(defaulting_type="List"))
    assert subject.of(pod(WEB), HARD) == subject.of(pod(WEB), SOFT) == []


def own(given: TopologySpreadConstraint) -> Constraint:
    (found,) = constraints().of(make_pod(labels={"v": "1"}, spread=[given]), HARD)
    return found


def parsed(*requirements: str) -> Selector:
    return parse_label_selector(make_selector(*requirements))


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        pytest.param({}, {}, True, id="equal"),
        pytest.param(
            {}, {"labels": {"v": "1", "app": "db"}}, True, id="labels-that-no-constraint-names"
        ),
        pytest.param({}, {"labels": {"v": "2"}}, False, id="labels-that-a-constraint-names"),
        pytest.param({}, {"namespace": "other"}, False, id="namespace"),
        pytest.param({}, {"node_selector": {"pool": "p"}}, False, id="node-selector"),
        pytest.param(
            {}, {"spread": [make_spread("rack", match_label_keys=["v"])]}, False, id="key"
        ),
        pytest.param(
            {"spread": []}, {"spread": [], "labels": {"app": "db"}}, True, id="no-default"
        ),
        pytest.param({"spread": []}, {"spread": [], "labels": WEB}, False, id="default"),
    ],
)
def test_kinds(one: dict[str, Any], other: dict[str, Any], are_alike: bool) -> None:
    subject = constraints(objects())
    usual = {
        "namespace": "ns",
        "labels": {"v": "1"},
        "spread": [make_spread("zone", match_label_keys=["v"])],
    }
    first, second = (
        subject.kind_of(PodInfo(make_pod(**{**usual, **given}))) for given in (one, other)
    )
    assert (first == second) is are_alike


def test_nothing_is_kept_of_long_constraints() -> None:
    long = make_spread("k" * 20_000)
    assert constraints().kind_of(PodInfo(make_pod(spread=[long]))) is None


def test_constraints_are_kept_for_a_limited_number_of_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plugin_module, "KINDS_MAX", 2)
    snapshot = make_snapshot([make_node("n1", labels={"zone": "z1"})])
    plugin = PodTopologySpread(PodTopologySpreadArgs(), make_handle(snapshot=snapshot))
    for key in ("a", "b", "c", "d"):
        pod = PodInfo(make_pod(spread=[make_spread(key)]))
        plugin.pre_filter(CycleState(), pod, nodes_of(snapshot))
        assert len(plugin._kinds) <= 2
