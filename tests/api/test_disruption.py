"""Splitting victims by disruption budget (spec 01 §15)."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api import disruption
from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)


def victim(name: str, labels: dict[str, str]) -> PodInfo:
    return PodInfo(Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=name, labels=labels)))


def budget(
    selector: LabelSelector | None,
    allowed: int,
    *disrupted: str,
    namespace: str = "ns",
) -> PodDisruptionBudget:
    marks: dict[str, datetime | None] = dict.fromkeys(disrupted)
    return PodDisruptionBudget(
        metadata=ObjectMeta(namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=marks),
    )


def expressing(key: str, operator: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key=key, operator=operator),))


VICTIMS = [
    victim("p1", {"app": "a"}),
    victim("p2", {"app": "a"}),
    victim("p3", {}),
    victim("p4", {"app": "b"}),
]
APP_A = LabelSelector(match_labels={"app": "a"})


@pytest.mark.parametrize(
    ("budgets", "violating"),
    [
        pytest.param([], [], id="no-budget"),
        pytest.param([budget(APP_A, 1)], ["p2"], id="B1"),
        pytest.param([budget(APP_A, 1, "p1")], [], id="B2-disrupted-already"),
        pytest.param([budget(LabelSelector(), 0)], [], id="B3-empty-selector"),
        pytest.param([budget(None, 0)], [], id="B3-no-selector"),
        pytest.param([budget(APP_A, 0, namespace="other")], [], id="B3-other-namespace"),
        pytest.param(
            [budget(expressing("zzz", "DoesNotExist"), 0)], ["p1", "p2", "p4"], id="B4-no-labels"
        ),
        pytest.param([budget(APP_A, 5), budget(APP_A, 0)], ["p1", "p2"], id="B5"),
        pytest.param([budget(expressing("app", "Bogus"), 0)], [], id="illegal-selector"),
        pytest.param([budget(APP_A, -1)], ["p1", "p2"], id="overdrawn-already"),
        pytest.param(
            [budget(APP_A, 0), budget(expressing("app", "Exists"), 2)],
            ["p1", "p2", "p4"],
            id="violating-pods-still-charge-the-others",
        ),
    ],
)
def test_victims_that_overdraw_a_budget(
    budgets: list[PodDisruptionBudget], violating: list[str]
) -> None:
    split = BudgetTable(budgets).split(VICTIMS)
    assert [info.name for info in split.violating] == violating
    assert [info.name for info in split.non_violating] == [
        info.name for info in VICTIMS if info.name not in violating
    ]


def test_each_node_starts_with_full_allowances() -> None:
    table = BudgetTable([budget(APP_A, 1)])
    assert table.split(VICTIMS[:1]).violating == []
    assert table.split(VICTIMS[:2]).violating == [VICTIMS[1]]
    assert table.split(VICTIMS[1:]).violating == []


BUDGETS = st.builds(
    budget,
    st.sampled_from([None, LabelSelector(), APP_A, expressing("app", "Exists")]),
    st.integers(-1, 3),
    st.sampled_from(["p1", "p2", "none"]),
)


# From nine budgets on, those of a pod are looked up, and victims are charged together.
@given(st.permutations(VICTIMS), st.one_of(st.lists(BUDGETS, max_size=n) for n in (4, 30)))
def test_split_equals_a_slow_reading(
    victims: list[PodInfo], budgets: list[PodDisruptionBudget]
) -> None:
    left = [entry.status.disruptions_allowed for entry in budgets]
    violating: list[PodInfo] = []
    for info in victims:
        app = info.pod.metadata.labels.get("app")
        exhausted = False
        for number, entry in enumerate(budgets):
            selector = entry.spec.selector
            covers = app == "a" if selector == APP_A else app is not None
            if selector in (None, LabelSelector()) or not covers:
                continue
            if info.name in entry.status.disrupted_pods:
                continue
            left[number] -= 1
            exhausted = exhausted or left[number] < 0
        if exhausted:
            violating.append(info)
    assert BudgetTable(budgets).split(victims).violating == violating


def test_budgets_are_kept_for_so_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disruption, "COVERED_MAX", 3)
    table = BudgetTable([budget(APP_A, 0)])
    for number in range(10):
        covered = victim(f"p{number}", {"app": "a", "job": str(number)})
        assert table.split([covered]).violating == [covered]
        assert len(table._covering) <= 3
