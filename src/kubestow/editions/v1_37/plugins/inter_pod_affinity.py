"""InterPodAffinity of v1.37: other hints (spec 12 §3.4), and namespaces by label (§8.1)."""

from kubestow.api.pod import Pod
from kubestow.api.pod_info import AffinityTerm
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.index.topology.measures import PodSet
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.inter_pod_affinity.hints import hint_for_node, required_terms
from kubestow.plugins.inter_pod_affinity.terms import TermResolver


class TermResolverV137(TermResolver):
    def _pods(self, term: AffinityTerm) -> PodSet:
        # An empty selector means all namespaces. Any other one is replaced by the names of those
        # that it matches, and not read again.
        selector = term.namespace_selector
        if selector.is_empty:
            return PodSet(None, term.selector)
        return PodSet(self._namespaces_of(term), term.selector)


class InterPodAffinityV137(InterPodAffinity):
    resolver_type = TermResolverV137

    def events(self) -> Registrations:
        return [
            on(
                Resource.ASSIGNED_POD,
                Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
                hint_for_assigned_pod,
            ),
            on(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, hint_for_node),
        ]


def hint_for_assigned_pod(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Whether an added, deleted or relabelled pod may help the waiting one.

    Of affinity terms all have to select it, of anti-affinity terms any.
    """
    near, apart = required_terms(pod)
    if old is None:
        helps = new is not None and near.select(new)
    elif new is None:
        helps = apart.any_selects(old) or required_terms(old).apart.any_selects(pod)
    else:
        helps = (near.select(new) and not near.select(old)) or (
            apart.any_selects(old) and not apart.any_selects(new)
        )
    return Hint.QUEUE if helps else Hint.SKIP
