"""Very many sets of pods at once agree with each by itself."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import NOTHING, Requirement, Selector
from kubestow.api.pod_info import PodClass
from kubestow.index.topology.measures import SETS_BY_THEMSELVES_MAX, InAll, WeightedSets
from kubestow.index.topology.pod_sets import PodSet, WeightTable

values = st.frozensets(st.sampled_from(["1", "2", "3"]), min_size=1)
requirements = st.one_of(
    st.builds(Requirement, st.sampled_from("ab"), st.sampled_from(["In", "NotIn"]), values),
    st.builds(Requirement, st.sampled_from("ab"), st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.one_of(st.lists(requirements, max_size=2).map(Selector), st.just(NOTHING))
namespaces = st.none() | st.frozensets(st.sampled_from(["x", "y"]))
pod_sets = st.builds(PodSet, namespaces, selectors)
labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("123"))


@given(
    st.lists(st.tuples(pod_sets, st.integers(-100, 100)), max_size=8),
    st.sampled_from(["x", "y", "z"]),
    labels,
)
def test_weights_equal_one_set_at_a_time(
    entries: list[tuple[PodSet, int]], namespace: str, labels: dict[str, str]
) -> None:
    pod_class = PodClass.of(namespace, labels)
    expected = sum(weight for pods, weight in entries if pods.has(pod_class))
    assert WeightTable(entries).weigh(pod_class) == expected


@given(st.lists(pod_sets, min_size=SETS_BY_THEMSELVES_MAX + 1, max_size=20), labels)
def test_measures_of_many_sets_equal_one_set_at_a_time(
    sets: list[PodSet], labels: dict[str, str]
) -> None:
    pod_class = PodClass.of("x", labels)
    found = [pods.has(pod_class) for pods in sets]
    assert InAll(tuple(sets)).weigh(pod_class) == int(all(found))
    assert WeightedSets(tuple((pods, 2) for pods in sets)).weigh(pod_class) == 2 * sum(found)


def test_weights_are_kept_for_so_many_kinds_of_pods() -> None:
    sets = [
        (
            PodSet(
                None, Selector([Requirement("a", "Exists"), Requirement("b", "In", frozenset(v))])
            ),
            1,
        )
        for v in "0123456789"
    ]
    table = WeightTable(sets)
    assert table._others is not None
    with mock.patch("kubestow.index.topology.pod_sets.READINGS_MAX", 3):
        for number in range(10):
            assert table.weigh(PodClass.of("x", {"a": "", "b": str(number)})) == 1
            assert len(table._others._known) <= 3
    table.weigh(PodClass.of("x", {"a": "1", "c": "1"}))
    known = len(table._others._known)
    assert table.weigh(PodClass.of("x", {"a": "2", "c": "2"})) == 0
    assert len(table._others._known) == known  # They read the same.
