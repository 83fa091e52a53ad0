"""Node selectors over all nodes agree with the same selectors on one node, also after changes."""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.node import Node
from kubestow.api.node_selector import PreferredTerms, RequiredNodeAffinity, compile_node_selector
from kubestow.api.pod import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.node_match import (
    matches_required,
    matches_selector,
    name_matches,
    preferred_score,
)
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.index.tracked import LabelColumn, LabelColumns
from kubestow.testing import make_node, make_node_affinity, make_pod, make_snapshot, make_term

KEYS = ["zone", "disk", "size"]
VALUES = ["a", "b", "", "4", "7"]

label_maps = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
expressions = st.builds(
    lambda key, operator_values: NodeSelectorRequirement(
        key=key, operator=operator_values[0], values=operator_values[1]
    ),
    st.sampled_from(KEYS),
    st.one_of(
        st.tuples(
            st.sampled_from(["In", "NotIn"]),
            st.lists(st.sampled_from(VALUES), min_size=1, max_size=3).map(tuple),
        ),
        st.tuples(st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
        st.tuples(st.sampled_from(["Gt", "Lt"]), st.sampled_from([("5",), ("x",), ("4", "5")])),
    ),
)
fields = st.builds(
    lambda operator, name: NodeSelectorRequirement(
        key="metadata.name", operator=operator, values=(name,)
    ),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n0", "n1", "gone"]),
)
terms = st.builds(
    lambda expressions, fields: NodeSelectorTerm(
        match_expressions=tuple(expressions), match_fields=tuple(fields)
    ),
    st.lists(expressions, max_size=3),
    st.lists(fields, max_size=1),
)
selectors = st.lists(terms, max_size=6).map(
    lambda terms: NodeSelector(node_selector_terms=tuple(terms))
)


VIEWS: dict[str, Callable[[Snapshot], Nodes]] = {
    "all": nodes_of,
    "backwards": lambda snapshot: nodes_of(snapshot, slice(None, None, -2)),
    "rows": lambda snapshot: nodes_of(snapshot, np.arange(len(snapshot))[::3]),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize(
    ("terms_max", "columns_max"),
    [
        pytest.param(16, 64, id="each-term"),
        pytest.param(0, 64, id="all-terms-together"),
        pytest.param(0, 0, id="many-keys"),
    ],
)
@given(
    labels=st.lists(label_maps, max_size=6),
    changes=st.lists(st.tuples(st.integers(0, 5), label_maps), max_size=3),
    selector=selectors,
    equalities=label_maps,
)
def test_masks_equal_one_node_at_a_time(
    view: Callable[[Snapshot], Nodes],
    terms_max: int,
    columns_max: int,
    labels: list[dict[str, str]],
    changes: list[tuple[int, dict[str, str]]],
    selector: NodeSelector,
    equalities: dict[str, str],
) -> None:
    pod = make_pod(
        node_selector=equalities, node_affinity=make_node_affinity(*selector.node_selector_terms)
    )
    required = RequiredNodeAffinity.of(pod)
    compiled = compile_node_selector(selector)
    preferred = PreferredTerms.of(
        [
            PreferredSchedulingTerm(weight=(5, -3, 100)[index % 3], preference=term)
            for index, term in enumerate(selector.node_selector_terms)
            if not compile_node_selector(NodeSelector(node_selector_terms=(term,))).errors
        ]
    )
    cache, snapshot = Cache(), Snapshot()
    for number, each in enumerate(labels):
        cache.add_node(make_node(f"n{number}", labels=each))
    # Masks are kept and must follow the nodes, so every step asks again.
    for number, each in [(-1, {}), *changes]:
        if 0 <= number < len(labels):
            name = f"n{number}"
            cache.update_node(cache.node(name).node, make_node(name, labels=each))
        snapshot.refresh(cache)
        nodes = view(snapshot)
        with (
            patch("kubestow.index.node_match.TERMS_BY_THEMSELVES_MAX", terms_max),
            patch("kubestow.index.node_match.REQUIREMENTS_KEPT_MAX", 4 * terms_max),
            patch("kubestow.index.term_rows.COLUMNS_READ_MAX", columns_max),
        ):
            mask, scores = matches_selector(nodes, compiled), preferred_score(nodes, preferred)
            required_mask = matches_required(nodes, required)
        assert scores.tolist() == [
            preferred.score(*_identity(node)) for node in nodes.node_objects()
        ]
        assert required_mask.tolist() == [
            required.matches(*_identity(node)) for node in nodes.node_objects()
        ]
        assert mask.tolist() == [
            compiled.matches(*_identity(node)) for node in nodes.node_objects()
        ]


def test_masks_of_different_lists_are_kept_apart() -> None:
    nodes = nodes_of(make_snapshot([make_node("n0", labels={"zone": "a"})]))
    pods = [
        make_pod(node_selector={"zone": "a"}),
        make_pod(node_selector={"zone": "a", "zz": "b"}),
        make_pod(node_selector={"zone": "b"}),
    ]
    masks = [matches_required(nodes, RequiredNodeAffinity.of(pod)).tolist() for pod in pods]
    assert masks == [[True], [False], [False]]


def test_preferred_score_sums_the_weights_of_matching_terms() -> None:
    nodes = nodes_of(
        make_snapshot(
            [make_node("n0", labels={"zone": "a"}), make_node("n1", labels={"disk": "ssd"})]
        )
    )
    affinity = make_node_affinity(
        preferred=[(20, make_term("zone In a")), (3, make_term(fields=["metadata.name In n0"]))]
    )
    preferred = PreferredTerms.of(affinity.preferred or ())
    assert preferred_score(nodes, preferred).tolist() == [23, 0]


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda snapshot: nodes_of(snapshot), id="all"),
        pytest.param(lambda snapshot: nodes_of(snapshot, slice(1, 4)), id="slice"),
        pytest.param(lambda snapshot: nodes_of(snapshot, slice(4, None, -2)), id="backwards"),
        pytest.param(lambda snapshot: nodes_of(snapshot, np.array([3, 0, 2])), id="rows"),
        pytest.param(lambda snapshot: SimulatedNode(snapshot, 2), id="simulated"),
    ],
)
def test_a_name_is_found_in_any_view(view: Callable[[Snapshot], Nodes]) -> None:
    nodes = view(make_snapshot([make_node(f"n{number}") for number in range(5)]))
    assert name_matches(nodes, "n2").tolist() == [name == "n2" for name in nodes.names]
    assert not name_matches(nodes, "n9").any()


def _identity(node: Node) -> tuple[dict[str, str], str]:
    return node.metadata.labels, node.metadata.name


def test_no_label_is_read_once_no_node_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    read = _count_columns(monkeypatch)
    nodes = nodes_of(
        make_snapshot(
            [
                make_node("n0", labels={"a": "1"}),
                make_node("n1", labels={"b": "1"}),
                make_node("n2", labels={"c": "1"}),
            ]
        )
    )
    wanted = {"a": "1", "b": "1", "c": "1"}
    required = PodInfo(make_pod(node_selector=wanted)).required_node_affinity
    assert not matches_required(nodes, required).any()
    assert read == ["a", "b"]


def test_a_label_that_no_node_has_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = _count_columns(monkeypatch)
    nodes = nodes_of(make_snapshot([make_node("n0", labels={"a": "1"}), make_node("n1")]))
    required = PodInfo(make_pod(node_selector={"a": "1", "b": "1"})).required_node_affinity
    assert not matches_required(nodes, required).any()
    assert read == []


def _count_columns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys whose columns are read from now on."""
    read: list[str] = []
    column = LabelColumns.column

    def counted(columns: LabelColumns, key: str) -> LabelColumn:
        read.append(key)
        return column(columns, key)

    monkeypatch.setattr(LabelColumns, "column", counted)
    return read
