"""Patterns say of each node which selectors it matches, and follow selectors and labels."""

from collections.abc import Sequence
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import NOTHING, Selector, parse_label_selector
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledNodeSelector, compile_node_selector
from kubestow.api.pod import NodeSelector
from kubestow.cache.snapshot import Snapshot
from kubestow.index.nodes import nodes_of
from kubestow.index.selector_patterns import UNUSED_SELECTORS_MAX, SelectorPatterns
from kubestow.testing import make_cache, make_node, make_snapshot, make_term
from kubestow.testing.topology import make_selector

AnySelector = Selector | CompiledNodeSelector | None

KEYS = ("zone", "disk")
values = st.sampled_from(["a", "b", "c"])
labels = st.dictionaries(st.sampled_from(KEYS), values)
expressions = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(KEYS), st.sampled_from(["In", "NotIn"]), values),
    st.builds("{} In {},{}".format, st.sampled_from(KEYS), values, values),
    st.builds("{} {}".format, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"])),
)
terms = st.lists(expressions, min_size=1, max_size=2).map(lambda texts: make_term(*texts))
node_selectors = st.lists(terms, max_size=2).map(
    lambda chosen: compile_node_selector(NodeSelector(node_selector_terms=tuple(chosen)))
)
label_selectors = st.lists(expressions, max_size=2).map(
    lambda texts: parse_label_selector(make_selector(*texts))
)
selectors = st.one_of(st.none(), st.just(NOTHING), node_selectors, label_selectors)


def matches(selector: AnySelector, node: Node) -> bool:
    if selector is None:
        return True
    if isinstance(selector, Selector):
        return selector.matches(node.metadata.labels)
    return selector.matches(node.metadata.labels, "")


def check(patterns: SelectorPatterns, chosen: Sequence[AnySelector], snapshot: Snapshot) -> None:
    numbers = patterns.numbers(nodes_of(snapshot))
    for node, number in zip(snapshot.nodes, numbers.tolist(), strict=True):
        expected = {patterns.position_of(each) for each in chosen if matches(each, node)}
        assert set(patterns.pattern(number)) == expected
        assert all(number in patterns.patterns_with(position) for position in expected)


@given(
    st.lists(labels, min_size=1, max_size=4),
    st.lists(selectors, max_size=4),
    st.lists(selectors, max_size=3),
    labels,
    labels,
    st.sampled_from([0, 1, 16]),
)
def test_patterns_equal_a_test_of_each_selector_on_each_node(
    node_labels: list[dict[str, str]],
    first: list[AnySelector],
    more: list[AnySelector],
    changed: dict[str, str],
    added: dict[str, str],
    few: int,
) -> None:
    """Also where one or two selectors are treated as very many."""
    with mock.patch("kubestow.index.selector_patterns._CANDIDATES_FEW", few):
        check_patterns(node_labels, first, more, changed, added)


def check_patterns(
    node_labels: list[dict[str, str]],
    first: list[AnySelector],
    more: list[AnySelector],
    changed: dict[str, str],
    added: dict[str, str],
) -> None:
    nodes = [make_node(f"n{row}", labels=each) for row, each in enumerate(node_labels)]
    cache = make_cache(nodes)
    snapshot = Snapshot()
    snapshot.refresh(cache)
    patterns = SelectorPatterns()
    for selector in first:
        patterns.position_of(selector)
    check(patterns, first, snapshot)
    for selector in more:
        patterns.position_of(selector)
    cache.update_node(nodes[0], make_node("n0", labels=changed))
    cache.add_node(make_node("new", labels=added))
    snapshot.refresh(cache)
    check(patterns, [*first, *more], snapshot)


def test_nodes_of_equal_labels_share_a_pattern() -> None:
    nodes = [make_node(f"n{row}", labels={"zone": "ab"[row % 2]}) for row in range(6)]
    patterns = SelectorPatterns()
    for zone in "ab":
        patterns.position_of(parse_label_selector(make_selector(f"zone={zone}")))
    numbers = patterns.numbers(nodes_of(make_snapshot(nodes)))
    assert numbers.tolist() == [0, 1, 0, 1, 0, 1]
    assert [patterns.pattern(number) for number in range(patterns.pattern_count)] == [(0,), (1,)]


def test_equal_selectors_share_a_position() -> None:
    patterns = SelectorPatterns()
    positions = [
        patterns.position_of(parse_label_selector(make_selector("zone=a"))) for _ in range(2)
    ]
    assert positions == [0, 0]
    assert len(patterns) == 1


def test_fields_are_not_looked_at() -> None:
    term = make_term("zone In a", fields=["metadata.name In other"])
    selector = compile_node_selector(NodeSelector(node_selector_terms=(term,)))
    patterns = SelectorPatterns()
    patterns.position_of(selector)
    numbers = patterns.numbers(nodes_of(make_snapshot([make_node("n", labels={"zone": "a"})])))
    assert patterns.pattern(numbers[0]) == (0,)


def test_a_new_list_is_due_with_more_unused_selectors_than_are_kept() -> None:
    patterns = SelectorPatterns()
    for number in range(UNUSED_SELECTORS_MAX + 2):
        patterns.position_of(parse_label_selector(make_selector(f"app=a{number}")))
    assert patterns.has_many_unused(1)
    assert not patterns.has_many_unused(2)
