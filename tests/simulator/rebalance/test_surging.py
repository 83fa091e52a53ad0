"""Which pods are replaced before they end, by a surge of what scales them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import (
    Raw,
    apart,
    budget,
    documents,
    node,
    owner,
    planned,
    pod,
)

from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.rebalance import surging as texts
from kubestow.simulator.rebalance.budgets import Budgets
from kubestow.simulator.rebalance.ground import ground_of
from kubestow.simulator.rebalance.plan import ScaledOwner
from kubestow.simulator.rebalance.script import script_of
from kubestow.simulator.rebalance.surging import Surges

PROTECTED = budget("web", minAvailable=2)
SET = ScaledOwner(kind="ReplicaSet", name="web", uid="ReplicaSet-web", replicas=2)


def web(**other: Any) -> list[Raw]:
    return [pod(f"web-{number}", "a", cpu="500m", **other) for number in range(2)]


def deployment(replicas: int = 2, **spec: Any) -> Raw:
    return owner("web", replicas, kind="Deployment", cpu="500m", **spec)


def of_deployment(raw: Raw, kind: str = "Deployment") -> Raw:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": f"{kind}-web"}
    metadata = {**raw["metadata"], "ownerReferences": [{**reference, "controller": True}]}
    return {**raw, "metadata": metadata}


def replica_set(name: str = "web", replicas: int = 2) -> Raw:
    return of_deployment(owner(name, replicas, cpu="500m"))


def autoscaler(kind: str) -> Raw:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}},
    }


def surges_of(*raw: Raw, is_wanted: bool = True) -> tuple[Surges, Any]:
    ground = ground_of(documents(node("a"), node("b"), *raw), PlacingSetup())
    found = ground.cluster.objects.pods.get("default", "web-0")
    return Surges(ground, Budgets(ground), is_wanted=is_wanted), found


def test_a_pod_that_its_budget_keeps_is_replaced_before_it_ends() -> None:
    surges, found = surges_of(owner("web", 2, cpu="500m"), *web(), PROTECTED)
    assert surges.reason(found) == ""
    assert surges.scaled(found) == SET


def test_without_the_option_its_budget_keeps_it() -> None:
    surges, found = surges_of(owner("web", 2), *web(), PROTECTED, is_wanted=False)
    assert "allows no disruption" in surges.reason(found)
    assert surges.scaled(found) is None


def test_a_pod_that_may_be_spared_is_evicted() -> None:
    surges, found = surges_of(owner("web", 2), *web(), budget("web", minAvailable=1))
    assert surges.reason(found) == ""
    assert surges.scaled(found) is None


def test_the_only_pod_of_its_controller_is_not_spared() -> None:
    surges, found = surges_of(owner("web", 1), pod("web-0", "a"))
    assert surges.scaled(found) == ScaledOwner(
        kind="ReplicaSet", name="web", uid="ReplicaSet-web", replicas=1
    )


def test_the_only_pod_of_a_stateful_set_is_evicted_as_before() -> None:
    raw = [owner("web", 1, kind="StatefulSet"), pod("web-0", "a", kind="StatefulSet")]
    surges, found = surges_of(*raw)
    assert surges.reason(found) == ""
    assert surges.scaled(found) is None


def test_the_deployment_is_scaled_not_its_replica_set() -> None:
    surges, found = surges_of(deployment(), replica_set(), *web(), PROTECTED)
    assert surges.scaled(found) == ScaledOwner(
        kind="Deployment", name="web", uid="Deployment-web", replicas=2
    )


SETTLED = [deployment(), replica_set(), *web()]
RECREATE = {"strategy": {"type": "Recreate"}}
NO_MORE = {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
UNREADY = pod("web-1", "a")
UNREADY["status"]["conditions"][0]["status"] = "False"
BEHIND = deployment()
BEHIND["metadata"]["generation"] = 3
BEHIND["status"] = {"observedGeneration": 2}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(SETTLED, "", id="settled"),
        pytest.param(
            [owner("web", 2, kind="StatefulSet"), *web(kind="StatefulSet")],
            texts.OTHER_KIND,
            id="stateful-set",
        ),
        pytest.param(web(), texts.UNKNOWN, id="no-replica-set"),
        pytest.param([replica_set(), *web()], texts.UNKNOWN, id="no-deployment"),
        pytest.param(
            [of_deployment(owner("web", 2), kind="Rollout"), *web()],
            texts.OTHER_SCALER,
            id="rollout",
        ),
        pytest.param(
            [of_deployment(deployment(), kind="Shop"), replica_set(), *web()],
            texts.MANAGED,
            id="operator",
        ),
        pytest.param([*SETTLED, autoscaler("Deployment")], texts.AUTOSCALED, id="autoscaler"),
        pytest.param([*SETTLED, autoscaler("StatefulSet")], "", id="autoscaler-of-another"),
        pytest.param(
            [owner("web", 2), *web(), autoscaler("ReplicaSet")],
            texts.AUTOSCALED,
            id="autoscaler-of-the-set",
        ),
        pytest.param([deployment(**RECREATE), replica_set(), *web()], texts.NO_MORE, id="recreate"),
        pytest.param(
            [deployment(**NO_MORE), replica_set(), *web()], texts.NO_MORE, id="no-surge-in-updates"
        ),
        pytest.param([deployment(paused=True), replica_set(), *web()], texts.UPDATING, id="paused"),
        pytest.param([BEHIND, replica_set(), *web()], texts.UPDATING, id="not-seen"),
        pytest.param([deployment(3), replica_set(), *web()], texts.UPDATING, id="being-scaled"),
        pytest.param(
            [*SETTLED, replica_set("old", 1), pod("old-1", "b")], texts.UPDATING, id="two-sets"
        ),
        pytest.param([*SETTLED, replica_set("old", 0)], "", id="an-old-set-without-pods"),
        pytest.param(
            [deployment(), replica_set(), web()[0], UNREADY], texts.UNSETTLED, id="not-ready"
        ),
        pytest.param(
            [deployment(), replica_set(), *web(annotations={DELETION_COST: "5"})],
            texts.COSTS,
            id="costs",
        ),
    ],
)
def test_where_it_is_not_certain_the_pod_stays_and_why(raw: list[Raw], expected: str) -> None:
    # A pod that is not ready is not counted, so the budget still keeps the other one.
    protected = budget("web", maxUnavailable=0)
    surges, found = surges_of(*raw, protected)
    reason = surges.reason(found)
    assert reason.endswith(f"; no surge: {expected}") if expected else not reason
    assert (surges.scaled(found) is None) is bool(expected)


def test_pods_with_claims_stay() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "data"},
    }
    surges, found = surges_of(owner("web", 2), *web(**CLAIM), claim, PROTECTED)
    assert surges.reason(found).endswith(texts.CLAIMS)


# --- Plans --------------------------------------------------------------------------------------

CROWDED = [node("a"), node("b"), owner("web", 2, cpu="500m"), *web(), PROTECTED]


def test_a_plan_has_the_surge_as_a_step() -> None:
    assert planned("balance", *CROWDED).moves == 0
    plan = planned("balance", *CROWDED, surges=True)
    (step,) = plan.steps
    assert (step.action, step.scaled, step.to_node) == ("surge", SET, "b")
    # The new pod starts before the old one ends.
    assert step.ends_at_s - step.starts_at_s == 10 + 30


def test_the_script_of_a_surge_is_one_that_a_shell_reads(tmp_path: Path) -> None:
    script = script_of(planned("balance", *CROWDED, surges=True))
    path = tmp_path / "plan.sh"
    path.write_text(script)
    assert subprocess.run(["sh", "-n", str(path)]).returncode == 0
    assert script.endswith(
        "\nsurge default web-0 web-0 a b 340 replicaset/web 2 "
        """'{"kind":"ReplicaSet","name":"web","uid":"ReplicaSet-web","replicas":2}'\n"""
    )
    assert "@" not in script.partition("surge()")[2]


def test_both_pods_need_a_node_at_once() -> None:
    """An eviction would free what the replacement of a StatefulSet needs; a surge does not."""
    raw = [node("a"), node("b", cpu="500m"), owner("web", 2), *web(), PROTECTED]
    filler = pod("full-0", "b", cpu="500m", kind="")
    assert planned("balance", *raw, filler, surges=True).moves == 0


def test_a_pod_that_still_runs_counts_for_spread() -> None:
    """One that is ending does not: its closed node would have to take the replacement."""
    spread = {"topologySpreadConstraints": apart("web", when="DoNotSchedule")}
    pods = [pod(f"web-{name}", name, cpu="500m", **spread) for name in ("a", "b")]
    raw = [node("a"), node("b"), owner("web", 2, cpu="500m"), *pods]
    assert planned("empty-nodes", *raw, surges=True).moves == 0
    plan = planned("empty-nodes", *raw, PROTECTED, surges=True)
    assert [step.action for step in plan.steps] == ["cordon", "surge"]
