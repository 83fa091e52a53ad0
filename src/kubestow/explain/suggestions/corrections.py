"""Names of the pod that are probably misspelt, put right."""

from collections.abc import Iterator, Sequence
from typing import Final

from kubestow.api.decode import convert, to_document
from kubestow.api.meta import Json, JsonObject
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import taint_text
from kubestow.cluster.documents import is_list, is_object
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Mistake
from kubestow.explain.evidence.spelling import find_mistakes
from kubestow.explain.suggestions.pod_parts import with_spec
from kubestow.explain.suggestions.pod_rules import toleration_of
from kubestow.explain.suggestions.remedy import CORRECT_NAME, Remedy, make_remedy
from kubestow.explain.suggestions.stuck_pod import StuckPod

# Where in a pod a name is, by the field that a mistake names.
_PARTS: Final = {
    "nodeSelector": (("spec", "nodeSelector"),),
    "nodeAffinity": (("spec", "affinity", "nodeAffinity"),),
    "podAffinity": (("spec", "affinity", "podAffinity"), ("spec", "affinity", "podAntiAffinity")),
    "topologySpreadConstraints": (("spec", "topologySpreadConstraints"),),
    "resources": (("spec", "containers"), ("spec", "initContainers")),
}


def correct_names(stuck: StuckPod) -> Iterator[Remedy]:
    """A change for each mistake that alone keeps the pod from some node; else one for all."""
    if stuck.rejected_early:
        return
    mistakes = find_mistakes(_context(stuck))
    found = [remedy for each in mistakes if (remedy := _correction(stuck, [each]))]
    if not found and len(mistakes) > 1 and (remedy := _correction(stuck, mistakes)):
        found = [remedy]
    yield from found


def _correction(stuck: StuckPod, mistakes: Sequence[Mistake]) -> Remedy | None:
    """The change that puts these right; None if the pod then fits nowhere."""
    pod = stuck.pod
    for mistake in mistakes:
        pod = _corrected(stuck, pod, mistake)
    if pod == stuck.pod or not stuck.fits(pod):
        return None
    # One name may be wrong in two places.
    texts = dict.fromkeys(_text(each) for each in mistakes)
    return make_remedy(CORRECT_NAME, f"write {', and '.join(texts)}", pod)


def _text(mistake: Mistake) -> str:
    key = f"{mistake.key}=" if mistake.key else ""
    return f"{key}{mistake.meant} instead of {key}{mistake.given}"


def misspelt_keys(stuck: StuckPod) -> set[str]:
    """Label keys of the pod that are mistakes: no node should get them."""
    found = find_mistakes(_context(stuck))
    return {each.given for each in found if each.kind == "LabelKey"} | {
        each.key for each in found if each.kind == "LabelValue"
    }


def _context(stuck: StuckPod) -> EvidenceContext:
    cluster, attempt = stuck.cluster, stuck.attempt
    return EvidenceContext(
        PodInfo(stuck.pod), attempt.profile, attempt.snapshot, cluster.objects, gates=cluster.gates
    )


def _corrected(stuck: StuckPod, pod: Pod, mistake: Mistake) -> Pod:
    if mistake.kind == "Toleration":
        return _with_toleration(stuck, pod, mistake)
    document = to_document(pod)
    for path in _PARTS[mistake.where]:
        part: Json = document
        for step in path[:-1]:
            part = part.get(step) if is_object(part) else None
        if is_object(part) and path[-1] in part:
            part[path[-1]] = _renamed(part[path[-1]], mistake)
    return convert(Pod, document)


def _renamed(value: Json, mistake: Mistake) -> Json:
    """A part of the pod with the name replaced where it is a key or a text."""
    given, meant = mistake.given, mistake.meant
    if is_list(value):
        return [_renamed(each, mistake) for each in value]
    if is_object(value):
        renamed: JsonObject = {}
        for key, each in value.items():
            is_other_label = bool(mistake.key) and isinstance(each, str) and key != mistake.key
            is_plain = key in ("values", "key", "operator", "topologyKey")
            kept = each if is_other_label and not is_plain else _renamed(each, mistake)
            renamed[meant if key == given and not mistake.key else key] = kept
        return renamed
    return meant if value == given else value


def _with_toleration(stuck: StuckPod, pod: Pod, mistake: Mistake) -> Pod:
    taints = [
        taint
        for node in stuck.snapshot.nodes
        for taint in node.spec.taints
        if taint_text(taint) == mistake.meant
    ]
    if not taints:
        return pod
    key = mistake.given.partition("=")[0]
    changed = [
        toleration_of(taints[:1]) if each.key == key else each for each in pod.spec.tolerations
    ]
    return with_spec(pod, tolerations=tuple(changed))
