"""What every filter says about one node, not only the first one that rejects it.

Each plugin is asked by itself, its PreFilter first: the filters after a rejecting one are not asked
in a scheduling cycle, and those after a rejecting PreFilter could not be. As in a cycle, a node to
which other pods are nominated has to pass with them and without them.
"""

from collections.abc import Sequence

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.explain.explanation import FilterVerdict, NodeFilterAnswer
from kubestow.explain.reason_codes import reason_codes
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.plugin import (
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    Restriction,
)
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.runner import nominated_ahead, run_pre_filter
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import SimulatedNode, nodes_of


def filter_answers(
    profile: Profile,
    snapshot: Snapshot,
    pod: PodInfo,
    node_name: str,
    nominated: Sequence[PodInfo] = (),
) -> tuple[NodeFilterAnswer, ...]:
    """The answers about a node of the snapshot, in the order in which filters run.

    Of the pods nominated to the node, those of at least the pod's priority count.
    """
    row = snapshot.row_of(node_name)
    assert row is not None, node_name
    ahead = nominated_ahead(pod, nominated)
    plugins = {plugin_name(plugin): plugin for plugin in (*profile.filter, *profile.pre_filter)}
    return tuple(
        _answer(name, _Question(plugin, name, pod, SimulatedNode(snapshot, row), ahead))
        for name, plugin in plugins.items()
    )


def asked_filters(profile: Profile, snapshot: Snapshot, pod: PodInfo) -> list[str]:
    """The filters that an attempt asks, in their order: PreFilter may skip some."""
    state = CycleState()
    run_pre_filter(profile, state, pod, nodes_of(snapshot))
    names = map(plugin_name, profile.filter)
    return [name for name in names if name not in state.skip_filter]


def _answer(name: str, question: "_Question") -> NodeFilterAnswer:
    try:
        status = question.status()
    except Exception as error:  # A plugin of a user may raise anything.
        status = Status.from_error(error)
    if status is None:
        return NodeFilterAnswer(plugin=name, verdict="Passed")
    if status.code == Code.SKIP:
        return NodeFilterAnswer(plugin=name, verdict="Skipped")
    verdict: FilterVerdict = "Rejected" if status.is_rejected else "Error"
    return NodeFilterAnswer(
        plugin=name,
        verdict=verdict,
        code=status.code.label,
        reasons=status.all_reasons,
        reason_codes=reason_codes(name, status.all_reasons),
    )


class _Question:
    """One plugin, one pod, one node, and the pods nominated to it that count."""

    def __init__(
        self,
        plugin: object,
        name: str,
        pod: PodInfo,
        node: SimulatedNode,
        ahead: Sequence[PodInfo],
    ) -> None:
        self._plugin = plugin
        self._name = name
        self._pod = pod
        self._node = node
        self._ahead = ahead
        self._state = CycleState()

    def status(self) -> Status | None:
        """None if the plugin accepts the node."""
        status = self._pre_filter()
        if status is not None or not isinstance(self._plugin, FilterPlugin):
            return status
        if self._ahead:
            status = self._with_nominated(self._plugin)
            if status is not None:
                return status
        return self._filter(self._plugin, self._state, self._node)

    def _pre_filter(self) -> Status | None:
        plugin, node = self._plugin, self._node
        if not isinstance(plugin, PreFilterPlugin):
            return None
        answer = plugin.pre_filter(self._state, self._pod, nodes_of(node.snapshot))
        if isinstance(answer, Restriction):
            if node.info.name in answer.node_names:
                return None
            return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{self._name}]")
        return None if answer is None or answer.is_success else answer

    def _with_nominated(self, plugin: FilterPlugin) -> Status | None:
        node, state = self._node.clone(), self._state.clone()
        for other in self._ahead:
            node.add_pod(other)
            if isinstance(plugin, PreFilterExtensions):
                status = plugin.add_pod(state, self._pod, other, node.row)
                if status is not None and not status.is_success:
                    return status
        return self._filter(plugin, state, node)

    def _filter(
        self, plugin: FilterPlugin, state: CycleState, node: SimulatedNode
    ) -> Status | None:
        codes = plugin.filter(state, self._pod, node)
        code = 0 if codes is None else int(codes[0])
        return decode_status(plugin, state, code) if code else None
