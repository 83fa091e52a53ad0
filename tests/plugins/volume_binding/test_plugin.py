"""Spec 07 §2.3, §2.4: which nodes a pod's volumes allow, and what it does about them."""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
import pytest

from kubestow.api.meta import ApiObject, LabelSelector, LabelSelectorRequirement
from kubestow.api.pod import AwsElasticBlockStore, AzureDisk, Pod, Volume
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.attempt_timer import NoTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.testing import (
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    make_term,
    run_filter,
    run_pre_filter,
)
from kubestow.testing.storage import (
    make_capacity,
    make_claim,
    make_csi_driver,
    make_csi_node,
    make_ephemeral_volume,
    make_storage_class,
    make_volume,
)
from kubestow.testing.topology import make_selector

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

STATIC = make_storage_class(provisioner="kubernetes.io/no-provisioner")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class World:
    """A cluster of a few nodes and the plugin that looks at it."""

    def __init__(
        self,
        *objects: ApiObject,
        nodes: Mapping[str, dict[str, str]] | None = None,
        args: VolumeBindingArgs | None = None,
        gates: dict[str, bool] | None = None,
    ) -> None:
        self.stores = ClusterObjects()
        self.stores.put(*objects)
        self.snapshot: Snapshot = make_snapshot(
            make_node(name, labels=labels) for name, labels in (nodes or {"n1": {}}).items()
        )
        handle = make_handle(self.snapshot, objects=self.stores, feature_gates=FeatureGates(gates))
        self.plugin = VolumeBinding(args, handle)
        self.state = CycleState()

    def filter(self, pod: Pod) -> Mapping[str, Status]:
        self.state = CycleState()
        answers = run_filter(self.plugin, pod, self.snapshot, state=self.state)
        if self.state.get("VolumeBinding") is not None:
            self._check_one_by_one(pod, answers)
        return answers

    def reasons(self, pod: Pod) -> dict[str, tuple[str, ...]]:
        answers = self.filter(pod)
        assert all(
            status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in answers.values()
        )
        return {name: status.reasons for name, status in answers.items()}

    def reserve(self, pod: Pod, node: str = "n1") -> tuple[dict[str, str], dict[str, str]]:
        """What is taken after the pod was given the node: volume → claim, claim → node."""
        assert self.filter(pod).get(node) is None
        assert self.plugin.reserve(self.state, PodInfo(pod), node) is None
        return self.reserved()

    def reserved(self) -> tuple[dict[str, str], dict[str, str]]:
        volumes: dict[str, str] = {}
        for volume in self.plugin.assumed_volumes():
            assert volume.spec.claim_ref is not None
            volumes[volume.metadata.name] = volume.spec.claim_ref.name
        claims = self.plugin.assumed_claims()
        return volumes, {
            claim.metadata.name: claim.metadata.annotations[SELECTED_NODE] for claim in claims
        }

    def _check_one_by_one(self, pod: Pod, answers: Mapping[str, Status]) -> None:
        """Any view of the nodes gives the same answers."""
        pod_info = PodInfo(pod)
        views = [nodes_of(self.snapshot, np.array([row])) for row in range(len(self.snapshot))]
        views += [SimulatedNode(self.snapshot, row) for row in range(len(self.snapshot))]
        for view in views:
            codes = self.plugin.filter(self.state, pod_info, view)
            code = 0 if codes is None else int(codes[0])
            status = self.plugin.filter_status(self.state, code) if code else None
            assert status == answers.get(view.names[0])


# --- PreFilter --------------------------------------------------------------------------------

OWNER = make_pod("p", volumes=[make_ephemeral_volume("v")])


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        pytest.param(
            make_pod(pvcs=["x"]), [], 'persistentvolumeclaim "x" not found', id="A2-missing"
        ),
        pytest.param(
            OWNER,
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',
            id="A2-ephemeral-missing",
        ),
        pytest.param(
            make_pod(pvcs=["x"]),
            [make_claim("x", volume="pv", phase="Lost")],
            'persistentvolumeclaim "x" bound to non-existent persistentvolume "pv"',
            id="A3-lost",
        ),
        pytest.param(
            make_pod(pvcs=["x"]),
            [make_claim("x", deleted=datetime(2026, 1, 1, tzinfo=UTC))],
            'persistentvolumeclaim "x" is being deleted',
            id="A4-deleted",
        ),
        pytest.param(
            OWNER,
            [make_claim("p-v")],
            "PVC default/p-v was not created for pod default/p (pod is not owner)",
            id="A5-not-owned",
        ),
        pytest.param(
            make_pod(pvcs=["c"]),
            [make_claim("c", class_name="now"), make_storage_class("now", mode="Immediate")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="B-immediate",
        ),
        pytest.param(
            make_pod(pvcs=["c"]),
            [make_claim("c", class_name="")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="B-no-class",
        ),
        pytest.param(
            make_pod(pvcs=["c"]),
            [make_claim("c", class_name="gone")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="B-missing-class",
        ),
        pytest.param(
            make_pod(pvcs=["c"]),
            [make_claim("c", volume="pv", is_bound=False), make_storage_class()],
            "pod has unbound immediate PersistentVolumeClaims",
            id="9-volume-without-completion",
        ),
    ],
)
def test_bad_claims_reject_the_pod(pod: Pod, objects: list[ApiObject], reason: str) -> None:
    world = World(*objects)
    answer = run_pre_filter(world.plugin, pod, world.snapshot)
    assert answer == Status.unresolvable(reason)


def test_the_first_bad_claim_counts() -> None:
    world = World(make_claim("lost", phase="Lost", volume="v"))
    answer = run_pre_filter(world.plugin, make_pod(pvcs=["lost", "gone"]), world.snapshot)
    assert isinstance(answer, Status)
    assert 'persistentvolumeclaim "lost"' in answer.reasons[0]


def test_pods_without_claims_skip_and_have_nothing_to_bind() -> None:
    world, state = World(), CycleState()
    pod = PodInfo(make_pod(volumes=[Volume(name="v")]))
    assert world.plugin.pre_filter(state, pod, nodes_of(world.snapshot)) == Status.skip()
    assert world.plugin.reserve(state, pod, "n1") is None
    assert world.plugin.pre_bind_pre_flight(state, pod, "n1").status == Status.skip()


def test_a_class_without_mode_fails() -> None:
    world = World(make_claim("c"), make_storage_class(mode=None))
    with pytest.raises(PluginError, match='VolumeBindingMode not set for StorageClass "fast"'):
        run_pre_filter(world.plugin, make_pod(pvcs=["c"]), world.snapshot)


# --- Worked examples --------------------------------------------------------------------------


def test_1_the_smallest_volume_that_suits_is_taken() -> None:
    world = World(
        STATIC,
        make_claim("c", size="4Gi"),
        make_volume("a", size="10Gi"),
        make_volume("b", size="5Gi"),
        make_volume("c", size="4Gi", claim="default/other"),
    )
    assert world.reserve(make_pod(pvcs=["c"])) == ({"b": "c"}, {})


def test_2_the_smallest_claim_is_served_first() -> None:
    world = World(
        STATIC,
        make_claim("c1", size="8Gi"),
        make_claim("c2", size="3Gi"),
        make_volume("v5", size="5Gi"),
        make_volume("v10", size="10Gi"),
    )
    taken, _ = world.reserve(make_pod(pvcs=["c1", "c2"]))
    assert list(taken.items()) == [("v5", "c2"), ("v10", "c1")]


def test_3_nothing_is_taken_back() -> None:
    world = World(
        STATIC,
        make_claim("c1", size="3Gi"),
        make_claim("c2", size="4Gi", selector=make_selector("only=p4")),
        make_volume("p4", size="4Gi", labels={"only": "p4"}),
        make_volume("p10", size="10Gi"),
    )
    assert world.reasons(make_pod(pvcs=["c1", "c2"])) == {"n1": (NOTHING_TO_BIND,)}


def test_4_a_volume_prebound_to_the_claim_is_the_only_one() -> None:
    objects = [
        make_claim("c1", size="5Gi"),
        make_volume("x", size="20Gi", claim="default/c1", terms=[make_term("zone In a")]),
        make_volume("y", size="5Gi"),
    ]
    nodes = {"n1": {"zone": "b"}, "n2": {"zone": "a"}}
    pod = make_pod(pvcs=["c1"])
    world = World(STATIC, *objects, nodes=nodes)
    assert world.reasons(pod) == {"n1": (NOTHING_TO_BIND,)}
    assert world.reserve(pod, "n2") == ({"x": "c1"}, {})
    world = World(make_storage_class(), *objects, nodes=nodes)
    assert world.reserve(pod, "n1") == ({}, {"c1": "n1"})


def test_5_a_claim_must_fit_into_what_is_left() -> None:
    zone_a = make_selector("zone=a")
    world = World(
        make_storage_class(),
        make_csi_driver(capacity=True),
        make_capacity(topology=zone_a, size="100Gi", maximum="10Gi"),
        make_claim("big", size="20Gi"),
        make_claim("c6", size="6Gi"),
        make_claim("d6", size="6Gi"),
        nodes={"n1": {"zone": "a"}, "n2": {"zone": "b"}},
    )
    assert world.reasons(make_pod(pvcs=["big"])) == {"n1": (NO_SPACE,), "n2": (NO_SPACE,)}
    # Claims are not added up.
    assert world.reasons(make_pod(pvcs=["c6", "d6"])) == {"n2": (NO_SPACE,)}


def test_6_a_claim_with_a_selected_node_goes_nowhere_else() -> None:
    world = World(
        make_storage_class(),
        make_claim("c", selected_node="n2"),
        make_volume("free"),
        nodes={"n1": {}, "n2": {}},
    )
    pod = make_pod(pvcs=["c"])
    assert world.reasons(pod) == {"n1": (NOTHING_TO_BIND,)}
    assert world.reserve(pod, "n2") == ({}, {"c": "n2"})


def test_6_claims_with_two_selected_nodes_go_nowhere() -> None:
    world = World(
        make_storage_class(),
        make_claim("c", selected_node="n1"),
        make_claim("d", selected_node="n2"),
        nodes={"n1": {}, "n2": {}},
    )
    rejected = world.reasons(make_pod(pvcs=["c", "d"]))
    assert rejected == dict.fromkeys(["n1", "n2"], (NOTHING_TO_BIND,))


def test_7_reasons_come_in_a_fixed_order() -> None:
    world = World(STATIC, make_claim("a", volume="gone"), make_claim("b"))
    rejected = world.filter(make_pod(pvcs=["b", "a"]))
    assert rejected["n1"].message == f"{NOTHING_TO_BIND}, {VOLUME_MISSING}"


def test_8_scores_follow_the_shape_behind_the_gate() -> None:
    gate = {"StorageCapacityScoring": True}
    everywhere = LabelSelector()
    world = World(
        *(make_storage_class(name) for name in "abc"),
        make_csi_driver(capacity=True),
        make_capacity("ca", class_name="a", topology=everywhere, size="100Gi"),
        make_capacity("cb", class_name="b", topology=everywhere, size="60Gi"),
        make_claim("a", class_name="a", size="10Gi"),
        make_claim("b", class_name="b", size="50Gi"),
        make_claim("a20", class_name="a", size="20Gi"),
        make_claim("a30", class_name="a", size="30Gi"),
        make_claim("static", class_name="c", size="5Gi"),
        make_volume("pv", class_name="c", size="20Gi"),
        make_claim("bound", volume="pw"),
        make_volume("pw"),
        gates=gate,
    )

    def score(*claims: str) -> int:
        pod = PodInfo(make_pod(pvcs=claims))
        assert world.filter(pod.pod) == {}
        assert world.plugin.pre_score(world.state, pod, nodes_of(world.snapshot)) is None
        scores = world.plugin.score(world.state, pod, nodes_of(world.snapshot))
        return scores if isinstance(scores, int) else int(scores[0])

    assert score("a", "b") == 54
    assert score("a20", "a30") == 50
    # With a volume found, what is provisioned does not count.
    assert score("a", "static") == 75
    assert score("bound") == 0


def test_scoring_lets_others_go_on_between_two_nodes() -> None:
    """A pod may have a thousand claims, each of which is looked up on each node."""
    world = World(
        make_storage_class("a"),
        make_claim("c", class_name="a"),
        gates={"StorageCapacityScoring": True},
    )
    pod = PodInfo(make_pod(pvcs=["c"]))
    assert world.filter(pod.pod) == {}
    pauses: list[None] = []

    class CountingTimer(NoTimer):
        def pause(self) -> None:
            pauses.append(None)

    world.state.timer = CountingTimer()
    world.plugin.score(world.state, pod, nodes_of(world.snapshot))
    assert len(pauses) == len(world.snapshot)


def test_scoring_is_skipped_without_the_gate() -> None:
    world = World(make_claim("c", volume="pv"), make_volume("pv"))
    pod = PodInfo(make_pod(pvcs=["c"]))
    assert world.plugin.pre_score(CycleState(), pod, nodes_of(world.snapshot)) == Status.skip()


# --- Bound claims -----------------------------------------------------------------------------


def test_a_bound_volume_must_be_in_reach() -> None:
    world = World(
        make_claim("c", volume="pv"),
        make_claim("d", volume="anywhere"),
        make_volume("pv", terms=[make_term("zone In a"), make_term("zone In b", "x Exists")]),
        make_volume("anywhere"),
        nodes={"n1": {"zone": "a"}, "n2": {"zone": "b"}, "n3": {}, "n4": {"zone": "b", "x": ""}},
    )
    rejected = world.reasons(make_pod(pvcs=["c", "d"]))
    assert rejected == {"n2": (AFFINITY,), "n3": (AFFINITY,)}


@pytest.mark.parametrize(
    ("terms", "passes"),
    [
        pytest.param([], False, id="no-terms"),
        pytest.param([make_term()], False, id="empty-term"),
        pytest.param([make_term("zone Near a")], False, id="bad-term"),
        pytest.param([make_term("zone Near a"), make_term("zone Exists")], True, id="one-good"),
        pytest.param([make_term(fields=["metadata.name In other"])], True, id="fields-not-read"),
    ],
)
def test_odd_affinities(terms: list[object], passes: bool) -> None:
    world = World(
        make_claim("c", volume="pv"),
        make_volume("pv", terms=terms),  # pyright: ignore[reportArgumentType] -- terms they are
        nodes={"n1": {"zone": "a"}},
    )
    assert world.reasons(make_pod(pvcs=["c"])) == ({} if passes else {"n1": (AFFINITY,)})


def test_the_first_bound_claim_that_fails_ends_the_check() -> None:
    world = World(
        make_claim("far", volume="pv"),
        make_claim("lost", volume="gone"),
        make_volume("pv", terms=[make_term("zone In a")]),
        nodes={"n1": {"zone": "a"}, "n2": {}},
    )
    assert world.reasons(make_pod(pvcs=["far", "lost"])) == {
        "n1": (VOLUME_MISSING,),
        "n2": (AFFINITY,),
    }


def test_a_failed_bound_claim_does_not_stop_the_others() -> None:
    world = World(
        STATIC,
        make_claim("far", volume="pv"),
        make_claim("new"),
        make_volume("pv", terms=[make_term("zone In a")]),
    )
    rejected = world.reasons(make_pod(pvcs=["far", "new"]))
    assert rejected == {"n1": (AFFINITY, NOTHING_TO_BIND)}


def test_migrated_nodes_are_asked_for_the_drivers_label() -> None:
    ebs = AwsElasticBlockStore(volume_id="vol-1")
    world = World(
        make_claim("c", volume="pv"),
        make_volume(
            "pv",
            terms=[make_term("topology.kubernetes.io/zone In a")],
            aws_elastic_block_store=ebs,
        ),
        make_csi_node("new", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs"),
        make_csi_node("new-far", migrated="kubernetes.io/aws-ebs"),
        make_csi_node("other", migrated="kubernetes.io/gce-pd"),
        nodes={
            "new": {"topology.ebs.csi.aws.com/zone": "a"},
            "new-far": {"topology.kubernetes.io/zone": "a"},
            "other": {"topology.kubernetes.io/zone": "a"},
            "old": {"topology.kubernetes.io/zone": "a"},
            "old-far": {"topology.ebs.csi.aws.com/zone": "a"},
        },
    )
    pod = make_pod(pvcs=["c"])
    assert world.reasons(pod) == {"new-far": (AFFINITY,), "old-far": (AFFINITY,)}
    world.stores.put(make_csi_node("new-far"))
    assert world.reasons(pod) == {"old-far": (AFFINITY,)}


def test_a_volume_that_cannot_be_translated_fails_on_migrated_nodes() -> None:
    world = World(
        make_claim("c", volume="pv"),
        make_volume("pv", azure_disk=AzureDisk(disk_uri="u", kind="Shared")),
        make_csi_node("n2", migrated="kubernetes.io/azure-disk"),
        nodes={"n1": {}, "n2": {}},
    )
    answers = world.filter(make_pod(pvcs=["c"]))
    assert list(answers) == ["n2"]
    assert answers["n2"].code is Code.ERROR
    assert answers["n2"].message == (
        "could not translate pv: kind(Shared) is not supported in csi migration"
    )


# --- Matching ---------------------------------------------------------------------------------

NOT_SUITABLE = [
    pytest.param(make_volume(size="1Mi"), id="too-small"),
    pytest.param(make_volume(class_name="other"), id="other-class"),
    pytest.param(make_volume(volume_mode="Block"), id="other-mode"),
    pytest.param(make_volume(attributes_class="gold"), id="other-attributes"),
    pytest.param(make_volume(phase="Released"), id="not-available"),
    pytest.param(make_volume(deleted=datetime(2026, 1, 1, tzinfo=UTC)), id="being-deleted"),
    pytest.param(make_volume(modes=["ReadOnlyMany"]), id="other-access"),
    pytest.param(make_volume(claim="default/other"), id="prebound-to-another"),
    pytest.param(make_volume(claim=make_claim("c", namespace="x")), id="other-namespace"),
    pytest.param(make_volume(terms=[make_term("zone In z")]), id="out-of-reach"),
    pytest.param(make_volume(labels={"kind": "slow"}), id="other-labels"),
]


@pytest.mark.parametrize("volume", NOT_SUITABLE)
def test_unsuitable_volumes_are_passed_over(volume: ApiObject) -> None:
    claim = make_claim("c", selector=make_selector("kind NotIn slow"))
    world = World(STATIC, claim, volume)
    assert world.reasons(make_pod(pvcs=["c"])) == {"n1": (NOTHING_TO_BIND,)}


def test_a_volume_prebound_to_the_claim_need_not_be_available() -> None:
    claim = make_claim("c", selector=make_selector("kind=fast"), modes=["ReadWriteMany"])
    world = World(STATIC, claim, make_volume("pv", claim=claim, phase="Bound", modes=[]))
    # It names the claim already, so that nothing has to be written.
    assert world.reserve(make_pod(pvcs=["c"])) == ({}, {})
    assert not world.plugin.pre_bind_pre_flight(world.state, PodInfo(make_pod()), "n1").status


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(make_volume(claim="default/c", size="1Mi"), id="too-small"),
        pytest.param(make_volume(claim="default/c", volume_mode="Block"), id="other-mode"),
        pytest.param(
            make_volume(claim="default/c", deleted=datetime(2026, 1, 1, tzinfo=UTC)), id="deleted"
        ),
    ],
)
def test_an_unsuitable_volume_prebound_to_the_claim_does_not_count(volume: ApiObject) -> None:
    world = World(STATIC, make_claim("c"), volume, make_volume("other"))
    assert world.reserve(make_pod(pvcs=["c"])) == ({"other": "c"}, {})


def test_among_equal_volumes_the_first_name_wins() -> None:
    world = World(STATIC, make_claim("c"), make_volume("b"), make_volume("a"), make_volume("d"))
    assert world.reserve(make_pod(pvcs=["c"])) == ({"a": "c"}, {})


def test_an_unset_mode_is_filesystem() -> None:
    world = World(STATIC, make_claim("c", volume_mode="Filesystem"), make_volume("a"))
    assert world.reserve(make_pod(pvcs=["c"])) == ({"a": "c"}, {})


def test_a_claim_named_by_two_volumes_needs_two() -> None:
    objects = [STATIC, make_claim("c"), make_volume("a")]
    pod = make_pod(pvcs=["c", "c"])
    assert World(*objects).reasons(pod) == {"n1": (NOTHING_TO_BIND,)}
    assert World(*objects, make_volume("b")).reserve(pod) == ({"a": "c", "b": "c"}, {})


def test_a_selector_that_cannot_be_read_fails_where_it_matters() -> None:
    bad = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="k", operator="Near", values=("v",)),)
    )
    claims = [make_claim("c", selector=bad), make_claim("d", selected_node="n2")]
    world = World(make_storage_class(), *claims, nodes={"n1": {}, "n2": {}})
    answers = world.filter(make_pod(pvcs=["c", "d"]))
    assert answers["n1"] == Status.unresolvable(NOTHING_TO_BIND)
    assert answers["n2"].code is Code.ERROR
    assert answers["n2"].message == (
        "error creating internal label selector for claim: default/c: "
        '"Near" is not a valid label selector operator'
    )


# --- Provisioning -----------------------------------------------------------------------------


def test_classes_provision_where_they_are_allowed_to() -> None:
    allowed = [{"zone": ["a"], "disk": ["ssd", "nvme"]}, {"rack": ["7"]}, {}]
    world = World(
        make_storage_class(topologies=allowed),
        make_claim("c"),
        nodes={
            "n1": {"zone": "a", "disk": "nvme"},
            "n2": {"zone": "a"},
            "n3": {"rack": "7"},
            "n4": {},
        },
    )
    rejected = world.reasons(make_pod(pvcs=["c"]))
    assert rejected == dict.fromkeys(["n2", "n4"], (NOTHING_TO_BIND,))


def test_an_illegal_topology_matches_nothing() -> None:
    for illegal in ({"zone": []}, {"not a key": ["a"]}, {"zone": ["not a value"]}):
        world = World(
            make_storage_class(topologies=[illegal]),
            make_claim("c"),
            nodes={"n1": {"zone": "a"}},
        )
        assert world.reasons(make_pod(pvcs=["c"])) == {"n1": (NOTHING_TO_BIND,)}


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_some_classes_never_provision(provisioner: str) -> None:
    world = World(make_storage_class(provisioner=provisioner), make_claim("c"))
    assert world.reasons(make_pod(pvcs=["c"])) == {"n1": (NOTHING_TO_BIND,)}


def test_provisioning_overrules_what_was_not_found() -> None:
    world = World(make_storage_class(), make_claim("small"), make_claim("big", size="99Gi"))
    world.stores.put(make_volume("pv"))
    assert world.reserve(make_pod(pvcs=["small", "big"])) == ({"pv": "small"}, {"big": "n1"})


@pytest.mark.parametrize(
    ("objects", "passes"),
    [
        pytest.param([], True, id="no-driver-object"),
        pytest.param([make_csi_driver()], True, id="driver-does-not-report"),
        pytest.param([make_csi_driver(capacity=False)], True, id="driver-says-no"),
        pytest.param([make_csi_driver(capacity=True)], False, id="nothing-reported"),
        pytest.param(
            [
                make_csi_driver(capacity=True),
                make_capacity(topology=LabelSelector(), size="4Gi", maximum="9Gi"),
            ],
            True,
            id="maximum-before-capacity",
        ),
        pytest.param(
            [
                make_csi_driver(capacity=True),
                make_capacity(topology=LabelSelector(), size="9Gi", maximum="4Gi"),
            ],
            False,
            id="maximum-too-small",
        ),
        pytest.param(
            [make_csi_driver(capacity=True), make_capacity(topology=LabelSelector(), size="5Gi")],
            True,
            id="exactly-enough",
        ),
        pytest.param(
            [make_csi_driver(capacity=True), make_capacity(size="9Gi")], False, id="no-topology"
        ),
        pytest.param(
            [make_csi_driver(capacity=True), make_capacity(topology=LabelSelector())],
            False,
            id="no-size",
        ),
        pytest.param(
            [
                make_csi_driver(capacity=True),
                make_capacity(topology=make_selector("k Near v"), size="9Gi"),
            ],
            False,
            id="bad-topology",
        ),
        pytest.param(
            [
                make_csi_driver(capacity=True),
                make_capacity(topology=LabelSelector(), class_name="other", size="9Gi"),
            ],
            False,
            id="other-class",
        ),
        pytest.param(
            [
                make_csi_driver(capacity=True),
                make_capacity("a", topology=LabelSelector(), size="1Gi"),
                make_capacity("b", topology=LabelSelector(), size="5Gi"),
            ],
            True,
            id="one-of-two",
        ),
    ],
)
def test_capacity_is_checked_where_it_is_reported(objects: list[ApiObject], passes: bool) -> None:
    world = World(make_storage_class(), make_claim("c", size="5Gi"), *objects)
    assert world.reasons(make_pod(pvcs=["c"])) == ({} if passes else {"n1": (NO_SPACE,)})


def test_a_claim_without_size_fits_everywhere() -> None:
    world = World(make_storage_class(), make_csi_driver(capacity=True), make_claim(size=None))
    assert world.reasons(make_pod(pvcs=["c"])) == {}


def test_capacity_follows_what_is_reported() -> None:
    def report(size: str) -> ApiObject:
        return make_capacity(topology=make_selector("zone=a"), size=size)

    world = World(
        make_storage_class(),
        make_csi_driver(capacity=True),
        make_claim("c", size="5Gi"),
        report("4Gi"),
        nodes={"n1": {"zone": "a"}},
    )
    pod = make_pod(pvcs=["c"])
    assert world.reasons(pod) == {"n1": (NO_SPACE,)}
    world.stores.put(report("6Gi"))
    assert world.reasons(pod) == {}
    world.stores.csi_storage_capacities.remove("drivers", "cap")
    assert world.reasons(pod) == {"n1": (NO_SPACE,)}


# --- Reserve ----------------------------------------------------------------------------------


def test_a_reserved_volume_is_taken_until_it_is_given_back() -> None:
    world = World(STATIC, make_claim("c"), make_claim("d"), make_volume("pv"))
    first, second = make_pod("a", pvcs=["c"]), make_pod("b", pvcs=["d"])
    world.reserve(first)
    state = world.state
    assert world.reasons(second) == {"n1": (NOTHING_TO_BIND,)}
    world.plugin.unreserve(state, PodInfo(first), "n1")
    world.plugin.unreserve(state, PodInfo(first), "n1")
    assert world.reserve(second) == ({"pv": "d"}, {})


def test_the_reserved_volume_refers_to_its_claim() -> None:
    claim = make_claim("c", version=7)
    world = World(STATIC, claim, make_volume("pv", version=3))
    world.reserve(make_pod(pvcs=["c"]))
    (volume,) = world.plugin.assumed_volumes()
    ref = volume.spec.claim_ref
    assert ref is not None
    assert (ref.kind, ref.api_version) == ("PersistentVolumeClaim", "v1")
    assert (ref.namespace, ref.name) == ("default", "c")
    assert (ref.uid, ref.resource_version) == (claim.metadata.uid, "7")
    assert volume.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert volume.metadata.resource_version == "3"


def test_a_volume_prebound_to_the_claim_gets_only_the_reference() -> None:
    world = World(STATIC, make_claim("c"), make_volume("pv", claim="default/c"))
    world.reserve(make_pod(pvcs=["c"]))
    (volume,) = world.plugin.assumed_volumes()
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == "uid-default-c"
    assert volume.metadata.annotations == {}


def test_a_selected_node_is_visible_to_the_next_pod() -> None:
    world = World(make_storage_class(), make_claim("c"), nodes={"n1": {}, "n2": {}})
    world.reserve(make_pod("a", pvcs=["c"]), "n2")
    sharer = make_pod("b", pvcs=["c"])
    assert world.reasons(sharer) == {"n1": (NOTHING_TO_BIND,)}
    assert world.reserve(sharer, "n2") == ({}, {"c": "n2"})


def test_a_version_that_moved_on_fails_and_gives_everything_back() -> None:
    world = World(STATIC, make_claim("c"), make_claim("d"), make_volume("a"), make_volume("b"))
    pod = make_pod(pvcs=["c", "d"])
    assert world.filter(pod) == {}
    world.stores.put(make_volume("b", version=2))
    answer = world.plugin.reserve(world.state, PodInfo(pod), "n1")
    assert answer is not None
    assert answer.code is Code.ERROR
    assert answer.message == '"b" is out of sync (stored: 2, assume: 1)'
    assert world.reserved() == ({}, {})


def test_nothing_is_reserved_when_all_claims_are_bound() -> None:
    world = World(make_claim("c", volume="pv"), make_volume("pv"))
    pod = make_pod(pvcs=["c"])
    assert world.reserve(pod) == ({}, {})
    flight = world.plugin.pre_bind_pre_flight(world.state, PodInfo(pod), "n1")
    assert flight.status == Status.skip()
    assert flight.allow_parallel


def test_claims_bound_meanwhile_are_left_alone() -> None:
    world = World(STATIC, make_claim("c"), make_volume("pv"))
    pod = make_pod(pvcs=["c"])
    assert world.filter(pod) == {}
    world.stores.put(make_claim("c", volume="other", version=2))
    assert world.plugin.reserve(world.state, PodInfo(pod), "n1") is None
    assert world.reserved() == ({}, {})


def test_a_node_that_was_not_asked_about_has_nothing_to_bind() -> None:
    world = World(STATIC, make_claim("c"), nodes={"n1": {}})
    pod = make_pod(pvcs=["c"])
    assert world.reasons(pod) == {"n1": (NOTHING_TO_BIND,)}
    assert world.plugin.reserve(world.state, PodInfo(pod), "n1") is None
    flight = world.plugin.pre_bind_pre_flight(world.state, PodInfo(pod), "n1")
    assert flight.status == Status.skip()


def test_another_node_than_the_reserved_one_cannot_be_bound() -> None:
    world = World(STATIC, make_claim("c"), make_volume("pv"))
    pod = make_pod(pvcs=["c"])
    world.reserve(pod)
    flight = world.plugin.pre_bind_pre_flight(world.state, PodInfo(pod), "n9")
    assert flight.status is not None
    assert flight.status.message == 'no pod volume found for node "n9"'


# --- Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "gate", "message"),
    [
        pytest.param(
            VolumeBindingArgs(bind_timeout_seconds=-1),
            False,
            "invalid BindTimeoutSeconds, should not be a negative value",
            id="negative-timeout",
        ),
        pytest.param(
            VolumeBindingArgs(shape=(UtilizationShapePoint(utilization=0, score=0),)),
            False,
            "unexpected field `shape`, remove it or turn on the feature gate "
            "StorageCapacityScoring",
            id="shape-without-gate",
        ),
        pytest.param(
            VolumeBindingArgs(
                shape=(
                    UtilizationShapePoint(utilization=5, score=0),
                    UtilizationShapePoint(utilization=5, score=1),
                )
            ),
            True,
            "values must be sorted in increasing order",
            id="not-increasing",
        ),
        pytest.param(
            VolumeBindingArgs(shape=(UtilizationShapePoint(utilization=101, score=0),)),
            True,
            "not in valid range [0, 100]",
            id="utilization",
        ),
        pytest.param(
            VolumeBindingArgs(shape=(UtilizationShapePoint(utilization=0, score=11),)),
            True,
            "not in valid range [0, 10]",
            id="score",
        ),
    ],
)
def test_bad_arguments_are_refused(args: VolumeBindingArgs, gate: bool, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        World(args=args, gates={"StorageCapacityScoring": gate})
    assert str(raised.value) == message
