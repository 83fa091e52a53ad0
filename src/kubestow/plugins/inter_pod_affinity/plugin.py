"""Places pods near, or away from, other pods (spec 06 §6.2)."""

from typing import Any, ClassVar, Final

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, NarrowArray
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFilterResult
from kubestow.framework.reuse import Concern, PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins.inter_pod_affinity.existing import ExistingTerms
from kubestow.plugins.inter_pod_affinity.filtering import STATUSES, FilterState
from kubestow.plugins.inter_pod_affinity.hints import hint_for_node, hint_for_pod
from kubestow.plugins.inter_pod_affinity.scoring import (
    DomainScores,
    domain_scores,
    hidden_scores,
    normalised,
    raw_scores,
)
from kubestow.plugins.inter_pod_affinity.standing import Standings
from kubestow.plugins.inter_pod_affinity.terms import TermResolver

_PRE_FILTER: Final = "PreFilterInterPodAffinity"
_PRE_SCORE: Final = "PreScoreInterPodAffinity"
_NOTHING: Final = Concern.NOTHING


class InterPodAffinity:
    name: ClassVar[str] = "InterPodAffinity"
    args_type: ClassVar[type[InterPodAffinityArgs]] = InterPodAffinityArgs
    # A later version reads namespace selectors in another way.
    resolver_type: ClassVar[type[TermResolver]] = TermResolver

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._snapshot = handle.snapshot
        self.reuse = Reuse(
            filter=Reads.PODS,
            score=Reads.PODS,
            pod=PodReads.CLUSTER,
            basis=self._concern,
        )
        self._resolver = self.resolver_type(handle.objects.namespaces)
        self._existing = ExistingTerms(args.hard_pod_affinity_weight)
        self._standings = Standings(handle.objects.namespaces, self._resolver, self._existing)
        self._ignores_existing = args.ignore_preferred_terms_of_existing_pods

    def events(self) -> Registrations:
        return [
            on(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, hint_for_pod),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, hint_for_node),
        ]

    # --- filtering ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        if _has_no_terms_anywhere(pod, nodes.snapshot):
            return Status.skip()
        if pod.terms.error:
            return Status.unresolvable(f"parsing pod: {pod.terms.error}")
        standing = self._standings.of(pod, nodes.snapshot)
        required = standing.required_counts()
        if required is None:
            return Status.skip()
        state.write(_PRE_FILTER, FilterState(pod, standing, required))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> None:
        filter_state_of(state, pod).add(added, row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> None:
        filter_state_of(state, pod).add(removed, row, -1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> NarrowArray | None:
        return filter_state_of(state, pod).codes(nodes)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        if pod.has_affinity:
            return None
        # Terms of other pods may select this one by its labels.
        return {} if self._ignores_existing else {"v1.Pod.Labels": pod.pod.metadata.labels}

    def filter_status(self, state: CycleState, code: int) -> Status:
        return STATUSES[code]

    def filter_rule(self, state: CycleState, pod: PodInfo) -> FilterState:
        return filter_state_of(state, pod)

    # --- scoring ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        scores = self._domain_scores(state, pod, nodes)
        if not scores:
            return Status.skip()
        state.write(_PRE_SCORE, scores)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        scores: list[DomainScores] = _read(state, _PRE_SCORE)
        return raw_scores(scores, nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return normalised(scores)

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        scores = self._domain_scores(state, pod, nodes)
        return self.normalize(state, pod, raw_scores(scores, nodes)) if scores else None

    def _domain_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[DomainScores]:
        """Empty if nothing scores."""
        has_preferred = _has_preferred(pod.pod)
        if _has_no_terms_anywhere(pod, nodes.snapshot) or (
            self._ignores_existing and not has_preferred
        ):
            return []
        if pod.terms.error:
            raise PluginError(f"failed to parse pod: {pod.terms.error}")
        standing = self._standings.of(pod, nodes.snapshot)
        counts = standing.counts
        preferred = self._resolver.preferred(pod.terms) if has_preferred else ()
        scores = domain_scores(preferred, standing.exposed.pulling, counts)
        hidden = nodes.snapshot.hidden_terms
        if hidden and has_preferred:
            labels = standing.namespace_labels
            scores += hidden_scores(self._existing, pod, labels, counts, hidden)
        return scores

    # --- reuse ---

    def _concern(self, pod: PodInfo) -> Concern:
        """Whether the pod has terms or an existing term selects it: any placed pod may then change
        its counts. And whether it may score nodes by them."""
        has_terms_anywhere = bool(self._snapshot.columns.affinity_rows)
        if pod.pod.spec.affinity is None and not has_terms_anywhere:
            return _NOTHING  # As for most pods.
        has_affinity = pod.has_affinity
        if has_affinity and _has_preferred(pod.pod):
            return Concern.BOTH
        if not has_terms_anywhere:
            return Concern.FILTER if has_affinity else _NOTHING
        standing = self._standings.of(pod, self._snapshot)
        if not has_affinity and not standing.exposed.is_any:
            return Concern.NOTHING
        may_score = not self._ignores_existing and standing.pulls()
        return Concern.BOTH if may_score else Concern.FILTER


def _has_no_terms_anywhere(pod: PodInfo, snapshot: Snapshot) -> bool:
    """Whether neither this pod nor any other has affinity terms."""
    return not pod.has_affinity and not snapshot.columns.affinity_rows


def _has_preferred(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    return bool((near and near.preferred) or (apart and apart.preferred))


def filter_state_of(state: CycleState, pod: PodInfo) -> FilterState:
    return _read(state, _PRE_FILTER)


def _read(state: CycleState, key: str) -> Any:
    try:
        return state.read(key)
    except PluginError as error:
        raise PluginError(f'error reading "{key}" from cycleState: {error}') from error
