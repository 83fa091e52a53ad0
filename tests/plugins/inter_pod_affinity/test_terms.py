"""Terms become measures once, until a Namespace changes or there are too many of them."""

import pytest

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod_info import AffinityTerms, PodInfo
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
