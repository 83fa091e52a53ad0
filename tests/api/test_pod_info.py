"""Derived values of a pod (spec 01 §5, §12, §13.1)."""

from weakref import ref

import pytest

from kubestow.api.labels import EVERYTHING, NOTHING, selector_from_map
from kubestow.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubestow.api.node_selector import ANY_NODE
from kubestow.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    PersistentVolumeClaimSource,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Volume,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import AffinityTerm, PodClass, PodInfo, WeightedTerm
from kubestow.api.pod_shape import PodShape
from kubestow.api.ports import HostPort
from kubestow.api.quantity import parse_quantity

ALL = LabelSelector()
TEAM_A = LabelSelector(match_labels={"team": "a"})
NOT_TEAM_A = LabelSelector(
    match_expressions=(LabelSelectorRequirement(key="team", operator="NotIn", values=("a",)),)
)


def make_pod(
    *,
    name: str = "p",
    uid: str = "u",
    labels: dict[str, str] | None = None,
    cpu: str = "100m",
    affinity: Affinity | None = None,
    node_selector: dict[str, str] | None = None,
    priority: int | None = None,
    nominated_node_name: str = "",
) -> Pod:
    requests = ResourceRequirements(requests={"cpu": parse_quantity(cpu)})
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=uid, labels=labels or {}),
        spec=PodSpec(
            containers=(Container(resources=requests, ports=(ContainerPort(host_port=80),)),),
            affinity=affinity,
            node_selector=node_selector,
            priority=priority,
            volumes=(
                Volume(persistent_volume_claim=PersistentVolumeClaimSource(claim_name="d")),
                Volume(),
                Volume(persistent_volume_claim=PersistentVolumeClaimSource(claim_name="d")),
            ),
        ),
        status=PodStatus(nominated_node_name=nominated_node_name),
    )


def near(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=terms))


def apart(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=terms))


def only_term(term: PodAffinityTerm) -> AffinityTerm:
    (converted,) = PodInfo(make_pod(affinity=near(term))).required_affinity_terms
    return converted


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(PodAffinityTerm(label_selector=ALL), "yes no no no", id="A1"),
        pytest.param(PodAffinityTerm(), "no no no no", id="A2"),
        pytest.param(
            PodAffinityTerm(label_selector=ALL, namespaces=("x",)), "no yes no no", id="A3"
        ),
        pytest.param(
            PodAffinityTerm(label_selector=ALL, namespace_selector=LabelSelector()),
            "yes yes yes yes",
            id="A4",
        ),
        pytest.param(
            PodAffinityTerm(label_selector=ALL, namespace_selector=TEAM_A), "no no yes no", id="A5"
        ),
        pytest.param(
            PodAffinityTerm(label_selector=ALL, namespaces=("x",), namespace_selector=TEAM_A),
            "no yes yes no",
            id="A6",
        ),
    ],
)
def test_term_selects_pods_of_namespaces(term: PodAffinityTerm, expected: str) -> None:
    converted = only_term(term)
    found = [
        converted.matches("ns", {}, {}),
        converted.matches("x", {}, {}),
        converted.matches("other", {}, {"team": "a"}),
        converted.matches("other", {}, {}),
    ]
    assert found == [word == "yes" for word in expected.split()]


def test_selector_by_absence_matches_every_namespace_of_unknown_labels() -> None:
    # A7: the caller passes no labels for the namespaces of existing pods.
    term = only_term(PodAffinityTerm(label_selector=ALL, namespace_selector=NOT_TEAM_A))
    assert term.matches("other", {}, {})
    assert not term.matches("other", {}, {"team": "a"})


def test_invalid_lists_are_empty_and_reported_together() -> None:
    no_values = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="a", operator="In", values=()),)
    )
    bogus = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Bogus"),))
    good = WeightedPodAffinityTerm(weight=7, pod_affinity_term=PodAffinityTerm(label_selector=ALL))
    info = PodInfo(
        make_pod(
            affinity=Affinity(
                pod_affinity=PodAffinity(
                    required=(
                        PodAffinityTerm(label_selector=ALL),
                        PodAffinityTerm(label_selector=no_values),
                    ),
                    preferred=(good,),
                ),
                pod_anti_affinity=PodAffinity(required=(PodAffinityTerm(label_selector=bogus),)),
            )
        )
    )
    assert info.required_affinity_terms == ()
    assert info.required_anti_affinity_terms == ()
    assert [entry.weight for entry in info.preferred_affinity_terms] == [7]
    assert info.terms.error == (
        "[requiredAffinityTerms: values: Invalid value: null:"
        " for 'in', 'notin' operators, values set can't be empty,"
        ' requiredAntiAffinityTerms: "Bogus" is not a valid label selector operator]'
    )  # A8
    assert info.has_required_anti_affinity


def test_one_invalid_list_is_reported_without_brackets() -> None:
    bogus = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Gt"),))
    term = WeightedPodAffinityTerm(
        weight=1, pod_affinity_term=PodAffinityTerm(namespace_selector=bogus)
    )
    anti = PodAffinity(preferred=(term,))
    info = PodInfo(make_pod(affinity=Affinity(pod_anti_affinity=anti)))
    assert info.preferred_anti_affinity_terms == ()
    assert info.terms.error == (
        'preferredAntiAffinityTerms: "Gt" is not a valid label selector operator'
    )


def test_terms_keep_their_order_and_fields() -> None:
    listed = PodAffinityTerm(
        label_selector=TEAM_A, namespaces=("x", "y"), topology_key="zone", namespace_selector=ALL
    )
    plain = PodAffinityTerm(topology_key="host")
    info = PodInfo(
        make_pod(
            affinity=Affinity(
                pod_anti_affinity=PodAffinity(
                    required=(listed, plain),
                    preferred=(WeightedPodAffinityTerm(weight=3, pod_affinity_term=plain),),
                )
            )
        )
    )
    own = AffinityTerm(frozenset({"ns"}), NOTHING, NOTHING, "host")
    assert info.required_anti_affinity_terms == (
        AffinityTerm(frozenset({"x", "y"}), EVERYTHING, selector_from_map({"team": "a"}), "zone"),
        own,
    )
    assert info.preferred_anti_affinity_terms == (WeightedTerm(own, 3),)
    assert info.terms.error == ""


def test_equal_terms_of_two_pods_are_one() -> None:
    left = only_term(PodAffinityTerm(label_selector=LabelSelector(match_labels={"a": "b"})))
    right = only_term(PodAffinityTerm(label_selector=LabelSelector(match_labels={"a": "b"})))
    assert left is right


@pytest.mark.parametrize(
    ("affinity", "has_affinity", "has_required_anti_affinity"),
    [
        pytest.param(None, False, False, id="none"),
        pytest.param(Affinity(), False, False, id="empty"),
        pytest.param(Affinity(pod_affinity=PodAffinity()), True, False, id="empty-affinity"),
        pytest.param(Affinity(pod_anti_affinity=PodAffinity()), True, False, id="I1-empty-anti"),
        pytest.param(near(PodAffinityTerm()), True, False, id="affinity"),
        pytest.param(apart(PodAffinityTerm()), True, True, id="I1-required-anti"),
    ],
)
def test_presence_of_affinity(
    affinity: Affinity | None, has_affinity: bool, has_required_anti_affinity: bool
) -> None:
    info = PodInfo(make_pod(affinity=affinity))
    assert info.has_affinity is has_affinity
    assert info.has_required_anti_affinity is has_required_anti_affinity


def test_identity_and_plain_values() -> None:
    info = PodInfo(make_pod(priority=-3))
    assert (info.uid, info.key, info.namespace, info.name) == ("u", "ns/p", "ns", "p")
    assert info.priority == -3
    assert PodInfo(make_pod()).priority == 0
    assert info.host_ports == (HostPort("0.0.0.0", "TCP", 80),)
    assert info.pvc_keys == ("ns/d", "ns/d")
    assert info.required_node_affinity is ANY_NODE
    assert info.accounted.requested.milli_cpu == 100


def test_pods_with_equal_labels_share_a_class() -> None:
    left = PodInfo(make_pod(labels={"a": "1", "b": "2"})).pod_class
    right = PodInfo(make_pod(labels={"b": "2", "a": "1"})).pod_class
    other = PodInfo(make_pod(labels={"a": "1"})).pod_class
    assert left is right
    assert left is not other
    assert PodClass.of("other", {"a": "1"}) is not other
    assert other.labels == {"a": "1"}


def test_new_version_keeps_terms_and_accounted_request() -> None:
    first = near(PodAffinityTerm(topology_key="old"))
    second = near(PodAffinityTerm(topology_key="new"))
    info = PodInfo(make_pod(affinity=first))
    assert info.required_affinity_terms[0].topology_key == "old"
    assert info.accounted.requested.milli_cpu == 100
    newer = make_pod(
        affinity=second, cpu="2", labels={"a": "1"}, node_selector={"k": "v"}, priority=9
    )
    info.update(newer)
    assert info.pod is newer
    assert info.required_affinity_terms[0].topology_key == "old"
    assert info.accounted.requested.milli_cpu == 100
    # What upstream reads from the object each time does follow the new version.
    assert info.pod_class.labels == {"a": "1"}
    assert info.required_node_affinity.matches({"k": "v"}, "n")
    assert not info.required_node_affinity.matches({}, "n")
    assert info.priority == 9


@pytest.mark.parametrize(
    ("newer", "is_same_shape", "is_same_class"),
    [
        pytest.param(make_pod(nominated_node_name="n1"), True, True, id="status"),
        pytest.param(make_pod(labels={"a": "1"}), True, False, id="labels"),
        pytest.param(make_pod(node_selector={"k": "v"}), False, True, id="spec"),
        pytest.param(make_pod(cpu="2"), False, True, id="amount"),
        pytest.param(make_pod(uid="other"), True, True, id="another-pod"),
    ],
)
def test_an_update_keeps_what_would_be_derived_again(
    newer: Pod, is_same_shape: bool, is_same_class: bool
) -> None:
    info = PodInfo(make_pod())
    shape, pod_class = info.shape, info.pod_class
    info.update(newer)
    assert (info.shape is shape) == is_same_shape
    assert (info.pod_class is pod_class) == is_same_class
    assert info.shape is PodInfo(newer).shape
    assert info.pod_class is PodInfo(newer).pod_class


def test_an_update_of_the_status_derives_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    info = PodInfo(make_pod())
    shape = info.shape
    monkeypatch.setattr(PodShape, "of", None)
    info.update(make_pod(nominated_node_name="n1"))
    assert info.shape is shape


def test_other_pod_recomputes_everything() -> None:
    info = PodInfo(make_pod(affinity=near(PodAffinityTerm(topology_key="old"))))
    assert info.required_affinity_terms
    assert info.accounted.requested.milli_cpu == 100
    info.update(make_pod(name="q", uid="u2", cpu="2"))
    assert info.key == "ns/q"
    assert info.required_affinity_terms == ()
    assert info.accounted.requested.milli_cpu == 2000


def test_assigned_copy_carries_derived_values_over() -> None:
    info = PodInfo(make_pod(affinity=near(PodAffinityTerm(label_selector=ALL))))
    accounted, terms, pod_class = info.accounted, info.terms, info.pod_class
    placed = info.assigned_to("n1")
    assert placed.pod.spec.node_name == "n1"
    assert info.pod.spec.node_name == ""
    assert placed.accounted is accounted
    assert placed.terms is terms
    assert placed.pod_class is pod_class
    assert (placed.uid, placed.key, placed.priority) == (info.uid, info.key, info.priority)


def test_classes_are_freed_with_their_last_pod() -> None:
    gone = ref(PodInfo(make_pod(labels={"only": "one"})).pod_class)
    assert gone() is None
