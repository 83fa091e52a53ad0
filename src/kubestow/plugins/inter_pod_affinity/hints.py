"""Which events may help a pod that affinity rules rejected (spec 06 §6.2.9, spec 02 §7.3)."""

from typing import Final, NamedTuple

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import affinity_terms
from kubestow.errors import PluginError
from kubestow.framework.events import Hint
from kubestow.plugins._shared.per_pod import PerPod
from kubestow.plugins.inter_pod_affinity.joint_terms import JointTerms


class RequiredTerms(NamedTuple):
    near: JointTerms
    apart: JointTerms


def hint_for_pod(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Whether an added, deleted or relabelled pod may help the waiting one."""
    if old is not None and new is not None and new.metadata.uid == pod.metadata.uid:
        return Hint.QUEUE
    if _is_unplaced(old) or _is_unplaced(new):
        return Hint.SKIP
    near, apart = required_terms(pod)
    if old is None:
        helps = new is not None and near.select(new)
    elif new is None:
        helps = apart.select(old) or required_terms(old).apart.select(pod)
    else:
        helps = (near.select(new) and not near.select(old)) or (
            apart.select(old) and not apart.select(new)
        )
    return Hint.QUEUE if helps else Hint.SKIP


def hint_for_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    """Whether a new node, or one that changed its domains, may fit the waiting pod."""
    near, apart = required_terms(pod)
    labels = new.metadata.labels
    if old is None:
        helps = bool(apart.keys) or any(key in labels for key in near.keys)
        return Hint.QUEUE if helps else Hint.SKIP
    before = old.metadata.labels
    for key in near.keys:
        value = labels.get(key)
        if value is not None and value != before.get(key):
            return Hint.QUEUE
    for key in apart.keys:
        value = before.get(key)
        if value is not None and value != labels.get(key):
            return Hint.QUEUE
    return Hint.SKIP


def _parse_required(pod: Pod) -> RequiredTerms | PluginError:
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
    return RequiredTerms(
        JointTerms(terms.required_affinity), JointTerms(terms.required_anti_affinity)
    )


def _term_count(pod: Pod) -> int:
    affinity = pod.spec.affinity
    if affinity is None:
        return 0
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    return len(near.required if near else ()) + len(apart.required if apart else ())


_parsed: Final = PerPod(_parse_required, _term_count)


def required_terms(pod: Pod) -> RequiredTerms:
    parsed = _parsed(pod)
    if isinstance(parsed, PluginError):
        raise parsed
    return parsed


def _is_unplaced(pod: Pod | None) -> bool:
    return pod is not None and not pod.spec.node_name and not pod.status.nominated_node_name
