"""Many selectors at once select what each of them selects by itself."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import Requirement, Selector
from kubestow.api.selector_index import SelectorIndex

KEYS = st.sampled_from("abcde")
VALUES = st.sampled_from(["1", "2", "3", ""])
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.frozensets(VALUES, min_size=1, max_size=3),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        lambda key, operator, number: Requirement(key, operator, frozenset(), number),
        KEYS,
        st.sampled_from(["Gt", "Lt"]),
        st.integers(0, 4),
    ),
)
SELECTORS = st.builds(Selector, st.lists(REQUIREMENTS, max_size=4))


@given(st.lists(SELECTORS, max_size=30), st.lists(st.dictionaries(KEYS, VALUES), max_size=4))
def test_as_one_by_one(selectors: list[Selector], pods: list[dict[str, str]]) -> None:
    index = SelectorIndex([selector.requirements for selector in selectors[: len(selectors) // 2]])
    for labels in pods:  # What was read before does not matter to selectors that are added.
        index.matching(labels)
    for selector in selectors[len(selectors) // 2 :]:
        index.add(selector.requirements)
    for labels in pods:
        expected = [
            position for position, selector in enumerate(selectors) if selector.matches(labels)
        ]
        assert index.matching(labels).tolist() == expected


def test_labels_that_no_selector_reads_are_many() -> None:
    index = SelectorIndex([[Requirement("a", "Exists")], [Requirement("b", "DoesNotExist")]])
    labels = {f"x{number}": "" for number in range(1_000)}
    assert index.matching(labels).tolist() == [1]
    assert index.matching({**labels, "a": "", "b": ""}).tolist() == [0]


def test_labels_that_no_selector_names_read_the_same() -> None:
    index = SelectorIndex(
        [[Requirement("a", "Exists")], [Requirement("b", "NotIn", frozenset("1"))]]
    )
    assert index.reading({"a": "x", "b": "y"}) == index.reading({"c": "", "b": "z", "a": "w"})
    assert index.reading({"a": "x", "b": "y"}) != index.reading({"a": "x", "b": "1"})
    numbers = SelectorIndex([[Requirement("n", "Gt", frozenset(), 3)]])
    assert numbers.reading({"n": "4"}) == numbers.reading({"n": "04"})
    assert numbers.reading({"n": "4"}) != numbers.reading({"n": "5"})
