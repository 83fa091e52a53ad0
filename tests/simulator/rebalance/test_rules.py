"""Which pods stay, and why."""

from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import Raw, documents, node, owner, pod

from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.input.changes import parse_selector
from kubestow.simulator.rebalance import RebalanceOptions
from kubestow.simulator.rebalance import rules as texts
from kubestow.simulator.rebalance.ground import ground_of
from kubestow.simulator.rebalance.rules import MovableRules

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
EMPTY_DIR = {"volumes": [{"name": "cache", "emptyDir": {}}]}


def reason(raw: Raw, *others: Raw, **options: Any) -> str:
    others = others or (node("a"), owner("web", 1))
    ground = ground_of(documents(*others, raw), PlacingSetup())
    found = ground.cluster.objects.pods.get("default", raw["metadata"]["name"])
    assert found is not None
    return MovableRules(ground, RebalanceOptions(**options)).reason(found)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(pod("web-1", "a"), "", id="replica-set"),
        pytest.param(pod("web-1", "a", kind="Other"), "", id="other-controller"),
        pytest.param(pod("web-1", "a", kind=""), texts.NO_CONTROLLER, id="no-controller"),
        pytest.param(pod("web-1", "a", kind="DaemonSet"), texts.DAEMON, id="daemon"),
        pytest.param(pod("web-1", "a", kind="Node"), texts.STATIC, id="static"),
        pytest.param(pod("web-1", "a", kind="Job"), texts.JOB, id="job"),
        pytest.param(
            pod("web-1", "a", annotations={"kubernetes.io/config.mirror": "x"}),
            texts.STATIC,
            id="mirror",
        ),
        pytest.param(
            pod("web-1", "a", annotations={SAFE: "false"}),
            f'it has the annotation {SAFE}: "false"',
            id="safe-to-evict-false",
        ),
        pytest.param(pod("web-1", "a", annotations={SAFE: "true"}), "", id="safe-to-evict-true"),
        pytest.param(
            pod("web-1", "a", annotations={"karpenter.sh/do-not-disrupt": "true"}),
            "it has the annotation karpenter.sh/do-not-disrupt",
            id="do-not-disrupt",
        ),
        pytest.param(
            pod(
                "web-1",
                "a",
                annotations={"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""},
            ),
            "it has the annotation descheduler.alpha.kubernetes.io/prefer-no-eviction",
            id="prefer-no-eviction",
        ),
        pytest.param(pod("web-1", "a", **EMPTY_DIR), texts.LOCAL_VOLUME, id="empty-dir"),
        pytest.param(
            pod("web-1", "a", volumes=[{"name": "h", "hostPath": {"path": "/x"}}]),
            texts.LOCAL_VOLUME,
            id="host-path",
        ),
        pytest.param(
            pod("web-1", "a", volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}]),
            "",
            id="in-memory",
        ),
        pytest.param(
            pod("web-1", "a", annotations={SAFE: "true"}, **EMPTY_DIR), "", id="safe-with-volume"
        ),
        pytest.param(
            pod("web-1", "a", annotations={f"{SAFE}-local-volumes": "cache"}, **EMPTY_DIR),
            "",
            id="safe-volume",
        ),
        pytest.param(
            pod("web-1", "a", priority=2_000_001_000), texts.IMPORTANT, id="system-priority"
        ),
        pytest.param(
            pod("web-1", "a", schedulerName="other"), texts.OTHER_SCHEDULER, id="other-scheduler"
        ),
        pytest.param(
            pod(
                "web-1",
                "a",
                resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}],
            ),
            texts.OWN_CLAIMS,
            id="own-claims",
        ),
    ],
)
def test_the_reason_is_named(raw: Raw, expected: str) -> None:
    assert reason(raw) == expected


def test_a_pod_that_is_ending_stays() -> None:
    raw = pod("web-1", "a")
    raw["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    assert reason(raw) == texts.ENDING


def test_a_controller_with_too_many_pods_replaces_none() -> None:
    assert reason(pod("web-1", "a"), node("a"), owner("web", 0)) == texts.SHRINKING


@pytest.mark.parametrize(
    ("options", "raw", "expected"),
    [
        ({"excluded_namespaces": ("default",)}, pod("web-1", "a"), texts.EXCLUDED),
        ({"excluded_selectors": (parse_selector("app=web"),)}, pod("web-1", "a"), texts.EXCLUDED),
        ({"excluded_selectors": (parse_selector("app=db"),)}, pod("web-1", "a"), ""),
        ({"node_selector": parse_selector("pool=x")}, pod("web-1", "a"), texts.OTHER_NODES),
        ({"max_priority": 10}, pod("web-1", "a", priority=11), texts.IMPORTANT),
        ({"max_priority": 10}, pod("web-1", "a", priority=10), ""),
        ({"also_local_volumes": True}, pod("web-1", "a", **EMPTY_DIR), ""),
        ({"also_jobs": True}, pod("web-1", "a", kind="Job"), ""),
    ],
)
def test_options_change_what_stays(options: Any, raw: Raw, expected: str) -> None:
    assert reason(raw, **options) == expected


def test_a_node_that_must_not_be_disrupted_keeps_its_pods() -> None:
    kept = node("a")
    kept["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    found = reason(pod("web-1", "a"), kept, owner("web", 1))
    assert found == "its node has the annotation karpenter.sh/do-not-disrupt"
