"""The terms a node counts follow its pods."""

from kubestow.api.meta import LabelSelector
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.owned_terms import owned_terms
from kubestow.testing.builders import make_pod

TERM = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "web"}), topology_key="z")
BAD = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "-"}), topology_key="z")


def pod_with_all_four(name: str) -> Pod:
    near = PodAffinity(
        required=(TERM,), preferred=(WeightedPodAffinityTerm(weight=3, pod_affinity_term=TERM),)
    )
    apart = PodAffinity(
        required=(TERM, TERM),
        preferred=(WeightedPodAffinityTerm(weight=5, pod_affinity_term=TERM),),
    )
    return make_pod(name, affinity=Affinity(pod_affinity=near, pod_anti_affinity=apart))


def counts(info: NodeInfo) -> dict[tuple[str, int], int]:
    return {(owned.kind, owned.weight): count for owned, count in info.term_counts.items()}


def test_a_node_counts_the_terms_of_its_pods_by_kind_and_weight() -> None:
    info = NodeInfo("n1")
    first, second = pod_with_all_four("a"), pod_with_all_four("b")
    info.add_pod(PodInfo(first))
    info.add_pod(PodInfo(second))
    info.add_pod(PodInfo(make_pod("plain")))
    assert counts(info) == {
        ("RequiredAffinity", 0): 2,
        ("RequiredAntiAffinity", 0): 4,
        ("PreferredAffinity", 3): 2,
        ("PreferredAntiAffinity", 5): 2,
    }
    info.remove_pod(first)
    assert counts(info)["RequiredAntiAffinity", 0] == 2
    info.remove_pod(second)
    assert info.term_counts == {}


def test_a_copy_counts_for_itself() -> None:
    info = NodeInfo("n1")
    pod = pod_with_all_four("a")
    info.add_pod(PodInfo(pod))
    copy = info.clone()
    copy.remove_pod(pod)
    assert copy.term_counts == {}
    assert len(info.term_counts) == 4


def test_a_list_with_a_mistake_owns_nothing_and_the_others_stay() -> None:
    pod = make_pod(
        affinity=Affinity(
            pod_affinity=PodAffinity(required=(TERM, BAD)),
            pod_anti_affinity=PodAffinity(required=(TERM,)),
        )
    )
    assert [owned.kind for owned in owned_terms(PodInfo(pod))] == ["RequiredAntiAffinity"]
