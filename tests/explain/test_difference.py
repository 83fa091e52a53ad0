"""Two attempts are compared by what they say of the two nodes."""

import pytest

from kubestow.config.decoding import decode_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.explain.difference import AttemptView, explain_difference, view_of
from kubestow.testing import ManualClock, make_node, make_pod, make_taint

FULL = make_pod("full", cpu="3", node="small")
NODES = [
    make_node("small", cpu="8", memory="8Gi"),
    make_node("large", cpu="16", memory="16Gi"),
    make_node("tainted", cpu="64", memory="64Gi", taints=[make_taint("t=v:NoSchedule")]),
]


def config(text: str) -> SchedulerConfig:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    return decode_config((head + text).encode())


DEFAULT = SchedulerConfig()
PACKING = config(
    "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: "
    "{type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]}]"
)
HEAVIER = config(
    "profiles: [{plugins: {score: {disabled: [{name: NodeResourcesFit}], "
    "enabled: [{name: NodeResourcesFit, weight: 5}]}}}]"
)
TOLERANT = config("profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}]}}}]")


def view(config: SchedulerConfig, *names: str, cpu: str = "1") -> AttemptView:
    cluster = StillCluster(config, None, ManualClock())  # type: ignore[arg-type]
    cluster.load([*NODES, FULL, make_pod("p", cpu=cpu, memory="1Gi")])
    pod = cluster.objects.pods.get("default", "p")
    assert pod is not None
    return view_of(cluster.decide(pod).freeze(), names)


def test_scores_that_made_another_node_the_best() -> None:
    new = view(PACKING, "large")
    old = view(DEFAULT, *new.nodes)
    why = explain_difference(old.node, old, new)
    assert (old.node, new.node) == ("large", "small")
    assert [each.plugin for each in why.scores] == ["NodeResourcesFit"]
    shift = why.scores[0]
    assert shift.recorded is not None
    assert shift.replayed is not None
    assert shift.recorded < 0 < shift.replayed
    assert why.summary.startswith('"small" has ')
    assert 'recorded: "large" had ' in why.summary
    assert "NodeResourcesFit" in why.summary
    assert why.rejected == ()


@pytest.mark.parametrize(
    ("old", "new", "cpu", "summary"),
    [
        pytest.param(
            DEFAULT,
            TOLERANT,
            "1",
            '"tainted" has ',
            id="another-node-that-was-rejected",
        ),
        pytest.param(
            DEFAULT,
            TOLERANT,
            "32",
            'recorded: TaintToleration rejected "tainted": node(s) had untolerated taint(s)',
            id="fits-now",
        ),
        pytest.param(
            TOLERANT,
            DEFAULT,
            "32",
            'TaintToleration rejects "tainted": node(s) had untolerated taint(s)',
            id="fits-no-longer",
        ),
    ],
)
def test_filters(old: SchedulerConfig, new: SchedulerConfig, cpu: str, summary: str) -> None:
    replayed = view(new, view(old, cpu=cpu).node, cpu=cpu)
    recorded = view(old, *replayed.nodes, cpu=cpu)
    why = explain_difference(recorded.node, recorded, replayed)
    assert why.summary.startswith(summary)
    assert [each.node for each in why.rejected] == ["tainted"]
    assert why.rejected[0].plugin == "TaintToleration"
    assert why.rejected[0].is_recorded is (old is DEFAULT)


def test_reasons_of_a_pod_that_fits_nowhere() -> None:
    replayed, recorded = view(TOLERANT, cpu="99"), view(DEFAULT, cpu="99")
    why = explain_difference("", recorded, replayed)
    assert {(each.plugin, each.recorded, each.replayed) for each in why.reasons} == {
        ("NodeResourcesFit", 2, 3),
        ("TaintToleration", 1, 0),
    }
    assert "NodeResourcesFit rejects 3 nodes, recorded 2: Insufficient cpu" in why.summary


def test_the_same_node_with_other_scores() -> None:
    replayed, recorded = view(HEAVIER), view(DEFAULT)
    assert replayed.node == recorded.node == "large"
    why = explain_difference("large", recorded, replayed)
    (shift,) = why.scores
    assert shift.recorded is not None
    assert shift.replayed == 5 * shift.recorded
    expected = f"NodeResourcesFit {shift.recorded} → {shift.replayed}"
    assert why.summary == f"the same node with other scores: {expected}"


def test_the_same_node_and_nothing_to_be_seen_of_it() -> None:
    replayed, recorded = view(PACKING, cpu="6"), view(DEFAULT, cpu="6")
    why = explain_difference("large", recorded, replayed)
    assert why.summary.startswith('"large" is chosen in both; ')


def test_without_the_recorded_attempt_the_other_is_explained() -> None:
    replayed = view(PACKING, "large")
    why = explain_difference("large", None, replayed)
    assert why.summary.startswith('"small" has ')
    assert "recorded" not in why.summary
    assert explain_difference("", None, replayed).summary == '"small" fits'
    rejecting = view(DEFAULT, "tainted")
    assert explain_difference("tainted", None, rejecting).summary.startswith("TaintToleration rej")
