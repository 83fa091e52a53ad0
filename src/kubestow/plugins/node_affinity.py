"""Places pods on nodes that match their node selector and node affinity (spec 05 §7).

A profile may add an affinity to every pod (`addedAffinity`). Added terms have to parse when the
profile is built; a pod's own required terms that do not parse match no node.
"""

from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from kubestow.api.labels import SelectorError
from kubestow.api.node import Node
from kubestow.api.node_selector import (
    NAME_FIELD,
    CompiledNodeSelector,
    PreferredTerms,
    RequiredNodeAffinity,
    compile_node_selector,
)
from kubestow.api.pod import NodeAffinity as PodNodeAffinity
from kubestow.api.pod import NodeSelectorTerm, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray
from kubestow.config.plugin_args import NodeAffinityArgs
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFilterResult, Restriction
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.node_match import matches_required, matches_selector, preferred_score
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases
from kubestow.plugins._shared.normalise import normalise
from kubestow.plugins._shared.per_pod import PerPod

_CONFLICT: Final = Status.unresolvable("pod affinity terms conflict")
# Filter codes and what they mean.
_POD_MISMATCH: Final = 1
_ADDED_MISMATCH: Final = 2
_STATUSES: Final = {
    _POD_MISMATCH: Status.unresolvable("node(s) didn't match Pod's node affinity/selector"),
    _ADDED_MISMATCH: Status.unresolvable("node(s) didn't match scheduler-enforced node affinity"),
}
_PRE_SCORE: Final = "PreScoreNodeAffinity"
_NO_TERMS: Final = PreferredTerms()


class NodeAffinity:
    name: ClassVar[str] = "NodeAffinity"
    args_type: ClassVar[type[NodeAffinityArgs]] = NodeAffinityArgs
    reuse: ClassVar[Reuse] = Reuse(
        filter=Reads.NODE, score=Reads.NODE, pod=PodReads.SPEC, basis=bases.node_affinity
    )

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        added = args.added_affinity or PodNodeAffinity()
        self.added_required = _added_required(added)
        self._added_preferred = _added_preferred(added)

    def events(self) -> Registrations:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._hint_for_node)]

    # --- filtering ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        affinity = _affinity_of(pod.pod)
        required = None if affinity is None else affinity.required
        # An empty selector does not skip the filter; it matches every node.
        has_selector = pod.pod.spec.node_selector is not None
        if required is None and self.added_required is None and not has_selector:
            return Status.skip()
        if required is None or not required.node_selector_terms:
            return None
        names = _named_nodes(required.node_selector_terms)
        if names is None:
            return None
        return Restriction(names) if names else _CONFLICT

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        required = pod.required_node_affinity
        codes: IntArray | None = None
        if not required.is_any:
            codes = _code_mismatches(matches_required(nodes, required), _POD_MISMATCH)
        if self.added_required is not None:
            matches = matches_selector(nodes, self.added_required)
            mismatches = _code_mismatches(matches, _ADDED_MISMATCH)
            # The profile's affinity is checked first, so its code wins where both fail.
            if mismatches is not None:
                codes = mismatches if codes is None else np.where(matches, codes, mismatches)
        return codes

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_node_affinity(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _STATUSES[code]

    # --- scoring ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        affinity = _affinity_of(pod.pod)
        has_preferred = affinity is not None and affinity.preferred is not None
        if not has_preferred and self._added_preferred is None:
            return Status.skip()
        state.write(_PRE_SCORE, _preferred_of(pod.pod))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        preferred: PreferredTerms = state.get(_PRE_SCORE) or _preferred_of(pod.pod)
        scores = preferred_score(nodes, preferred)
        if self._added_preferred is not None:
            scores += preferred_score(nodes, self._added_preferred)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return normalise(scores)

    # --- events ---

    def _hint_for_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        added = self.added_required
        if added is not None and not added.matches(new.metadata.labels, new.metadata.name):
            return Hint.SKIP
        required = _required_of(pod)
        if not _matches(required, new):
            return Hint.SKIP
        # As upstream, the added affinity is not checked on the old node.
        return Hint.SKIP if old is not None and _matches(required, old) else Hint.QUEUE


def _required_count(pod: Pod) -> int:
    affinity = _affinity_of(pod)
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms
    return len(pod.spec.node_selector or ()) + sum(
        len(term.match_expressions) + len(term.match_fields) for term in terms
    )


_required_of: Final = PerPod(RequiredNodeAffinity.of, _required_count)


def _affinity_of(pod: Pod) -> PodNodeAffinity | None:
    affinity = pod.spec.affinity
    return None if affinity is None else affinity.node_affinity


def _added_required(added: PodNodeAffinity) -> CompiledNodeSelector | None:
    if added.required is None:
        return None
    try:
        return compile_node_selector(added.required, strict=True)
    except SelectorError as error:
        raise ConfigError(
            f"parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: {error}"
        ) from error


def _added_preferred(added: PodNodeAffinity) -> PreferredTerms | None:
    if not added.preferred:
        return None
    try:
        return PreferredTerms.of(added.preferred)
    except SelectorError as error:
        raise ConfigError(
            f"parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: {error}"
        ) from error


def _preferred_of(pod: Pod) -> PreferredTerms:
    affinity = _affinity_of(pod)
    if affinity is None or not affinity.preferred:
        return _NO_TERMS
    try:
        return PreferredTerms.of(affinity.preferred)
    except SelectorError as error:
        raise PluginError(str(error)) from error


def _named_nodes(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """The only nodes the terms can match, by the names they list; None if they list none.

    Spec 05 §7.2: this reads raw values only, so a term that does not parse names nodes too.
    """
    names: set[str] = set()
    for term in terms:
        listed = [
            frozenset(field.values or ())
            for field in term.match_fields
            if field.key == NAME_FIELD and field.operator == "In"
        ]
        if not listed:
            return None
        names |= listed[0].intersection(*listed[1:])
    return frozenset(names)


def _code_mismatches(matches: BoolArray, code: int) -> IntArray | None:
    return None if matches.all() else np.where(matches, 0, code)


def _matches(required: RequiredNodeAffinity, node: Node) -> bool:
    labels, name = node.metadata.labels, node.metadata.name
    error = required.match_error(labels, name)
    if error:
        raise PluginError(error)
    return required.matches(labels, name)
