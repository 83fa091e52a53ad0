"""The predicates of v1.9 by the worked examples of the specification (05 §17.2, 06 §6.6.1, 07
§7.3)."""

import pytest

from kubestow.api.meta import Condition, LabelSelector, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    Container,
    GcePersistentDisk,
    Iscsi,
    NodeSelectorTerm,
    Pod,
    Rbd,
    ResourceRequirements,
    Volume,
)
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, HOSTNAME_LABEL
from kubestow.api.workload import Service, ServiceSpec
from kubestow.editions.shared.disks import DiskKind, volume_limit
from kubestow.editions.v1_9.plugins import reasons
from kubestow.editions.v1_9.plugins.predicates.disk_conflict import NoDiskConflict
from kubestow.editions.v1_9.plugins.predicates.fits_resources import PodFitsResources
from kubestow.editions.v1_9.plugins.predicates.general import GeneralPredicates
from kubestow.editions.v1_9.plugins.predicates.inter_pod_affinity import MatchInterPodAffinity
from kubestow.editions.v1_9.plugins.predicates.labels_presence import LabelsPresence
from kubestow.editions.v1_9.plugins.predicates.node_conditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
)
from kubestow.editions.v1_9.plugins.predicates.node_selector import MatchNodeSelector
from kubestow.editions.v1_9.plugins.predicates.service_affinity import ServiceAffinity
from kubestow.editions.v1_9.plugins.predicates.taints import PodToleratesNodeTaints
from kubestow.editions.v1_9.plugins.predicates.volume_count import MaxVolumeCount
from kubestow.editions.v1_9.plugins.predicates.volume_zone import NoVolumeZoneConflict
from kubestow.testing.builders import (
    make_container,
    make_node,
    make_node_affinity,
    make_pod,
    make_resources,
    make_term,
)
from kubestow.testing.storage import make_claim, make_volume
from kubestow.testing.topology import make_affinity, make_pod_term
from tools.bench_v1_9 import BenchV19

GPU = "alpha.kubernetes.io/nvidia-gpu"


def conditions(**statuses: str) -> list[Condition]:
    return [Condition(type=kind, status=status) for kind, status in statuses.items()]


class TestResources:
    def test_all_shortages_are_reported_pods_first(self) -> None:
        running = [make_pod(f"r{index}", cpu="500m", node="n") for index in range(3)]
        bench = BenchV19([make_node(cpu="2", pods=3)], running)
        found = bench.verdicts(PodFitsResources(), make_pod(cpu="600m"))
        assert found == {"n": ["Insufficient pods", "Insufficient cpu"]}

    def test_overcommitted_cpu_fails_a_pod_that_asks_for_memory_only(self) -> None:
        bench = BenchV19([make_node(cpu="2")], [make_pod(cpu="2500m", node="n")])
        pod = make_pod(memory="1Gi")
        assert bench.verdicts(PodFitsResources(), pod) == {"n": ["Insufficient cpu"]}

    def test_a_pod_that_asks_for_nothing_fits_an_overcommitted_node(self) -> None:
        bench = BenchV19([make_node(cpu="2")], [make_pod(cpu="2500m", node="n")])
        assert bench.verdicts(PodFitsResources(), make_pod()) == {}

    def test_a_zero_of_an_extended_resource_is_a_request(self) -> None:
        bench = BenchV19([make_node(cpu="2")], [make_pod(cpu="2500m", node="n")])
        pod = make_pod(requests={"example.com/gpu": 0})
        assert bench.verdicts(PodFitsResources(), pod) == {"n": ["Insufficient cpu"]}

    def test_shortages_come_in_the_order_of_the_specification(self) -> None:
        names = ["example.com/b", "example.com/a", "ephemeral-storage", GPU, "memory", "cpu"]
        bench = BenchV19([make_node(cpu="1", memory="1Gi")])
        pod = make_pod(requests=dict.fromkeys(names, "2Gi"))
        assert bench.verdicts(PodFitsResources(), pod) == {
            "n": [
                f"Insufficient {name}"
                for name in (
                    "cpu",
                    "memory",
                    GPU,
                    "ephemeral-storage",
                    "example.com/a",
                    "example.com/b",
                )
            ]
        }

    def test_init_containers_count_for_the_newcomer_and_not_for_pods_that_run(self) -> None:
        starts_heavy = make_pod("r", node="n", init_containers=[make_container(cpu="8")])
        bench = BenchV19([make_node(cpu="8")], [starts_heavy])
        assert bench.verdicts(PodFitsResources(), make_pod(cpu="8")) == {}
        too_heavy = make_pod(cpu="1", init_containers=[make_container(cpu="9")])
        assert bench.verdicts(PodFitsResources(), too_heavy) == {"n": ["Insufficient cpu"]}

    def test_sidecars_and_overhead_are_not_known(self) -> None:
        bench = BenchV19([make_node(cpu="2")])
        sidecar = make_container(cpu="1500m", restart_policy="Always")
        pod = make_pod(cpu="1500m", init_containers=[sidecar], overhead={"cpu": "1"})
        assert bench.verdicts(PodFitsResources(), pod) == {}


class TestGeneral:
    def test_the_parts_that_fail_are_reported_in_order(self) -> None:
        bench = BenchV19([make_node("n1")], [make_pod("r", host_ports=[80], node="n1")])
        pod = make_pod(node="n2", host_ports=[80])
        found = bench.verdicts(GeneralPredicates(), pod)
        assert found == {"n1": ["HostName", "PodFitsHostPorts"]}

    def test_everything_can_fail_at_once(self) -> None:
        bench = BenchV19([make_node("n1", cpu="1")], [make_pod("r", host_ports=[80], node="n1")])
        pod = make_pod(cpu="2", node="n2", host_ports=[80], node_selector={"disk": "ssd"})
        found = bench.verdicts(GeneralPredicates(), pod)
        assert found == {
            "n1": ["Insufficient cpu", "HostName", "PodFitsHostPorts", "MatchNodeSelector"]
        }


class TestNodeSelector:
    @pytest.mark.parametrize(
        ("terms", "fits"),
        [
            pytest.param([make_term("zone In a")], True, id="matches"),
            pytest.param([make_term("zone In b")], False, id="does-not"),
            pytest.param([make_term("zone In b"), make_term("zone In a")], True, id="or"),
            pytest.param([make_term()], False, id="empty-term-matches-nothing"),
            pytest.param(
                [make_term("zone Near a"), make_term("zone In a")], False, id="mistake-ends-it"
            ),
            pytest.param(
                [make_term("zone In a"), make_term("zone Near a")], True, id="mistake-comes-late"
            ),
            pytest.param([make_term(fields=["metadata.name In n"])], False, id="no-fields-in-v1.9"),
        ],
    )
    def test_required_terms(self, terms: list[NodeSelectorTerm], fits: bool) -> None:
        bench = BenchV19([make_node(labels={"zone": "a"})])
        pod = make_pod(node_affinity=make_node_affinity(*terms))
        expected = {} if fits else {"n": ["MatchNodeSelector"]}
        assert bench.verdicts(MatchNodeSelector(), pod) == expected

    def test_an_illegal_node_selector_matches_every_node(self) -> None:
        bench = BenchV19([make_node()])
        assert bench.verdicts(MatchNodeSelector(), make_pod(node_selector={"a b": "c"})) == {}
        assert bench.verdicts(MatchNodeSelector(), make_pod(node_selector={"a": "-c"})) == {}


class TestConditions:
    def test_unknown_is_not_ready_and_cordoned_is_reported_last(self) -> None:
        bench = BenchV19([make_node(conditions=conditions(Ready="Unknown"), unschedulable=True)])
        found = bench.verdicts(CheckNodeCondition(), make_pod())
        assert found == {"n": ["NodeNotReady", "NodeUnschedulable"]}

    @pytest.mark.parametrize(
        ("kind", "status", "reason"),
        [
            ("Ready", "True", ""),
            ("Ready", "False", "NodeNotReady"),
            ("OutOfDisk", "False", ""),
            ("OutOfDisk", "Unknown", "NodeOutOfDisk"),
            ("NetworkUnavailable", "True", "NodeNetworkUnavailable"),
            ("MemoryPressure", "True", ""),
        ],
    )
    def test_one_condition(self, kind: str, status: str, reason: str) -> None:
        bench = BenchV19([make_node(conditions=conditions(**{kind: status}))])
        expected = {"n": [reason]} if reason else {}
        assert bench.verdicts(CheckNodeCondition(), make_pod()) == expected

    def test_memory_pressure_keeps_out_pods_that_ask_for_nothing(self) -> None:
        bench = BenchV19([make_node(conditions=conditions(MemoryPressure="True"))])
        limited = make_pod(
            containers=[
                Container(resources=ResourceRequirements(limits=make_resources({"memory": "1Gi"})))
            ]
        )
        predicate = CheckNodeMemoryPressure()
        assert bench.verdicts(predicate, limited) == {}
        assert bench.verdicts(predicate, make_pod()) == {"n": ["NodeUnderMemoryPressure"]}
        assert bench.verdicts(predicate, make_pod(cpu=0)) == {"n": ["NodeUnderMemoryPressure"]}

    def test_disk_pressure_rejects_every_pod(self) -> None:
        under, unknown = (
            make_node(status, conditions=conditions(DiskPressure=status))
            for status in ("True", "Unknown")
        )
        bench = BenchV19([under, unknown])
        found = bench.verdicts(CheckNodeDiskPressure(), make_pod(cpu="1"))
        assert found == {"True": ["NodeUnderDiskPressure"]}

    def test_taints(self) -> None:
        bench = BenchV19(
            [
                make_node("soft", taints=["a:PreferNoSchedule"]),
                make_node("hard", taints=["a:NoExecute"]),
            ]
        )
        found = bench.verdicts(PodToleratesNodeTaints(), make_pod())
        assert found == {"hard": ["PodToleratesNodeTaints"]}


class TestCustom:
    def test_labels_presence_requires_all_of_them(self) -> None:
        bench = BenchV19([make_node(labels={"zone": "a"})])
        present = LabelsPresence("x", labels=["zone", "rack"], presence=True)
        assert bench.verdicts(present, make_pod()) == {"n": ["CheckNodeLabelPresence"]}

    def test_labels_absence_requires_none_of_them(self) -> None:
        bench = BenchV19([make_node("n1", labels={"zone": "a"}), make_node("n2")])
        absent = LabelsPresence("x", labels=["zone", "rack"], presence=False)
        assert bench.verdicts(absent, make_pod()) == {"n1": ["CheckNodeLabelPresence"]}

    @pytest.mark.parametrize(
        ("selected", "refused"),
        [
            pytest.param({}, "r2", id="follows-the-first-pod"),
            pytest.param({"region": "r2"}, "r1", id="the-pods-own-selector-wins"),
        ],
    )
    def test_service_affinity(self, selected: dict[str, str], refused: str) -> None:
        service = Service(
            metadata=ObjectMeta(name="s", namespace="default"),
            spec=ServiceSpec(selector={"app": "web"}),
        )
        bench = BenchV19(
            [make_node(name, labels={"region": name}) for name in ("r1", "r2")],
            [make_pod("r", labels={"app": "web"}, node="r1")],
            [service],
        )
        pod = make_pod(labels={"app": "web"}, node_selector=selected)
        predicate = ServiceAffinity("x", labels=["region"])
        assert bench.verdicts(predicate, pod) == {refused: ["CheckServiceAffinity"]}

    def test_service_affinity_fails_if_the_only_peer_is_on_a_lost_node(self) -> None:
        service = Service(
            metadata=ObjectMeta(name="s", namespace="default"),
            spec=ServiceSpec(selector={"app": "web"}),
        )
        lost = make_pod("r", labels={"app": "web"}, node="gone")
        bench = BenchV19([make_node()], [lost], [service])
        found = bench.verdicts(
            ServiceAffinity("x", labels=["region"]), make_pod(labels={"app": "web"})
        )
        assert found == {"n": ['error: node "gone" not found']}


NODES = [
    make_node("n1", labels={HOSTNAME_LABEL: "n1", "zone": "z1"}),
    make_node("n2", labels={HOSTNAME_LABEL: "n2", "zone": "z1"}),
    make_node("n3", labels={HOSTNAME_LABEL: "n3", "zone": "z2"}),
    make_node("n4", labels={HOSTNAME_LABEL: "n4"}),
]
WEB, CACHE = {"app": "web"}, {"app": "cache"}
SAME_ZONE = make_affinity(near=[make_pod_term("zone", "app=web")])
OWN, ANTI, EXIST = (
    f"{part}RulesNotMatch"
    for part in ("PodAffinity", "PodAntiAffinity", "ExistingPodsAntiAffinity")
)


class TestInterPodAffinity:
    @pytest.mark.parametrize(
        ("running", "pod", "expected"),
        [
            pytest.param([], make_pod(labels=WEB, affinity=SAME_ZONE), {}, id="M1-first-of-a-kind"),
            pytest.param(
                [make_pod("r", labels=WEB, node="n4")],
                make_pod(labels=WEB, affinity=SAME_ZONE),
                {"n1": OWN, "n2": OWN, "n3": OWN, "n4": OWN},
                id="M2-one-exists-in-no-zone",
            ),
            pytest.param(
                [
                    make_pod("r1", labels=WEB, node="n1"),
                    make_pod("r2", labels={"tier": "fe"}, node="n1"),
                ],
                make_pod(
                    labels={"app": "web", "tier": "fe"},
                    affinity=make_affinity(
                        near=[
                            make_pod_term("zone", "app=web"),
                            make_pod_term(HOSTNAME_LABEL, "tier=fe"),
                        ]
                    ),
                ),
                {"n2": OWN, "n3": OWN, "n4": OWN},
                id="M3-different-pods-for-different-terms",
            ),
            pytest.param(
                [
                    make_pod("r1", labels=CACHE, node="n1"),
                    make_pod("r2", labels=WEB, node="n1"),
                    make_pod("r3", labels=WEB, node="n3"),
                ],
                make_pod(
                    affinity=make_affinity(
                        near=[make_pod_term("zone", "app=cache")],
                        apart=[make_pod_term("zone", "app=web")],
                    )
                ),
                {"n1": ANTI, "n2": ANTI, "n3": OWN, "n4": OWN},
                id="M4-affinity-is-judged-first",
            ),
            pytest.param(
                [
                    make_pod(
                        "r",
                        node="n1",
                        affinity=make_affinity(
                            apart=[
                                make_pod_term(HOSTNAME_LABEL, "app=web"),
                                make_pod_term("zone", "app=db"),
                            ]
                        ),
                    )
                ],
                make_pod(labels=WEB),
                {"n1": EXIST, "n2": EXIST},
                id="M5-the-last-terms-key-counts",
            ),
        ],
    )
    def test_worked_examples(self, running: list[Pod], pod: Pod, expected: dict[str, str]) -> None:
        found = BenchV19(NODES, running).verdicts(MatchInterPodAffinity(), pod)
        assert found == {
            node: ["MatchInterPodAffinity", reason] for node, reason in expected.items()
        }

    def test_a_matching_pod_on_a_lost_node_is_an_error(self) -> None:
        lost = make_pod("r", labels=WEB, node="gone")
        pod = make_pod("in", labels=WEB, affinity=SAME_ZONE)
        found = BenchV19(NODES[:1], [lost]).verdicts(MatchInterPodAffinity(), pod)
        assert found == {
            "n1": [
                "error: Cannot schedule pod default/in onto node n1, because of PodAffinityTerm "
                "{&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[],} "
                '[] zone}, err: node "gone" not found'
            ]
        }

    def test_anti_affinity_to_a_pod_on_a_lost_node_is_no_error(self) -> None:
        lost = make_pod("r", labels=WEB, node="gone")
        pod = make_pod(affinity=make_affinity(apart=[make_pod_term("zone", "app=web")]))
        found = BenchV19(NODES[:1], [lost]).verdicts(MatchInterPodAffinity(), pod)
        assert found == {"n1": ["MatchInterPodAffinity", ANTI]}

    def test_namespace_selectors_are_not_known(self) -> None:
        term = make_pod_term("zone", "app=web", namespace_selector=LabelSelector())
        pod = make_pod(affinity=make_affinity(apart=[term]))
        running = [
            make_pod("r1", labels=WEB, node="n1"),
            make_pod("r2", namespace="other", labels=WEB, node="n3"),
        ]
        found = BenchV19(NODES, running).verdicts(MatchInterPodAffinity(), pod)
        assert sorted(found) == ["n1", "n2"]


def ebs(*ids: str) -> list[Volume]:
    return [Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id=name)) for name in ids]


def gce(*names: str) -> list[Volume]:
    return [Volume(gce_persistent_disk=GcePersistentDisk(pd_name=name)) for name in names]


TOO_MANY = {"n": ["MaxVolumeCount"]}


class TestVolumeCount:
    @pytest.mark.parametrize(
        ("held", "wanted", "expected"),
        [
            pytest.param(38, ["new-1", "new-2"], TOO_MANY, id="1-two-new"),
            pytest.param(38, ["new-1"], {}, id="1-one-new"),
            pytest.param(39, ["v0"], {}, id="3-there-already"),
        ],
    )
    def test_disks_of_the_node_and_new_ones(
        self, held: int, wanted: list[str], expected: dict[str, list[str]]
    ) -> None:
        running = make_pod("r", node="n", volumes=ebs(*(f"v{index}" for index in range(held))))
        bench = BenchV19([make_node()], [running])
        predicate = MaxVolumeCount("x", kind="EBS", limit=39)
        assert bench.verdicts(predicate, make_pod(volumes=ebs(*wanted))) == expected

    @pytest.mark.parametrize(
        ("text", "limit"),
        [("0", 39), ("abc", 39), ("-1", 39), ("5", 5), (None, 39)],
    )
    def test_2_the_environment_sets_the_limit(self, text: str | None, limit: int) -> None:
        environment = {} if text is None else {"KUBE_MAX_PD_VOLS": text}
        assert volume_limit("EBS", environment) == limit
        assert volume_limit("GCEPD", {}) == volume_limit("AzureDisk", {}) == 16

    @pytest.mark.parametrize(
        "claims",
        [
            pytest.param([make_claim("c")], id="4-unbound"),
            pytest.param([], id="missing"),
            pytest.param([make_claim("c", volume="pv-gone")], id="volume-gone"),
        ],
    )
    @pytest.mark.parametrize("kind", ["EBS", "GCEPD", "AzureDisk"])
    def test_an_unknown_claim_counts_for_every_kind(
        self, kind: DiskKind, claims: list[PersistentVolumeClaim]
    ) -> None:
        volumes = [
            *ebs(*"abcd"),
            *gce(*"abcd"),
            *(Volume(azure_disk=AzureDisk(disk_name=name)) for name in "abcd"),
        ]
        bench = BenchV19([make_node()], [make_pod("r", node="n", volumes=volumes)], claims)
        predicate = MaxVolumeCount("x", kind=kind, limit=4)
        assert bench.verdicts(predicate, make_pod(pvcs=["c"])) == TOO_MANY

    def test_a_bound_claim_counts_as_its_disk(self) -> None:
        objects = [
            make_claim("c", volume="pv"),
            make_volume("pv", aws_elastic_block_store=AwsElasticBlockStore(volume_id="a")),
        ]
        running = make_pod("r", node="n", volumes=ebs("a", "b"))
        bench = BenchV19([make_node()], [running], objects)
        predicate = MaxVolumeCount("x", kind="EBS", limit=2)
        assert bench.verdicts(predicate, make_pod(pvcs=["c"])) == {}
        assert (
            bench.verdicts(MaxVolumeCount("x", kind="GCEPD", limit=1), make_pod(pvcs=["c"])) == {}
        )


class TestDiskConflict:
    @pytest.mark.parametrize(
        ("held", "wanted", "conflicts"),
        [
            pytest.param(gce("a"), gce("a"), True, id="gce-written"),
            pytest.param(gce("a"), gce("b"), False, id="gce-other"),
            pytest.param(
                [Volume(gce_persistent_disk=GcePersistentDisk(pd_name="a", read_only=True))],
                [Volume(gce_persistent_disk=GcePersistentDisk(pd_name="a", read_only=True))],
                False,
                id="gce-both-read",
            ),
            pytest.param(
                [
                    Volume(
                        aws_elastic_block_store=AwsElasticBlockStore(volume_id="a", read_only=True)
                    )
                ],
                [
                    Volume(
                        aws_elastic_block_store=AwsElasticBlockStore(volume_id="a", read_only=True)
                    )
                ],
                True,
                id="ebs-both-read",
            ),
            pytest.param(
                [Volume(iscsi=Iscsi(iqn="i", lun=0))],
                [Volume(iscsi=Iscsi(iqn="i", lun=1))],
                True,
                id="iscsi-by-name",
            ),
            pytest.param(
                [Volume(rbd=Rbd(monitors=("a", "b"), image="i", pool="p"))],
                [Volume(rbd=Rbd(monitors=("b", "c"), image="i", pool="p"))],
                True,
                id="rbd-shares-a-monitor",
            ),
            pytest.param(
                [Volume(rbd=Rbd(monitors=("a", "a"), image="i", pool="p"))],
                [Volume(rbd=Rbd(monitors=("b",), image="i", pool="p"))],
                False,
                id="rbd-shares-none",
            ),
        ],
    )
    def test_pairs(self, held: list[Volume], wanted: list[Volume], conflicts: bool) -> None:
        bench = BenchV19([make_node()], [make_pod("r", node="n", volumes=held)])
        expected = {"n": ["NoDiskConflict"]} if conflicts else {}
        assert bench.verdicts(NoDiskConflict(), make_pod(volumes=wanted)) == expected


def zoned(name: str, **labels: str) -> Node:
    keys = {"zone": BETA_ZONE_LABEL, "region": BETA_REGION_LABEL}
    return make_node(name, labels={keys[key]: value for key, value in labels.items()})


class TestVolumeZone:
    def test_5_a_missing_region_reads_as_empty(self) -> None:
        volume = make_volume("pv", labels={BETA_ZONE_LABEL: "a", BETA_REGION_LABEL: "r"})
        bench = BenchV19([zoned("n", zone="a")], (), [make_claim("c", volume="pv"), volume])
        found = bench.verdicts(NoVolumeZoneConflict(), make_pod(pvcs=["c"]))
        assert found == {"n": ["NoVolumeZoneConflict"]}

    def test_a_volume_may_be_in_several_zones(self) -> None:
        volume = make_volume("pv", labels={BETA_ZONE_LABEL: "a__b"})
        nodes = [zoned(name, zone=name) for name in "abc"]
        bench = BenchV19(nodes, (), [make_claim("c", volume="pv"), volume])
        found = bench.verdicts(NoVolumeZoneConflict(), make_pod(pvcs=["c"]))
        assert found == {"c": ["NoVolumeZoneConflict"]}

    @pytest.mark.parametrize(
        ("claim", "text"),
        [
            (None, 'persistentvolumeclaim "c" not found'),
            (make_claim("c"), 'PersistentVolumeClaim is not bound: "c"'),
            (make_claim("c", volume="pv"), 'persistentvolume "pv" not found'),
        ],
    )
    def test_a_bad_claim_is_an_error_on_nodes_with_a_zone_only(
        self, claim: PersistentVolumeClaim | None, text: str
    ) -> None:
        objects = [] if claim is None else [claim]
        bench = BenchV19([zoned("in", zone="a"), make_node("out")], (), objects)
        found = bench.verdicts(NoVolumeZoneConflict(), make_pod(pvcs=["c"]))
        assert found == {"in": [f"error: {text}"]}

    def test_a_conflict_hides_the_error_of_a_later_claim(self) -> None:
        volume = make_volume("pv", labels={BETA_ZONE_LABEL: "a"})
        nodes = [zoned("here", zone="a"), zoned("there", zone="b")]
        bench = BenchV19(nodes, (), [make_claim("c", volume="pv"), volume])
        found = bench.verdicts(NoVolumeZoneConflict(), make_pod(pvcs=["c", "missing"]))
        assert found == {
            "here": ['error: persistentvolumeclaim "missing" not found'],
            "there": ["NoVolumeZoneConflict"],
        }

    def test_a_label_that_cannot_be_read_is_ignored(self) -> None:
        volume = make_volume("pv", labels={BETA_ZONE_LABEL: "a__"})
        bench = BenchV19([zoned("n", zone="b")], (), [make_claim("c", volume="pv"), volume])
        assert bench.verdicts(NoVolumeZoneConflict(), make_pod(pvcs=["c"])) == {}


def test_beyond_the_limit_lists_of_reasons_share_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "_LISTS", [*reasons._LISTS])
    monkeypatch.setattr(reasons, "_CODES", dict(reasons._CODES))
    monkeypatch.setattr(reasons, "REASON_LISTS_MAX", len(reasons._LISTS) + 1)
    assert reasons.reasons_of(reasons.code_of("Insufficient a.com/x")) == ("Insufficient a.com/x",)
    other = reasons.code_of("Insufficient b.com/y")
    assert other > reasons.FITS
    assert reasons.reasons_of(other) == ("Insufficient resources",)
