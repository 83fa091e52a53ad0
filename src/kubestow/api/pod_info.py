"""A pod together with what the scheduler derives from it, each value computed once.

Queue, cache and plugins pass a `PodInfo` around instead of a `Pod`. Derived values are computed on
first use and kept: for most pods few of them are read, but those few in every cycle.
Pods of one controller share the results: namespaces with labels become a `PodClass`, affinity terms
are interned by content, so that counts and cached answers can be kept per class and per term.

Invariant: derived values never depend on `spec.nodeName`, so they survive `assigned_to`.
Not here: how requests add up (`requests`), how terms are matched over all pods (`plugins`).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from kubestow.api.labels import Selector, SelectorError, join_errors, parse_label_selector
from kubestow.api.node_selector import RequiredNodeAffinity
from kubestow.api.pod import (
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    assign,
    is_storage,
    priority_of,
)
from kubestow.api.pod import WeightedPodAffinityTerm as WeightedApiTerm
from kubestow.api.pod_shape import PodFrame, PodShape, full_shape
from kubestow.api.ports import HostPort, host_ports
from kubestow.api.requests import AccountedRequest, accounted_request, has_status_amounts
from kubestow.api.taints import TolerationTable

_CACHED_TERMS_MAX: Final = 4_096
# Longer texts are not kept: any pod may have one.
_LONG_TEXT: Final = 4096
_ENCODER: Final = msgspec.json.Encoder()


class PodInfo:
    """A pod and its derived values. Public attributes are read-only outside this class."""

    # Whether of two pods that have not started the later one on the node is more important.
    reverses_unstarted: ClassVar[bool] = True

    __slots__ = (
        "_accounted",
        "_has_older_values",
        "_host_ports",
        "_pod_class",
        "_pvc_keys",
        "_required_node_affinity",
        "_shape",
        "_terms",
        "_tolerations",
        "key",
        "name",
        "namespace",
        "pod",
        "priority",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        self._terms: AffinityTerms | None = None
        self._accounted: AccountedRequest | None = None
        self._has_older_values = False
        self._identify(pod)
        self._clear()

    def update(self, pod: Pod) -> None:
        """Replace the pod by a newer version of it, or by another pod.

        Spec 01 §12.1: within one UID the affinity terms and the accounted request stay as first
        computed, even if the new version would give other ones. The others stay if nothing that
        they are derived from differs: most updates of a waiting pod change its conditions.
        """
        old, is_other = self.pod, pod.metadata.uid != self.uid
        if is_other:
            self._terms = None
            self._accounted = None
        self._has_older_values = True
        self._identify(pod)
        if (
            is_other
            or old.spec != pod.spec
            or has_status_amounts(old.status)
            or has_status_amounts(pod.status)
        ):
            self._clear()
        elif old.metadata.labels != pod.metadata.labels:
            self._pod_class = None

    def renewed(self, pod: Pod) -> "PodInfo":
        """A PodInfo of this version alone: this one, if it has never had another."""
        return self if pod is self.pod and not self._has_older_values else type(self)(pod)

    def derive_as(self, earlier: "PodInfo") -> bool:
        """Take over what is derived from the spec of an earlier version, if nothing of it differs.

        Whether nothing does, so that at most the class is another one: an API server adds labels
        with the zone and region to a pod that it binds. The statuses of containers change what a
        pod counts if they have amounts; those of one that has just been bound have none.
        """
        old, new = earlier.pod, self.pod
        if (
            earlier._has_older_values
            or (old.spec is not new.spec and old.spec != new.spec)
            or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
            or has_status_amounts(old.status)
            or has_status_amounts(new.status)
        ):
            return False
        self._terms = earlier._terms
        self._accounted = earlier._accounted
        self._host_ports = earlier._host_ports
        self._pvc_keys = earlier._pvc_keys
        self._required_node_affinity = earlier._required_node_affinity
        if old.metadata.labels == new.metadata.labels:
            self._pod_class = earlier._pod_class
        return True

    def assigned_to(self, node_name: str) -> "PodInfo":
        """A copy whose pod is assigned to that node, with the derived values."""
        copy = object.__new__(type(self))
        copy.pod = assign(self.pod, node_name)
        copy.uid, copy.key, copy.priority = self.uid, self.key, self.priority
        copy.namespace, copy.name = self.namespace, self.name
        copy._terms = self._terms
        copy._has_older_values = self._has_older_values
        shape = self._shape
        if shape is not None:
            self._host_ports = shape.outline.host_ports
            if self._accounted is None:
                # Other editions have an `accounted` of their own; here it would only cost a call.
                own = type(self) is not PodInfo
                self._accounted = self.accounted if own else shape.accounted
        copy._accounted, copy._host_ports = self._accounted, self._host_ports
        copy._pvc_keys = self._pvc_keys
        copy._pod_class = self._pod_class
        copy._required_node_affinity = self._required_node_affinity
        # A pod on a node is not placed again.
        copy._shape = copy._tolerations = None
        return copy

    @property
    def accounted(self) -> AccountedRequest:
        """What the pod takes from its node (spec 01 §3.2, view A)."""
        if self._accounted is None:
            shape = self._shape
            self._accounted = accounted_request(self.pod) if shape is None else shape.accounted
        return self._accounted

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        if self._host_ports is None:
            shape = self._shape
            self._host_ports = host_ports(self.pod) if shape is None else shape.outline.host_ports
        return self._host_ports

    @property
    def pvc_keys(self) -> tuple[str, ...]:
        """`namespace/claim`, once per volume that names a claim (spec 01 §5)."""
        if self._pvc_keys is None:
            self._pvc_keys = pvc_keys(self.pod)
        return self._pvc_keys

    def mounts_storage(self) -> bool:
        """Whether some volume is backed by a claim, a driver or a disk."""
        return any(map(is_storage, self.pod.spec.volumes))

    @property
    def pod_class(self) -> "PodClass":
        """The class of all pods with this pod's namespace and labels."""
        if self._pod_class is None:
            self._pod_class = PodClass.of(self.namespace, self.pod.metadata.labels)
        return self._pod_class

    @property
    def shape(self) -> PodShape:
        """One object for all pods that rules about one node treat alike (`pod_shape`)."""
        if self._shape is None:
            self._shape = PodShape.of(self.pod)
        return self._shape

    @property
    def frame(self) -> PodFrame:
        """The shape less resources."""
        return self.shape.outline.frame(self.pod)

    @property
    def full_shape(self) -> Hashable:
        """Equal for pods that differ in names, claims and priority only."""
        return full_shape(self.pod, self.shape)

    @property
    def required_node_affinity(self) -> RequiredNodeAffinity:
        if self._required_node_affinity is None:
            self._required_node_affinity = RequiredNodeAffinity.of(self.pod)
        return self._required_node_affinity

    @property
    def tolerations(self) -> TolerationTable[Toleration]:
        if self._tolerations is None:
            self._tolerations = TolerationTable(self.pod.spec.tolerations)
        return self._tolerations

    @property
    def has_affinity(self) -> bool:
        """Whether the pod has pod (anti-)affinity; an empty `podAffinity: {}` counts."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        )

    @property
    def has_required_anti_affinity(self) -> bool:
        """Whether the pod lists required anti-affinity, valid or not."""
        affinity = self.pod.spec.affinity
        return (
            affinity is not None
            and affinity.pod_anti_affinity is not None
            and bool(affinity.pod_anti_affinity.required)
        )

    @property
    def terms(self) -> "AffinityTerms":
        """The four lists of pod affinity terms and their errors."""
        if self._terms is None:
            self._terms = affinity_terms(self.pod)
        return self._terms

    @property
    def required_affinity_terms(self) -> "tuple[AffinityTerm, ...]":
        return self.terms.required_affinity

    @property
    def required_anti_affinity_terms(self) -> "tuple[AffinityTerm, ...]":
        return self.terms.required_anti_affinity

    @property
    def preferred_affinity_terms(self) -> "tuple[WeightedTerm, ...]":
        return self.terms.preferred_affinity

    @property
    def preferred_anti_affinity_terms(self) -> "tuple[WeightedTerm, ...]":
        return self.terms.preferred_anti_affinity

    def __repr__(self) -> str:
        return f"PodInfo({self.key}, uid={self.uid!r}, node={self.pod.spec.node_name!r})"

    def _identify(self, pod: Pod) -> None:
        meta = pod.metadata
        self.pod = pod
        self.uid = meta.uid
        self.namespace = meta.namespace
        self.name = meta.name
        self.key = f"{meta.namespace}/{meta.name}"
        self.priority = priority_of(pod)

    def _clear(self) -> None:
        """Clear the values that may differ between two versions of one pod."""
        # Labels change freely, and a gated pod may still narrow its node selector.
        self._host_ports: tuple[HostPort, ...] | None = None
        self._pvc_keys: tuple[str, ...] | None = None
        self._pod_class: PodClass | None = None
        self._required_node_affinity: RequiredNodeAffinity | None = None
        self._shape: PodShape | None = None
        self._tolerations: TolerationTable[Toleration] | None = None


class PodClass:
    """All pods of one namespace with the same labels; or those that are being deleted, apart.

    Interned: equal classes are one object, as long as a reference to it exists.
    """

    __slots__ = ("__weakref__", "_terminating", "is_terminating", "labels", "namespace")

    def __init__(
        self, namespace: str, labels: Mapping[str, str], *, is_terminating: bool = False
    ) -> None:
        self.namespace: Final = namespace
        self.labels: Final = labels
        self.is_terminating: Final = is_terminating
        self._terminating: PodClass | None = None

    @property
    def terminating(self) -> "PodClass":
        """The class of those of these pods that are being deleted, where they count apart."""
        if self._terminating is None:
            self._terminating = PodClass(self.namespace, self.labels, is_terminating=True)
        return self._terminating

    @classmethod
    def of(cls, namespace: str, labels: Mapping[str, str]) -> "PodClass":
        key = (namespace, frozenset(labels.items()))
        found = _CLASSES.get(key)
        if found is None:
            found = _CLASSES[key] = cls(namespace, dict(labels))
        return found

    def __repr__(self) -> str:
        return f"PodClass({self.namespace!r}, {self.labels!r})"


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Which pods a term of pod (anti-)affinity selects, and its topology key."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term selects a pod of that namespace with those labels (spec 01 §12.2)."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


class WeightedTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    term: AffinityTerm
    weight: int


class AffinityTerms(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The four lists of a pod. A list with an invalid term is empty."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedTerm, ...] = ()
    error: str = ""

    @property
    def count(self) -> int:
        required = len(self.required_affinity) + len(self.required_anti_affinity)
        return required + len(self.preferred_affinity) + len(self.preferred_anti_affinity)


# Weak: every Job and every pod of a StatefulSet has its own labels, so classes have no bound.
_CLASSES: Final[WeakValueDictionary[tuple[str, frozenset[tuple[str, str]]], PodClass]] = (
    WeakValueDictionary()
)
_NO_AFFINITY: Final = PodAffinity()
_NO_TERMS: Final = AffinityTerms()
_ApiTerm = TypeVar("_ApiTerm", PodAffinityTerm, WeightedApiTerm)
_Term = TypeVar("_Term", AffinityTerm, WeightedTerm)


def pvc_keys(pod: Pod) -> tuple[str, ...]:
    """`namespace/claim` per volume with a claim; generic ephemeral volumes do not count."""
    if not pod.spec.volumes:
        return ()
    return tuple(
        f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )


def affinity_terms(pod: Pod) -> AffinityTerms:
    """Convert all four lists (spec 01 §12.1); an error empties its own list only."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return _NO_TERMS
    terms = affinity.pod_affinity, affinity.pod_anti_affinity
    # Equal pods are decoded one by one: their texts are compared faster than their parts.
    written = _TermsText(_ENCODER.encode(terms), terms)
    convert = _converted_terms if len(written.text) < _LONG_TEXT else _convert_terms
    return convert(pod.metadata.namespace, written)


class _TermsText(msgspec.Struct, frozen=True, gc=False):
    """Affinity as it was written; equal if the texts are."""

    text: bytes
    terms: tuple[PodAffinity | None, PodAffinity | None]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TermsText) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _convert_terms(namespace: str, written: _TermsText) -> AffinityTerms:
    near, apart = (part or _NO_AFFINITY for part in written.terms)
    errors: list[str] = []
    return AffinityTerms(
        required_affinity=_converted(
            namespace, "requiredAffinityTerms", near.required, _term, errors
        ),
        required_anti_affinity=_converted(
            namespace, "requiredAntiAffinityTerms", apart.required, _term, errors
        ),
        preferred_affinity=_converted(
            namespace, "preferredAffinityTerms", near.preferred, _weighted_term, errors
        ),
        preferred_anti_affinity=_converted(
            namespace, "preferredAntiAffinityTerms", apart.preferred, _weighted_term, errors
        ),
        error=join_errors(errors),
    )


_converted_terms: Final = lru_cache(_CACHED_TERMS_MAX)(_convert_terms)


def _converted(
    namespace: str,
    label: str,
    terms: Sequence[_ApiTerm],
    one: Callable[[str, _ApiTerm], _Term],
    errors: list[str],
) -> tuple[_Term, ...]:
    try:
        return tuple([one(namespace, term) for term in terms])
    except SelectorError as error:
        errors.append(f"{label}: {error}")
        return ()


def _term(namespace: str, term: PodAffinityTerm) -> AffinityTerm:
    selector = parse_label_selector(term.label_selector)
    namespace_selector = parse_label_selector(term.namespace_selector)
    namespaces = term.namespaces
    # Spec 01 §12.1: the pod's own namespace is the default only where the term has neither field.
    if not namespaces and term.namespace_selector is None:
        namespaces = (namespace,)
    return _interned_term(namespaces, namespace_selector, selector, term.topology_key)


def _weighted_term(namespace: str, term: WeightedApiTerm) -> WeightedTerm:
    return WeightedTerm(_term(namespace, term.pod_affinity_term), term.weight)


@lru_cache(_CACHED_TERMS_MAX)
def _interned_term(
    namespaces: tuple[str, ...], namespace_selector: Selector, selector: Selector, topology_key: str
) -> AffinityTerm:
    return AffinityTerm(frozenset(namespaces), namespace_selector, selector, topology_key)
