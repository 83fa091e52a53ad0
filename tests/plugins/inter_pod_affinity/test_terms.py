"""Terms become measures once, until a Namespace changes or there are too many of them."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubestow.api.pod_info import AffinityTerms, PodClass, PodInfo
from kubestow.api.workload import Namespace
from kubestow.cache.objects import ObjectStore
from kubestow.plugins.inter_pod_affinity import terms as terms_module
from kubestow.plugins.inter_pod_affinity.terms import TermResolver
from kubestow.testing.builders import make_pod
from kubestow.testing.topology import make_affinity, make_pod_term


def terms_of(app: str) -> AffinityTerms:
    term = make_pod_term("zone", f"app={app}")
    return PodInfo(make_pod(affinity=make_affinity(apart=[term]))).terms


def test_measures_are_kept_until_a_namespace_changes() -> None:
    namespaces = ObjectStore[Namespace]()
    resolver = TermResolver(namespaces)
    first = resolver.required(terms_of("web"))
    assert resolver.required(terms_of("web")) is first
    namespaces.put(Namespace(metadata=ObjectMeta(name="team")))
    assert resolver.required(terms_of("web")) is not first


def test_measures_are_kept_for_a_limited_number_of_lists_of_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terms_module, "RESOLVED_MAX", 3)
    resolver = TermResolver(ObjectStore[Namespace]())
    for number in range(10):
        terms = terms_of(f"app-{number}")
        resolver.required(terms)
        resolver.preferred(terms)
        assert len(resolver._required) + len(resolver._preferred) <= 4


# --- Namespaces by label --------------------------------------------------------------------------


def stored(namespaces: dict[str, dict[str, str]]) -> ObjectStore[Namespace]:
    store = ObjectStore[Namespace]()
    for name, labels in namespaces.items():
        store.put(Namespace(metadata=ObjectMeta(name=name, labels=labels)))
    return store


def apart_in(*selectors: LabelSelector, namespaces: tuple[str, ...] = ()) -> AffinityTerms:
    """Terms that select all pods of namespaces with these labels, and of those that are listed."""
    terms = [
        make_pod_term("zone", f"app={number}", namespaces=namespaces, namespace_selector=selector)
        for number, selector in enumerate(selectors)
    ]
    return PodInfo(make_pod(affinity=make_affinity(apart=terms))).terms


namespace_labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"))
label_requirements = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from("abc"),
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(st.sampled_from("xyzw"), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from("abc"),
        operator=st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
namespace_selectors = st.builds(
    LabelSelector,
    match_expressions=st.lists(label_requirements, min_size=1, max_size=3).map(tuple),
)


@given(
    st.lists(namespace_labels, max_size=40),
    st.lists(namespace_selectors, min_size=1, max_size=40),
    st.lists(st.sampled_from(["n-0", "n-5", "gone"]), max_size=2).map(tuple),
)
def test_namespaces_of_many_terms_equal_one_term_at_a_time(
    labels: list[dict[str, str]], selectors: list[LabelSelector], listed: tuple[str, ...]
) -> None:
    by_name = {f"n-{number}": each for number, each in enumerate(labels)}
    resolver = TermResolver(stored(by_name))
    terms = apart_in(*selectors, namespaces=listed)
    measures = dict(resolver.required(terms).apart)
    for name in (*by_name, "gone", "other"):
        for number, term in enumerate(terms.required_anti_affinity):
            is_any = term.namespace_selector.matches({})
            is_there = name in by_name and term.namespace_selector.matches(by_name[name])
            expected = is_any or is_there or name in listed
            found = measures["zone"].weigh(PodClass.of(name, {"app": str(number)}))
            assert found == int(expected), (name, term)


def not_team(number: int) -> LabelSelector:
    """Of many selectors each is compared by labels: all namespaces but one."""
    team = LabelSelectorRequirement(key="team", operator="NotIn", values=(str(number),))
    return LabelSelector(
        match_expressions=(team, LabelSelectorRequirement(key="team", operator="Exists"))
    )


def test_equal_sets_of_namespaces_are_equal_after_a_change() -> None:
    store = stored({f"n-{number}": {"team": str(number)} for number in range(40)})
    resolver = TermResolver(store)
    terms = apart_in(*map(not_team, range(30)))
    before = resolver.required(terms).apart
    store.put(Namespace(metadata=ObjectMeta(name="other")))
    after = resolver.required(terms).apart
    assert after == before
    assert hash(after) == hash(before)
    store.put(Namespace(metadata=ObjectMeta(name="more", labels={"team": "x"})))
    assert resolver.required(terms).apart != before


def test_numbers_of_namespaces_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms_module, "UNUSED_NUMBERS_MAX", 10)
    store = ObjectStore[Namespace]()
    resolver = TermResolver(store)
    for number in range(200):
        namespace = Namespace(metadata=ObjectMeta(name=f"n-{number}", labels={"team": "x"}))
        store.put(namespace)
        resolver.required(apart_in(not_team(0)))
        assert len(resolver._matching._numbers) <= 13
        store.remove(f"n-{number}")


def test_terms_by_namespaces_take_memory_in_proportion_to_both() -> None:
    """Not to their product: 1,000 terms that each select all of 1,000 namespaces but one."""
    store = stored({f"n-{number}": {"team": str(number)} for number in range(1_000)})
    terms = apart_in(*map(not_team, range(1_000)))
    resolver = TermResolver(store)
    tracemalloc.start()
    try:
        ((_, measure),) = resolver.required(terms).apart
        assert measure.weigh(PodClass.of("n-7", {"app": "7"})) == 0
        assert measure.weigh(PodClass.of("n-7", {"app": "8"})) == 1
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 8 * 2**20
