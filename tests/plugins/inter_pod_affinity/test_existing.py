"""What terms of running pods come to is found once for pods that the same terms select."""

import pytest

from kubestow.api.pod_info import AffinityTerm, PodInfo
from kubestow.plugins.inter_pod_affinity import existing as existing_module
from kubestow.plugins.inter_pod_affinity.existing import ExistingTerms
from kubestow.testing.builders import make_pod
from kubestow.testing.topology import make_affinity, make_pod_term


def selecting(*keys: str) -> frozenset[AffinityTerm]:
    terms = [make_pod_term(key, "app=web") for key in keys]
    return frozenset(
        PodInfo(make_pod(affinity=make_affinity(apart=terms))).terms.required_anti_affinity
    )


def test_there_is_one_count_for_each_key() -> None:
    exposed = ExistingTerms(1).exposed(selecting("zone", "rack"))
    assert sorted(reading.key for reading in exposed.forbidding) == ["rack", "zone"]
    assert sorted(pulling.pull.key for pulling in exposed.pulling) == ["rack", "zone"]
    assert ExistingTerms(1).exposed(frozenset()) == ((), ())


def test_counts_are_found_again_for_a_limited_number_of_sets_of_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(existing_module, "EXPOSED_MAX", 2)
    existing = ExistingTerms(1)
    first = existing.exposed(selecting("zone"))
    assert existing.exposed(selecting("zone")) is first
    for number in range(3):
        existing.exposed(selecting(f"key-{number}"))
        assert len(existing._exposed) <= 2
    assert existing.exposed(selecting("zone")) is not first
