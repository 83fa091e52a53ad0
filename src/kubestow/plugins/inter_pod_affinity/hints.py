"""Which events may help a pod that affinity rules rejected (spec 06 §6.2.9, spec 02 §7.3).

Namespace selectors are not resolved but matched against no labels, so that a term with such a
selector selects only the namespaces it lists.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import AffinityTerm, affinity_terms
from kubestow.errors import PluginError
from kubestow.framework.events import Hint
from kubestow.plugins._shared.per_pod import PerPod

_NO_LABELS: Final[Mapping[str, str]] = {}


class _RequiredTerms(NamedTuple):
    near: tuple[AffinityTerm, ...]
    apart: tuple[AffinityTerm, ...]


def hint_for_pod(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Whether an added, deleted or relabelled pod may help the waiting one."""
    if old is not None and new is not None and new.metadata.uid == pod.metadata.uid:
        return Hint.QUEUE
    if _is_unplaced(old) or _is_unplaced(new):
        return Hint.SKIP
    near, apart = _required_terms(pod)
    if old is None:
        helps = new is not None and _all_match(near, new)
    elif new is None:
        helps = _all_match(apart, old) or _all_match(_required_terms(old).apart, pod)
    else:
        helps = (_all_match(near, new) and not _all_match(near, old)) or (
            _all_match(apart, old) and not _all_match(apart, new)
        )
    return Hint.QUEUE if helps else Hint.SKIP


def hint_for_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    """Whether a new node, or one that changed its domains, may fit the waiting pod."""
    near, apart = _required_terms(pod)
    labels = new.metadata.labels
    if old is None:
        helps = bool(apart) or any(term.topology_key in labels for term in near)
        return Hint.QUEUE if helps else Hint.SKIP
    before = old.metadata.labels
    for term in near:
        value = labels.get(term.topology_key)
        if value is not None and value != before.get(term.topology_key):
            return Hint.QUEUE
    for term in apart:
        value = before.get(term.topology_key)
        if value is not None and value != labels.get(term.topology_key):
            return Hint.QUEUE
    return Hint.SKIP


def _parse_required(pod: Pod) -> _RequiredTerms | PluginError:
    terms = affinity_terms(pod)
    affinity = pod.spec.affinity
    near = None if affinity is None else affinity.pod_affinity
    apart = None if affinity is None else affinity.pod_anti_affinity
    # A list with an invalid term is parsed as empty. Preferred lists do not matter here.
    is_broken = (near is not None and len(near.required) != len(terms.required_affinity)) or (
        apart is not None and len(apart.required) != len(terms.required_anti_affinity)
    )
    if is_broken:
        return PluginError(terms.error)
    return _RequiredTerms(terms.required_affinity, terms.required_anti_affinity)


_parsed: Final = PerPod(_parse_required)


def _required_terms(pod: Pod) -> _RequiredTerms:
    parsed = _parsed(pod)
    if isinstance(parsed, PluginError):
        raise parsed
    return parsed


def _is_unplaced(pod: Pod | None) -> bool:
    return pod is not None and not pod.spec.node_name and not pod.status.nominated_node_name


def _all_match(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Whether every term selects the pod; without terms, no."""
    return bool(terms) and all(
        term.matches(pod.metadata.namespace, pod.metadata.labels, _NO_LABELS) for term in terms
    )
