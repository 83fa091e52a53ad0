"""Taints and tolerations (spec 01 §9, 05 §2.4)."""

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.node import Taint
from kubestow.api.pod import Toleration
from kubestow.api.taints import (
    HARD_EFFECTS,
    UNSCHEDULABLE_TAINT,
    TolerationTable,
    first_untolerated,
    soft_tolerations,
    untolerated_soft_count,
)
from tools.plain_rules import tolerates


def tolerate(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect=effect)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


@pytest.mark.parametrize(
    ("toleration", "tainted", "expected"),
    [
        pytest.param(tolerate("a", "Equal", "b", "NoSchedule"), taint("a", "b"), True, id="T1"),
        pytest.param(
            tolerate("a", "Equal", "b", "NoSchedule"),
            taint("a", "b", "NoExecute"),
            False,
            id="T1-other-effect",
        ),
        pytest.param(tolerate("a", "Exists"), taint("a", "zzz", "NoExecute"), True, id="T2"),
        pytest.param(tolerate(operator="Exists"), taint("any", "x"), True, id="T3"),
        pytest.param(tolerate(), taint("k"), True, id="T4-empty-value"),
        pytest.param(tolerate(), taint("k", "x"), False, id="T4-value"),
        pytest.param(tolerate("sla", "Gt", "900"), taint("sla", "950"), False, id="T5-gate-off"),
        pytest.param(tolerate("sla", "Lt", "990"), taint("sla", "950"), False, id="lt-gate-off"),
        pytest.param(tolerate("a", "", "b"), taint("a", "b"), True, id="no-operator-is-equal"),
        pytest.param(tolerate("a", "Exists"), taint("b"), False, id="other-key"),
        pytest.param(tolerate("a", "exists"), taint("a"), False, id="unknown-operator"),
        pytest.param(
            tolerate("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),
            UNSCHEDULABLE_TAINT,
            True,
            id="unschedulable",
        ),
    ],
)
def test_toleration_accepts_taint(toleration: Toleration, tainted: Taint, expected: bool) -> None:
    assert tolerates(toleration, tainted) is expected
    assert TolerationTable([toleration]).accepts(tainted) is expected


@pytest.mark.parametrize(
    ("operator", "tolerated", "tainted", "expected"),
    [
        pytest.param("Gt", "900", "950", True, id="T5-gate-on"),
        pytest.param("Lt", "900", "950", False, id="T6-lt"),
        pytest.param("Gt", "950", "950", False, id="T6-equal-is-not-greater"),
        pytest.param("Gt", "-5", "-3", True, id="T6-negative"),
        pytest.param("Gt", "0900", "950", False, id="T7-leading-zero"),
        pytest.param("Gt", "-0", "1", False, id="T7-minus-zero"),
        pytest.param("Lt", "1", "0", True, id="zero"),
        pytest.param("Gt", "+5", "9", False, id="plus-sign"),
        pytest.param("Gt", "5", "", False, id="empty-taint-value"),
        pytest.param("Gt", "5", "9\n", False, id="trailing-newline"),
        pytest.param("Lt", "9223372036854775807", "-9223372036854775808", True, id="int64-bounds"),
        pytest.param("Gt", "5", "9223372036854775808", False, id="overflow"),
    ],
)
def test_comparison_needs_canonical_integers(
    operator: str, tolerated: str, tainted: str, expected: bool
) -> None:
    toleration = tolerate("sla", operator, tolerated)
    sla = taint("sla", tainted)
    assert tolerates(toleration, sla, comparison_operators=True) is expected
    assert TolerationTable([toleration]).accepts(sla, comparison_operators=True) is expected


TAINTS = [
    taint("p", effect="PreferNoSchedule"),
    taint("x", effect="NoSchedule"),
    taint("y", effect="NoExecute"),
]


@pytest.mark.parametrize(
    ("tolerations", "effects", "expected"),
    [
        pytest.param([tolerate("x", "Exists")], HARD_EFFECTS, "y", id="T8-hard-effects"),
        pytest.param([tolerate("x", "Exists")], None, "p", id="all-effects"),
        pytest.param([], HARD_EFFECTS, "x", id="first-in-node-order"),
        pytest.param([tolerate(operator="Exists")], None, None, id="all-tolerated"),
        pytest.param([], (), None, id="no-effect-asked"),
    ],
)
def test_first_untolerated_taint(
    tolerations: list[Toleration], effects: frozenset[str] | None, expected: str | None
) -> None:
    found = first_untolerated(TAINTS, TolerationTable(tolerations), effects)
    assert (None if found is None else found.key) == expected


def test_soft_count_reads_only_soft_taints_and_tolerations() -> None:
    taints = [*TAINTS, taint("q", effect="PreferNoSchedule"), taint("r", "1", "PreferNoSchedule")]
    tolerations = soft_tolerations(
        [
            tolerate("p", "Exists", effect="NoSchedule"),
            tolerate("q", "Exists"),
            tolerate("r", "Equal", "2", "PreferNoSchedule"),
        ]
    )
    assert [toleration.key for toleration in tolerations] == ["q", "r"]
    assert untolerated_soft_count(taints, TolerationTable(tolerations)) == 2


KEYS, EFFECTS = ("", "a", "b"), ("", "NoSchedule", "NoExecute", "PreferNoSchedule")
VALUES = ("", "x", "1", "2", "3", "03", "-1", "9223372036854775808")
some_tolerations = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(KEYS),
        operator=st.sampled_from(("", "Equal", "Exists", "Lt", "Gt", "exists")),
        value=st.sampled_from(VALUES),
        effect=st.sampled_from(EFFECTS),
        toleration_seconds=st.integers(0, 9),
    ),
    max_size=8,
)
some_taints = st.builds(
    Taint,
    key=st.sampled_from(KEYS),
    value=st.sampled_from(VALUES),
    effect=st.sampled_from(EFFECTS),
)


@given(tolerations=some_tolerations, tainted=some_taints, compares=st.booleans())
def test_a_lookup_finds_what_comparing_with_each_finds(
    tolerations: list[Toleration], tainted: Taint, compares: bool
) -> None:
    accepting = [
        each for each in tolerations if tolerates(each, tainted, comparison_operators=compares)
    ]
    table = TolerationTable(tolerations)
    first = table.first(tainted, comparison_operators=compares)
    assert first is (accepting[0] if accepting else None)
    assert table.accepts(tainted, comparison_operators=compares) is bool(accepting)


class _Counted:
    """A toleration that counts how often it is read."""

    def __init__(self, toleration: Toleration) -> None:
        self._toleration = toleration
        self.read_count = 0

    def _read(self, name: str) -> str:
        self.read_count += 1
        return attrgetter(name)(self._toleration)

    key = property(lambda self: self._read("key"))
    operator = property(lambda self: self._read("operator"))
    value = property(lambda self: self._read("value"))
    effect = property(lambda self: self._read("effect"))


@pytest.mark.parametrize("operator", ["Equal", "Exists", "Lt", "Gt"])
def test_each_toleration_is_read_once_for_any_number_of_taints(operator: str) -> None:
    tolerations = [_Counted(tolerate("key", operator, str(number))) for number in range(100)]
    table = TolerationTable(tolerations)
    for number in range(100):
        table.accepts(taint(f"other-{number}"), comparison_operators=True)
    assert all(each.read_count <= 4 for each in tolerations)
