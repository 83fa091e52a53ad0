"""Every kind of expectation, once as it holds and once as it does not."""

from typing import Any

import pytest
from tests.simulator.placement_tests.small_tests import (
    ZONE,
    containers,
    deployment,
    document,
    found,
    pod,
    result_of,
    workload,
)

WEB = deployment("web", 6)
BIG = pod("big", "64")
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
}
# Four of its pods wait for others to end.
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "parallelism": 16,
        "completions": 16,
        "template": {"spec": {**containers("1"), "restartPolicy": "Never"}},
    },
}


@pytest.mark.parametrize(
    ("objects", "expectation", "more"),
    [
        pytest.param([WEB], {"placed": "all"}, {}, id="placed"),
        pytest.param([WEB], {"placed": "Deployment/web"}, {}, id="placed-owner"),
        pytest.param([WEB], {"placed": {"pods": {"selector": "app=web"}}}, {}, id="placed-labels"),
        pytest.param([WEB], {"placed": {"within": "10s"}}, {}, id="placed-within"),
        pytest.param(
            [deployment("web", 20)], {"placed": {"atLeast": 12}}, {}, id="placed-at-least"
        ),
        pytest.param([BIG], {"pending": "Pod/big"}, {}, id="pending"),
        pytest.param(
            [BIG], {"pending": {"reason": "Insufficient cpu"}}, {}, id="pending-with-reason"
        ),
        pytest.param(
            [deployment("web", 14)], {"pending": {"count": 2}}, {}, id="pending-so-many"
        ),
        pytest.param([BIG], {"message": {"contains": "0/3 nodes"}}, {}, id="message"),
        pytest.param(
            [pod("a", nodeSelector={ZONE: "zone-b"})],
            {"on": {"pods": "Pod/a", "nodes": {"selector": f"{ZONE}=zone-b"}}},
            {},
            id="on",
        ),
        pytest.param(
            [pod("a", nodeSelector={ZONE: "zone-b"})],
            {"neverOn": {"nodes": {"selector": f"{ZONE}=zone-a"}}},
            {},
            id="never-on",
        ),
        pytest.param([WEB], {"spread": {"pods": "Deployment/web", "over": ZONE}}, {}, id="spread"),
        pytest.param([pod("a")], {"together": "Pod/a"}, {}, id="together"),
        pytest.param(
            [deployment("web", 3, affinity=ANTI)], {"apart": "Deployment/web"}, {}, id="apart"
        ),
        pytest.param(
            [pod("a", nodeSelector={ZONE: "zone-a"}), pod("b", nodeSelector={ZONE: "zone-b"})],
            {"apart": {"pods": "Pod/a", "from": "Pod/b"}},
            {},
            id="apart-from",
        ),
        pytest.param([WEB], {"evicted": "none"}, {}, id="evicted-none"),
        pytest.param(
            [WEB], {"evicted": {"atMost": 2}}, {"given": [{"drain": "n-0"}]}, id="evicted-at-most"
        ),
        pytest.param(
            [pod("a")],
            {"pending": {"pods": "Pod/a", "count": 0}},
            {"given": [{"delete": {"kind": "Pod", "name": "a"}}]},
            id="pending-none-of-pods-that-were-there",
        ),
        pytest.param([WEB], {"preempted": "none"}, {"given": [{"drain": "n-0"}]}, id="preempted"),
        pytest.param([WEB], {"headroom": {"atLeast": 6, "of": [pod("c")]}}, {}, id="headroom"),
        pytest.param([JOB], {"placed": "Job/j"}, {}, id="placed-and-ended"),
        pytest.param(
            [JOB], {"placed": {"pods": "Job/j", "atLeast": 16}}, {}, id="placed-at-least-and-ended"
        ),
        pytest.param(
            [WEB],
            {"headroom": {"atLeast": 1, "of": [deployment("c", 2)]}},
            {"given": [{"drain": "n-0"}]},
            id="headroom-after-pods-were-made-again",
        ),
        pytest.param([WEB, BUDGET], {"budget": "all"}, {"given": [{"wait": "1m"}]}, id="budget"),
    ],
)  # fmt: skip
def test_an_expectation_holds(
    objects: list[Any], expectation: dict[str, Any], more: dict[str, Any]
) -> None:
    assert found(*objects, expect=[expectation], **more) == ""


@pytest.mark.parametrize(
    ("objects", "expectation", "more", "text"),
    [
        pytest.param(
            [deployment("web", 14)],
            {"placed": "all"},
            {},
            "2 of 14 pods of Deployment/web wait: 0/3 nodes are available: 3 Insufficient cpu.",
            id="placed",
        ),
        pytest.param(
            [JOB],
            {"placed": {"pods": "Job/j", "within": "1s"}},
            {},
            "4 pods took longer, default/j-",
            id="placed-late-and-ended",
        ),
        pytest.param(
            [WEB],
            {"placed": "Deployment/web"},
            {"given": [{"scale": {"kind": "Deployment", "name": "web", "replicas": 0}}]},
            "there are no pods of Deployment/web any more: 6 pods ended or went",
            id="placed-and-deleted",
        ),
        pytest.param(
            [JOB],
            {"together": "Job/j"},
            {},
            "there are no pods of Job/j any more: 16 pods ended or went",
            id="together-and-ended",
        ),
        pytest.param(
            [WEB],
            {"placed": "Deployment/wep"},
            {},
            'there are no pods of Deployment/wep; did you mean "Deployment/web"?',
            id="placed-nothing",
        ),
        pytest.param(
            [deployment("web", 2, priorityClassName="missing")],
            {"placed": "all"},
            {},
            "2 pods of Deployment/web are not there: Deployment/web: ",
            id="placed-refused",
        ),
        pytest.param(
            [workload("StatefulSet", "db", 1, "1", nodeSelector={ZONE: "zone-a"})],
            {"placed": "all"},
            {"given": [{"fail": "n-0"}]},
            "1 pod of StatefulSet/db is not there: StatefulSet/db: db-0 is still ending on n-0",
            id="placed-ending",
        ),
        pytest.param(
            [workload("StatefulSet", "db", 3, "64")],
            {"placed": {"atLeast": 1}},
            {},
            "0 pods of the cluster with a node: 0/3 nodes are available",
            id="placed-at-least",
        ),
        pytest.param(
            [pod("high", "3")],
            {"placed": {"pods": "Pod/high", "within": "1ms"}},
            {"given": [{"apply": [pod("late", "4", nodeSelector={"later": "yes"})]}]},
            "",
            id="placed-within-holds",
        ),
        pytest.param(
            [WEB], {"pending": "all"}, {}, "6 pods have a node: default/web-", id="pending"
        ),
        pytest.param(
            [BIG],
            {"pending": {"reason": "Insufficient memory"}},
            {},
            "default/big waits: 0/3 nodes are available: 3 Insufficient cpu.",
            id="pending-other-reason",
        ),
        pytest.param([WEB], {"pending": {"count": 1}}, {}, "0 of 6 pods wait", id="pending-count"),
        pytest.param(
            [WEB], {"message": {"contains": "x"}}, {}, "no pod waits, so there is no message",
            id="message",
        ),
        pytest.param(
            [pod("a", nodeSelector={ZONE: "zone-b"})],
            {"on": {"nodes": {"selector": f"{ZONE}=zone-a"}}},
            {},
            "1 pod elsewhere: default/a on n-1",
            id="on",
        ),
        pytest.param(
            [WEB],
            {"neverOn": {"nodes": "n-0"}},
            {"given": [{"drain": "n-0"}]},
            " was on n-0",
            id="never-on-before",
        ),
        pytest.param(
            [deployment("web", 3, nodeSelector={ZONE: "zone-b"})],
            {"spread": {"pods": "Deployment/web", "over": ZONE}},
            {},
            "a skew of 3: zone-a 0, zone-b 3, zone-c 0",
            id="spread",
        ),
        pytest.param(
            [WEB], {"together": {"pods": "Deployment/web", "over": ZONE}}, {}, "3 domains: ",
            id="together",
        ),
        pytest.param([WEB], {"apart": "Deployment/web"}, {}, "2 pods in n-", id="apart"),
        pytest.param(
            [pod("a"), deployment("web", 6)],
            {"apart": {"pods": "Deployment/web", "from": "Pod/a"}},
            {},
            "default/a",
            id="apart-from",
        ),
        pytest.param(
            [WEB],
            {"evicted": "none"},
            {"given": [{"drain": "n-0"}]},
            "2 pods evicted: default/web-",
            id="evicted",
        ),
        pytest.param(
            [deployment("low", 12)],
            {"preempted": {"pods": "Deployment/low"}},
            {
                "cluster": {"priorities": {"high": 100}},
                "given": [{"apply": [pod("vip", "2", priorityClassName="high")]}],
            },
            "2 pods preempted: default/low-",
            id="preempted",
        ),
        pytest.param(
            [WEB],
            {"headroom": {"atLeast": 7, "of": [pod("c")]}},
            {},
            "6 copies fit; the next: 0/3 nodes are available: 3 Insufficient cpu.",
            id="headroom",
        ),
        pytest.param(
            [deployment("web", 3, "3"), BUDGET],
            {"budget": "web"},
            {"given": [{"wait": "1m"}, {"fail": "n-0"}]},
            "web had 2 healthy pods of 3, first after ",
            id="budget",
        ),
        pytest.param(
            [WEB], {"evicted": {"pods": "Deployment/wep"}}, {},
            'there are no pods of Deployment/wep; did you mean "Deployment/web"?',
            id="evicted-nothing",
        ),
        pytest.param(
            [WEB], {"preempted": {"pods": {"selector": "app=wep"}}}, {},
            "there are no pods of app=wep", id="preempted-nothing",
        ),
        pytest.param(
            [WEB], {"pending": {"pods": "Deployment/wep", "count": 0}}, {},
            "there are no pods of Deployment/wep", id="pending-nothing",
        ),
        pytest.param(
            [WEB], {"placed": {"pods": "Deployment/wep", "atLeast": 0}}, {},
            "there are no pods of Deployment/wep", id="placed-at-least-nothing",
        ),
        pytest.param(
            [WEB], {"apart": {"pods": "Deployment/web", "from": "Deployment/bd"}}, {},
            "there are no pods of Deployment/bd", id="apart-from-nothing",
        ),
        pytest.param(
            [WEB], {"spread": {"pods": "Deployment/web", "over": f"{ZONE}s"}}, {},
            f'no node has the label "{ZONE}s"; did you mean "{ZONE}"?', id="spread-no-label",
        ),
        pytest.param(
            [pod("a")], {"apart": {"pods": "Pod/a", "over": f"{ZONE}s"}}, {},
            f'no node has the label "{ZONE}s"', id="apart-no-label",
        ),
        pytest.param(
            [WEB], {"spread": {"pods": "Deployment/web", "over": ZONE, "nodes": "m-0"}}, {},
            'there is no node "m-0"; did you mean "n-0"?', id="spread-no-node",
        ),
        pytest.param(
            [WEB], {"neverOn": {"nodes": {"selector": "pool=gpu"}}}, {},
            "no node has the labels pool=gpu", id="never-on-no-node",
        ),
        pytest.param(
            [WEB], {"on": {"nodes": "m-0"}}, {},
            'there is no node "m-0"; did you mean "n-0"?', id="on-no-node",
        ),
        pytest.param(
            [WEB, BUDGET], {"budget": "wep"}, {},
            'there is no such disruption budget; did you mean "web"?', id="budget-unknown",
        ),
    ],
)  # fmt: skip
def test_what_was_found_is_named(
    objects: list[Any], expectation: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    result = found(*objects, expect=[expectation], **more)
    if text:
        assert text in result
    else:
        assert result == ""


GATES = ["GenericWorkload=true", "GangScheduling=true"]


def gang(members: int, needed: int, cpu: str = "1") -> list[dict[str, Any]]:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": needed}}},
    }
    pods = [pod(f"m-{n}", cpu, schedulingGroup={"podGroupName": "g"}) for n in range(members)]
    return [group, *pods]


@pytest.mark.parametrize(
    ("objects", "are", "text"),
    [
        pytest.param(gang(3, 3), "whole", "", id="whole"),
        pytest.param(gang(3, 3), "whole or absent", "", id="whole-of-either"),
        pytest.param(gang(3, 3, "3"), "absent", "3 of the 3 members", id="not-absent"),
        pytest.param(gang(4, 4, "3"), "whole", "0 of the 4 members that default/g needs", id="not"),
        pytest.param(gang(4, 4, "3"), "absent", "", id="absent"),
    ],
)
def test_gangs_are_whole_or_absent(objects: list[Any], are: str, text: str) -> None:
    matrix = {"editions": ["v1.36"]}
    result = found(*objects, expect=[{"gangs": are}], featureGates=GATES, matrix=matrix)
    assert text in result if text else result == ""


def test_a_step_may_expect_something_before_the_next() -> None:
    result = result_of(
        WEB,
        given=[
            {"expect": {"placed": "all"}},
            {"scale": {"kind": "Deployment", "name": "web", "replicas": 20}},
            {"expect": [{"pending": {"count": 8}}]},
        ],
        expect=[{"placed": {"atLeast": 12}}],
    )
    assert [verdict.found for verdict in result.verdicts] == ["", "", ""]
    assert [verdict.field for verdict in result.verdicts] == [
        "given[1].expect.placed",
        "given[3].expect[0].pending",
        "expect[0].placed",
    ]


def test_upgraded_nodes_are_drained_one_after_the_other() -> None:
    result = result_of(
        WEB,
        BUDGET,
        given=[{"wait": "1m"}, {"upgrade": {}}],
        expect=[{"placed": "all"}, {"budget": "web"}, {"evicted": {"atMost": 20}}],
    )
    assert [verdict.found for verdict in result.verdicts] == ["", "", ""]


def test_evicted_pods_are_placed_again() -> None:
    result = result_of(
        WEB,
        given=[{"evict": "Deployment/web"}],
        expect=[{"placed": "all"}, {"evicted": "none"}],
    )
    assert [bool(verdict.found) for verdict in result.verdicts] == [False, True]


def test_a_step_that_cannot_be_done_is_an_error_with_its_place() -> None:
    result = result_of(WEB, given=[{"fail": "n-9"}], expect=[{"placed": "all"}])
    assert result.status == "error"
    assert 'given[1].fail: there is no node "n-9" then; did you mean' in result.error


def test_older_editions_judge_as_well() -> None:
    content = document(
        deployment("web", 14),
        expect=[{"pending": {"count": 2, "reason": "Insufficient cpu"}}],
        matrix={"editions": ["v1.9", "v1.20", "v1.36"]},
    )
    from tests.simulator.placement_tests.small_tests import cases_of

    from kubestow.simulator.placement_tests.running import RunOptions, run_cases

    run = run_cases(cases_of(content), RunOptions(jobs=1))
    assert [case.matrix["edition"] for case in run.cases] == ["v1.9", "v1.20", "v1.36"]
    assert run.passed == 3, [case.error or case.verdicts for case in run.cases]
