"""All terms at once select what each of them selects."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import EVERYTHING, NOTHING, Requirement, Selector, equality
from kubestow.api.pod_info import AffinityTerm
from kubestow.plugins.inter_pod_affinity.joint_terms import JointTerms
from kubestow.testing.builders import make_pod

KEYS, VALUES, NAMESPACES = ("a", "b", "c"), ("x", "y", ""), ("default", "other")
values = st.frozensets(st.sampled_from(VALUES), min_size=1)
requirements = st.one_of(
    st.builds(equality, st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(("In", "NotIn")), values),
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(("Exists", "DoesNotExist"))),
)
selectors = st.one_of(
    st.sampled_from((NOTHING, EVERYTHING)), st.lists(requirements, max_size=3).map(Selector)
)
terms = st.builds(
    AffinityTerm,
    namespaces=st.frozensets(st.sampled_from(NAMESPACES)),
    namespace_selector=selectors,
    selector=selectors,
    topology_key=st.sampled_from(("zone", "host")),
)


@given(
    terms=st.lists(terms, max_size=4),
    namespace=st.sampled_from(NAMESPACES),
    labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)),
)
def test_they_select_a_pod_that_each_of_them_selects(
    terms: list[AffinityTerm], namespace: str, labels: dict[str, str]
) -> None:
    pod = make_pod("p", namespace=namespace, labels=labels)
    expected = bool(terms) and all(term.matches(namespace, labels, {}) for term in terms)
    joint = JointTerms(terms)
    assert joint.select(pod) is expected
    assert list(joint.keys) == list(dict.fromkeys(term.topology_key for term in terms))
