"""The v1.9 scheduler in a simulated cluster (spec 04 §19.1, 02 §19.2)."""

from typing import Any

from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.shared.policy import convert_policy, provider_policy
from kubestow.editions.v1_9.engine.algorithm import Algorithm, build_algorithm
from kubestow.editions.v1_9.engine.decide import DecisionV19
from kubestow.editions.v1_9.simulator.embedded import EmbeddedV19, cluster_maker
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult

DEFAULT = build_algorithm(provider_policy("DefaultProvider"))


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    }


def pod(name: str, *, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def near(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def simulate(
    *documents: dict[str, Any],
    algorithm: Algorithm = DEFAULT,
    decisions: list[DecisionV19] | None = None,
    use_equivalence_cache: bool = False,
) -> SimulationResult:
    clusters: list[EmbeddedV19] = []
    make = cluster_maker(
        algorithm,
        use_equivalence_cache=use_equivalence_cache,
        listeners=[] if decisions is None else [decisions.append],
    )

    def make_cluster(*args: Any, **named: Any) -> EmbeddedV19:
        cluster = make(*args, **named)
        assert isinstance(cluster, EmbeddedV19)
        clusters.append(cluster)
        return cluster

    run = run_scenario(placing(documents), SchedulerConfig(), make_cluster=make_cluster)
    cache = clusters[0].scheduler.equivalence_cache
    assert (cache is not None) == use_equivalence_cache
    assert cache is None or cache.statistics().hits > 0
    return SimulationResult.of(run)


def placed(result: SimulationResult) -> dict[str, str]:
    return {found.name: found.node for found in result.pods}


def test_equal_nodes_take_turns_from_the_last_name() -> None:
    nodes = [node(name) for name in ("a", "b", "c")]
    result = simulate(*nodes, *(pod(f"p{index}", cpu="1m") for index in range(3)))
    assert result.has_settled
    assert placed(result) == {"p0": "c", "p1": "b", "p2": "a"}


def test_a_pod_that_fits_on_no_node_has_a_message_and_the_run_ends() -> None:
    result = simulate(node("a"), node("b"), pod("large", cpu="3"))
    (found,) = result.pods
    assert result.has_settled
    assert found.outcome == "Pending"
    assert found.reason == "Unschedulable"
    assert found.message == "0/2 nodes are available: 2 Insufficient cpu."


def test_writing_the_condition_causes_the_second_attempt_at_once() -> None:
    decisions: list[DecisionV19] = []
    result = simulate(node("a"), pod("large", cpu="3"), decisions=decisions)
    assert len(decisions) == 2
    assert result.virtual_duration_s < 1


def test_a_pod_is_tried_again_after_its_wait() -> None:
    # The first needs the second, which is tried after it: both immediate attempts fail.
    decisions: list[DecisionV19] = []
    first = pod("first", cpu="1m", affinity=near("second"))
    result = simulate(node("a", zone="z"), first, pod("second", cpu="1m"), decisions=decisions)
    assert placed(result) == {"first": "a", "second": "a"}
    assert decisions[0].is_fit_error


def test_pods_of_other_schedulers_are_left_alone() -> None:
    result = simulate(node("a"), pod("theirs", schedulerName="other"))
    assert placed(result) == {"theirs": ""}
    assert result.has_settled


def test_the_equivalence_cache_changes_no_placement() -> None:
    nodes = [node(f"n{index}", zone=f"z{index % 2}") for index in range(4)]
    workload = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {
                "replicas": 5,
                "selector": {"matchLabels": {"app": app}},
                "template": {
                    "metadata": {"labels": {"app": app}},
                    "spec": {**pod(app, cpu="300m")["spec"], **spec},
                },
            },
        }
        for app, spec in (("web", {}), ("db", {"affinity": near("web")}), ("big", {}))
    ]
    without, with_cache = (
        placed(simulate(*nodes, *workload, use_equivalence_cache=use)) for use in (False, True)
    )
    assert len(without) == 15
    assert with_cache == without


def test_the_policy_decides() -> None:
    policy = {
        "predicates": [
            {
                "name": "HasSsd",
                "argument": {"labelsPresence": {"labels": ["ssd"], "presence": True}},
            }
        ]
    }
    algorithm = build_algorithm(convert_policy(policy))
    result = simulate(node("a", ssd="yes"), node("b"), pod("large", cpu="9"), algorithm=algorithm)
    assert placed(result) == {"large": "a"}
