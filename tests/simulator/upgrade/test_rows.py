"""For each change of spec 12 §1 that objects show, a cluster in which just that one is named."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.upgrading import changes_between
from kubestow.plugins.loading import LoadedPlugins
from kubestow.simulator.upgrade.configuration import batching_findings
from kubestow.simulator.upgrade.decisions import ComparedPods, compare_pods
from kubestow.simulator.upgrade.objects import completed_pods, failed_bindings, lost_objects
from kubestow.simulator.upgrade.pair import EditionPair, EditionSide, pair_of
from kubestow.simulator.upgrade.report import Effect
from kubestow.testing import ManualClock

Raw = dict[str, Any]
OLD, NEW = edition_named("v1.36"), edition_named("v1.37")
NOTICED = changes_between(OLD, NEW)
HOST = "kubernetes.io/hostname"


def side(version: str) -> EditionSide:
    gates = FeatureGates({}, edition_named(version))
    registry = dict(rules_of(gates.edition).registry)
    return EditionSide(gates, LoadedPlugins(SchedulerConfig(), registry))


def pair(documents: Sequence[Raw], *, is_back: bool = False) -> EditionPair:
    versions = ("v1.37", "v1.36") if is_back else ("v1.36", "v1.37")
    before, after = map(side, versions)
    sourced = [Document(raw, f"test#{number}") for number, raw in enumerate(documents)]
    return pair_of(sourced, before, after, ManualClock(), is_back=is_back)


def compared(*documents: Raw, is_back: bool = False) -> ComparedPods:
    return compare_pods(pair(documents, is_back=is_back), NOTICED, lambda _, __: None)


def named(found: ComparedPods) -> dict[int | None, list[tuple[str, Effect]]]:
    return {
        cause.change: [(each.pod.partition("/")[2], each.effect) for each in cause.examples]
        for cause in found.causes
    }


def thing(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Raw:
    metadata: Raw = {"name": name, "uid": f"{kind}-{namespace}-{name}"}
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def node(name: str, cpu: str = "2", labels: Raw | None = None, **status: Any) -> Raw:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    labels = {HOST: name, **(labels or {})}
    return thing(
        "v1", "Node", name, metadata={"labels": labels}, status={"allocatable": room, **status}
    )


def pod(name: str, cpu: str = "1", *, namespace: str = "default", **fields: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata, status = fields.pop("metadata", {}), fields.pop("status", {})
    spec = {"containers": [container], **fields}
    return thing("v1", "Pod", name, namespace, metadata=metadata, spec=spec, status=status)


def anti_affinity(*terms: Raw) -> Raw:
    required = [{"topologyKey": HOST, **term} for term in terms]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_nothing_changes_for_pods_that_fit() -> None:
    found = compared(node("n1"), node("n2"), *(pod(f"p{number}") for number in range(4)))
    assert (found.compared, found.differing, found.causes) == (4, 0, ())


def test_1_texts_and_5_taints_of_a_pod_that_waits() -> None:
    found = compared(node("n1"), pod("p", "4"))
    assert named(found) == {1: [("p", Effect.TEXT)], 5: [("p", Effect.WOKEN)]}


def test_1_alone_where_a_taint_keeps_the_pod_out() -> None:
    """TaintToleration looks at taints, so both versions wake the pod."""
    tainted = node("n1") | {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    assert named(compared(tainted, pod("p"))) == {1: [("p", Effect.TEXT)]}


def test_1_the_text_of_a_pod_that_evicts() -> None:
    victim = pod("v", "2", nodeName="n1", priority=0)
    found = compared(node("n1"), victim, pod("p", "2", priority=10))
    assert found.causes[0].change == 1
    assert found.causes[0].examples[0].after.endswith("on node n1, preempting 1 victims")


def storage(name: str, capacity: str, host: str) -> Raw:
    topology = {"matchLabels": {HOST: host}}
    return thing(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        name,
        "default",
        storageClassName="fast",
        capacity=capacity,
        nodeTopology=topology,
    )


def claimed_volume() -> list[Raw]:
    claim_spec = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
    }
    return [
        thing(
            "storage.k8s.io/v1",
            "StorageClass",
            "fast",
            provisioner="csi.example.com",
            volumeBindingMode="WaitForFirstConsumer",
        ),
        thing("v1", "PersistentVolumeClaim", "data", "default", spec=claim_spec),
    ]


WITH_DATA: Raw = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}


def test_2_storage_capacity_decides() -> None:
    found = compared(
        node("n1"),
        node("n2"),
        thing("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec={"storageCapacity": True}),
        *claimed_volume(),
        storage("small", "20Gi", "n1"),
        storage("large", "900Gi", "n2"),
        pod("p", **WITH_DATA),
    )
    assert list(named(found)) == [2]
    assert found.causes[0].examples[0].why == (
        'before: "n1" has the same total as "n2"; '
        'after: "n2" has 49 points more than "n1" (VolumeBinding +49)'
    )


def test_3_a_driver_that_is_not_installed() -> None:
    driver = {"preventPodSchedulingIfMissing": True}
    found = compared(
        node("n1"),
        thing("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec=driver),
        thing("storage.k8s.io/v1", "CSINode", "n1", spec={"drivers": []}),
        *claimed_volume(),
        pod("p", **WITH_DATA),
    )
    assert named(found) == {3: [("p", Effect.WAITS)]}
    assert found.causes[0].examples[0].why == (
        'before: "n1" fits; after: NodeVolumeLimits rejects "n1": '
        "csi.example.com CSI driver is not installed on the node"
    )


def test_3_a_driver_that_is_not_installed_where_others_would_be_evicted() -> None:
    """The filter is first asked when the victims are gone; without them nothing is found."""
    driver = {"preventPodSchedulingIfMissing": True}
    found = compared(
        node("n1"),
        thing("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec=driver),
        *claimed_volume(),
        pod("v", "2", nodeName="n1", priority=0),
        pod("p", "2", priority=5, **WITH_DATA),
    )
    assert set(named(found)) == {1, 3, 5}
    assert named(found)[3] == [("p", Effect.WAITS)]


def devices(count: int) -> list[Raw]:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{number}"} for number in range(count)],
    }
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {"devices": {"requests": [request]}}
    return [
        thing("resource.k8s.io/v1", "DeviceClass", "gpu", spec={}),
        thing("resource.k8s.io/v1", "ResourceSlice", "s1", spec=spec),
        thing("resource.k8s.io/v1", "ResourceClaim", "c1", "default", spec=claim),
    ]


WITH_DEVICE: Raw = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c1"}]}


def test_4_a_device_taint_rule() -> None:
    rule = {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "broken", "effect": "NoSchedule"},
    }
    found = compared(
        node("n1"),
        *devices(1),
        thing("resource.k8s.io/v1", "DeviceTaintRule", "r", spec=rule),
        pod("p", **WITH_DEVICE),
    )
    assert named(found) == {4: [("p", Effect.WAITS)]}


def test_4_a_device_taint_rule_where_others_would_be_evicted() -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    rule = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}
    found = compared(
        node("n1"),
        *devices(1),
        thing("resource.k8s.io/v1", "DeviceTaintRule", "r", spec=rule),
        pod("v", "2", nodeName="n1", priority=0),
        pod("p", "2", priority=5, **WITH_DEVICE),
    )
    assert set(named(found)) == {1, 4, 5}
    assert named(found)[4] == [("p", Effect.WAITS)]


def resized_pod(**fields: Any) -> Raw:
    """Spec 12 §6: 2500m in v1.36, 2000m in v1.37."""

    def container(name: str, cpu: str) -> Raw:
        return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}}

    def status(name: str) -> Raw:
        resources = {"requests": {"cpu": "1"}}
        return {"name": name, "allocatedResources": {"cpu": "1"}, "resources": resources}

    resized = pod("r", nodeName="n1", **fields)
    resized["spec"]["containers"] = [container("a", "500m"), container("b", "1500m")]
    resized["status"] = {"phase": "Running", "containerStatuses": [status("a"), status("b")]}
    return resized


def test_6_a_pod_that_is_being_resized() -> None:
    found = compared(node("n1", "3"), resized_pod(), pod("p", "1"))
    assert named(found) == {6: [("p", Effect.PLACED)]}


def test_6_fewer_victims_beside_a_pod_that_is_being_resized() -> None:
    found = compared(
        node("n1", "4500m"),
        resized_pod(priority=100),
        pod("v", "1", nodeName="n1", priority=0),
        pod("w", "1", nodeName="n1", priority=1),
        pod("p", "1500m", priority=5),
    )
    assert set(named(found)) == {1, 5, 6}
    assert named(found)[6] == [("p", Effect.EVICTS)]


BIND_FAILED = 'running Bind plugin "DefaultBinder": '


@pytest.mark.parametrize(
    ("message", "is_found"),
    [
        (f"{BIND_FAILED}Internal error occurred: etcdserver: leader changed", True),
        (f"{BIND_FAILED}the server is currently unable to handle the request", True),
        (f"{BIND_FAILED}dial tcp 10.0.0.1:443: connect: connection refused", True),
        (f'{BIND_FAILED}Operation cannot be fulfilled on pods/binding "p"', False),
        ('running PreBind plugin "VolumeBinding": Internal error occurred', False),
    ],
)
def test_7_a_binding_that_failed_for_a_moment(message: str, *, is_found: bool) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    status = {"conditions": [{**condition, "message": message}]}
    both = pair([node("n1"), pod("p", status=status), pod("q")])
    found = [(each.change, each.where) for each in failed_bindings(both.older.objects.pods)]
    assert found == ([(7, "Pod default/p")] if is_found else [])
    assert compare_pods(both, NOTICED, lambda _, __: None).differing == 0


def test_8_an_image_volume() -> None:
    def images(name: str, size: int) -> Raw:
        return {"images": [{"names": [name], "sizeBytes": size}]}

    volume = {"name": "v", "image": {"reference": "data:1"}}
    found = compared(
        node("n1", **images("data:1", 600 << 20)), node("n2"), pod("p", volumes=[volume])
    )
    assert list(named(found)) == [8]


def test_9_a_negative_namespace_selector() -> None:
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": selector}
    found = compared(
        node("n1"),
        thing("v1", "Namespace", "prod", metadata={"labels": {"env": "prod"}}),
        pod("a", namespace="prod", nodeName="n1", metadata={"labels": {"app": "a"}}),
        pod("p", affinity=anti_affinity(term)),
    )
    assert named(found) == {9: [("p", Effect.PLACED)]}


def test_9_a_negative_namespace_selector_where_others_are_evicted() -> None:
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": selector}
    found = compared(
        node("n1"),
        thing("v1", "Namespace", "prod", metadata={"labels": {"env": "prod"}}),
        pod(
            "a", "0", namespace="prod", nodeName="n1", priority=9, metadata={"labels": {"app": "a"}}
        ),
        pod("v", "2", nodeName="n1", priority=0),
        pod("p", "2", priority=5, affinity=anti_affinity(term)),
    )
    assert set(named(found)) == {1, 5, 9}
    assert named(found)[9] == [("p", Effect.PLACED)]


def budget(name: str, allowed: int, labels: Raw) -> Raw:
    return thing(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        "default",
        spec={"selector": {"matchLabels": labels}, "minAvailable": 1},
        status={"disruptionsAllowed": allowed},
    )


def test_10_two_budgets_on_one_pod() -> None:
    """Node n1: two violations in v1.36, one in v1.37; n2: one, of a higher priority."""
    found = compared(
        node("n1"),
        node("n2"),
        budget("first", 0, {"first": "y"}),
        budget("second", 1, {"second": "y"}),
        budget("third", 0, {"third": "y"}),
        pod("a", nodeName="n1", priority=2, metadata={"labels": {"first": "y", "second": "y"}}),
        pod("b", nodeName="n1", priority=1, metadata={"labels": {"second": "y"}}),
        pod("c", "2", nodeName="n2", priority=5, metadata={"labels": {"third": "y"}}),
        pod("p", "2", priority=10),
    )
    assert set(named(found)) == {1, 5, 10}
    assert named(found)[10] == [("p", Effect.EVICTS)]


def test_19_victims_that_have_not_started() -> None:
    found = compared(
        node("n1"),
        pod("v", "1", nodeName="n1", priority=0),
        pod("w", "1", nodeName="n1", priority=0),
        pod("p", "1", priority=5),
    )
    assert set(named(found)) == {1, 5, 19}
    assert [each for each, _ in named(found)[19]] == ["p"]


def test_11_the_nomination_of_a_gated_pod() -> None:
    gated = pod(
        "g",
        "2",
        priority=10,
        schedulingGates=[{"name": "hold"}],
        status={"nominatedNodeName": "n1"},
    )
    found = compared(node("n1"), gated, pod("p", "1", priority=1))
    assert named(found) == {11: [("p", Effect.WAITS)]}
    assert found.left_out == ("1 pod held back by a scheduling gate",)


def test_11_more_victims_beside_the_nomination_of_a_gated_pod() -> None:
    gate = [{"name": "hold"}]
    nominated = {"nominatedNodeName": "n1"}
    found = compared(
        node("n1"),
        pod("g", "1", priority=10, schedulingGates=gate, status=nominated),
        pod("v", "1", nodeName="n1", priority=0, status={"startTime": "2026-01-01T00:00:00Z"}),
        pod("w", "1", nodeName="n1", priority=0, status={"startTime": "2026-01-01T00:00:01Z"}),
        pod("p", "1", priority=5),
    )
    assert set(named(found)) == {1, 5, 11}
    assert named(found)[11] == [("p", Effect.EVICTS)]


def test_12_one_of_several_terms() -> None:
    """With terms of both rejected pods, one of which is deleted."""
    terms = [{"labelSelector": {"matchLabels": {"app": app}}} for app in ("a", "b")]
    found = compared(
        node("n1"),
        pod("a", nodeName="n1", metadata={"labels": {"app": "a"}}),
        pod("p", affinity=anti_affinity(*terms)),
    )
    assert set(named(found)) == {1, 5, 12}
    assert named(found)[12] == [("p", Effect.WOKEN)]


def test_12_one_of_several_terms_of_a_pod_on_a_node() -> None:
    terms = [{"labelSelector": {"matchLabels": {"app": app}}} for app in ("a", "b")]
    waiting = pod("p", metadata={"labels": {"app": "a"}})
    standing = pod("a", nodeName="n1", affinity=anti_affinity(*terms))
    assert set(named(compared(node("n1"), standing, waiting))) == {1, 5, 12}
    standing = pod("a", nodeName="n1", affinity=anti_affinity(terms[0]))
    assert set(named(compared(node("n1"), standing, waiting))) == {1, 5}


def test_13_a_victim_that_is_not_bound_yet() -> None:
    """The pod v has its node, and waits at Permit or in PreBind."""
    unbound = pod("v", "2", priority=0, status={"nominatedNodeName": "n1"})
    here = {HOST: "n1"}
    found = compared(node("n1"), node("n2"), unbound, pod("p", "2", priority=5, nodeSelector=here))
    assert named(found) == {13: [("p", Effect.WOKEN)]}
    (example,) = found.causes[0].examples
    assert example.before == "evicts default/v, which is not bound yet, and waits for an event"
    assert example.after.endswith("and is tried again at once")


def test_13_needs_a_victim_that_is_the_last_one() -> None:
    """Evicted in the order of importance: v first, then w, whose deletion is an event."""
    unbound = pod("v", "1", priority=4, status={"nominatedNodeName": "n1"})
    standing = pod("w", "1", priority=0, nodeName="n1")
    found = compared(node("n1"), unbound, standing, pod("p", "2", priority=5))
    assert 13 not in named(found)


def test_13_is_not_a_pod_whose_attempt_failed() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"nominatedNodeName": "n1", "conditions": [condition]}
    found = compared(node("n1"), pod("v", "2", status=status), pod("p", "2", priority=5))
    assert 13 not in named(found)


SPREAD_LIST: Raw = {
    "name": "PodTopologySpread",
    "args": {"defaultingType": "List", "defaultConstraints": []},
}
EXTENDER: Raw = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param({"profiles": [{"pluginConfig": [SPREAD_LIST]}]}, [14], id="no-constraints"),
        pytest.param({"profiles": [{}]}, [], id="default"),
        pytest.param(
            {"profiles": [{"pluginConfig": [SPREAD_LIST]}], "extenders": [EXTENDER]},
            [],
            id="an-extender",
        ),
        pytest.param(
            {
                "profiles": [
                    {"plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}}
                ]
            },
            [14],
            id="plugin-disabled",
        ),
    ],
)
def test_14_a_profile_that_places_pods_in_batches(fields: Raw, found: list[int]) -> None:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = json.dumps({**head, **fields}).encode()
    sides = [side("v1.36"), side("v1.37")]
    for number, each in enumerate(sides):
        loaded = each.loaded._replace(config=decode_config(config, each.gates))
        sides[number] = each._replace(loaded=loaded)
    both = pair_of([], sides[0], sides[1], ManualClock(), is_back=False)
    assert [each.change for each in batching_findings(both)] == found


def test_15_the_device_allocator() -> None:
    """Spec 12 §10.2 b: three devices, two of them equal, and a distinct attribute."""
    objects = devices(3)
    for number, device in enumerate(objects[1]["spec"]["devices"]):
        device["attributes"] = {"zone": {"string": "x" if number != 1 else "y"}}
    claim = objects[2]["spec"]["devices"]
    claim["requests"][0]["exactly"]["count"] = 3
    claim["constraints"] = [{"distinctAttribute": "gpu.example.com/zone"}]
    found = compared(node("n1"), *objects, pod("p", **WITH_DEVICE))
    assert 15 in named(found)


def test_15_configuration_that_is_written_in_another_way() -> None:
    """Spec 12 §10.2 a: for the requests by name in v1.36, for all of the claim in v1.37."""
    objects = devices(2)
    opaque = {"driver": "gpu.example.com", "parameters": {"mode": "shared"}}
    objects[0]["spec"] = {"config": [{"opaque": opaque}]}
    requests = [{"name": name, "exactly": {"deviceClassName": "gpu"}} for name in ("r", "s")]
    objects[2]["spec"]["devices"]["requests"] = requests
    found = compared(node("n1"), *objects, pod("p", **WITH_DEVICE))
    assert named(found) == {15: [("p", Effect.DEVICES)]}
    (example,) = found.causes[0].examples
    assert example.before.endswith(", configuration for requests r+s")
    assert example.after.endswith(", configuration for requests all")


def test_4_another_device_of_the_same_node() -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    rule = {"deviceSelector": {"driver": "gpu.example.com", "device": "d0"}, "taint": taint}
    found = compared(
        node("n1"),
        *devices(2),
        thing("resource.k8s.io/v1", "DeviceTaintRule", "r", spec=rule),
        pod("p", **WITH_DEVICE),
    )
    assert named(found) == {4: [("p", Effect.DEVICES)]}
    (example,) = found.causes[0].examples
    assert (example.before, example.after) == (
        "r=gpu.example.com/n1/d0",
        "r=gpu.example.com/n1/d1",
    )


def test_pods_that_are_not_bound_yet_leave_other_decisions_alone() -> None:
    """They are tried on their nodes for a moment, which no other decision may see."""
    unbound = pod("v", "1", priority=0, status={"nominatedNodeName": "n1"})
    found = compared(node("n1"), node("n2"), unbound, pod("p", "1", priority=5))
    assert (found.compared, found.differing) == (2, 0)


def test_17_pod_level_resources() -> None:
    container = {
        "name": "a",
        "image": "i",
        "resources": {
            "requests": {"cpu": "400m", "memory": "1Gi"},
            "limits": {"cpu": "400m", "memory": "1Gi"},
        },
    }
    whole = pod("p", resources={"requests": {"cpu": "1"}})
    whole["spec"]["containers"] = [container, {**container, "name": "b"}]
    del whole["metadata"]["uid"]
    both = pair([node("n1"), whole])
    (finding,) = completed_pods(both)
    assert (finding.change, finding.where) == (17, "Pod default/p")
    assert compare_pods(both, NOTICED, lambda _, __: None).differing == 0


def test_objects_that_lose_their_version() -> None:
    group = thing("scheduling.k8s.io/v1alpha2", "PodGroup", "g", "default", spec={})
    other = Document(node("n1"), "a.yaml#2")
    found = lost_objects([Document(group, "a.yaml#1"), other], NOTICED, is_back=False)
    assert found.others == [other]
    (finding,) = found.findings
    assert finding.effect is Effect.REFUSED
    assert finding.where == "PodGroup default/g (a.yaml#1)"
    assert "scheduling.k8s.io/v1beta1" in finding.text
    assert lost_objects([Document(group, "a")], NOTICED, is_back=True).findings == ()


def test_going_back_has_the_effects_the_other_way_round() -> None:
    driver = {"preventPodSchedulingIfMissing": True}
    found = compared(
        node("n1"),
        thing("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec=driver),
        *claimed_volume(),
        pod("p", **WITH_DATA),
        is_back=True,
    )
    assert named(found) == {3: [("p", Effect.PLACED)]}


def test_one_difference_does_not_lead_to_others() -> None:
    """The decision of the version in use is carried out in both clusters."""
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": selector}
    found = compared(
        node("n1", "1"),
        thing("v1", "Namespace", "prod", metadata={"labels": {"env": "prod"}}),
        pod("a", "0", namespace="prod", nodeName="n1", metadata={"labels": {"app": "a"}}),
        pod("p", affinity=anti_affinity(term), priority=5),
        pod("q"),
    )
    assert named(found) == {9: [("p", Effect.PLACED)]}


def test_what_no_change_explains_is_said() -> None:
    """The other side has a configuration without NodeResourcesFit, which no version brings."""
    config = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
"""
    after = side("v1.37")
    loaded = after.loaded._replace(config=decode_config(config, after.gates))
    documents = [Document(raw, "test") for raw in (node("n1"), pod("p", "4"))]
    both = pair_of(
        documents, side("v1.36"), after._replace(loaded=loaded), ManualClock(), is_back=False
    )
    (cause,) = compare_pods(both, NOTICED, lambda _, __: None).causes
    assert cause.change is None
    assert cause.text == "not explained by any change that is known"
    assert cause.examples[0].plugins == ("NodeResourcesFit",)
    assert cause.effects == {Effect.PLACED: 1}


def test_changes_that_objects_do_not_show_are_listed_with_the_reason() -> None:
    assert [each.number for each in NOTICED.changes if each.unseen] == [7, 13, 14, 16, 18]
    assert [each.number for each in NOTICED.changes] == list(range(1, 20))
