"""What the scheduler of a run does, collected in the form of the recording."""

from collections.abc import Mapping, Sequence

from kubestow.api.group import TreeNode
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod, key_of
from kubestow.engine.decision import Decision, FitError, Nomination
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.framework.group_cycle import Assignments, GroupPlacement
from kubestow.framework.placements import PlacementTotals
from kubestow.framework.status import SUCCESS, Status
from kubestow.queue import QueuedPod
from kubestow.simulator.conformance.compare import as_json


class Observed:
    """Attempts, failures and events since the last `take`."""

    def __init__(self) -> None:
        self._attempts: list[JsonObject] = []
        self._failures: list[JsonObject] = []
        self._events: list[JsonObject] = []
        self._placements: JsonObject = {}
        # The group that is tried, its members, and their keys by UID.
        self.group: tuple[str, list[str]] | None = None
        self.keys: dict[str, str] = {}
        self._feasible: list[JsonObject] = []
        self._post_filter: JsonObject = {}

    def take(self, writes: list[JsonObject]) -> JsonObject:
        """Everything since the last call, with these writes; empty parts are left out."""
        parts: JsonObject = {
            "attempts": self._attempts,
            "failures": self._failures,
            "events": self._events,
            "writes": writes,
            "feasible": self._feasible,
            "groupPostFilter": self._post_filter,
            **self._placements,
        }
        if self.group is not None:
            parts["group"], parts["pods"] = self.group
        self._attempts, self._failures, self._events = [], [], []
        self._placements, self.group = {}, None
        self._feasible, self._post_filter = [], {}
        return {key: value for key, value in parts.items() if value}

    def add_attempt(self, pod: str, decision: Decision) -> None:
        shown: JsonObject = {"pod": pod, "startNodeIndex": decision.start_index}
        if decision.is_scheduled:
            shown["node"] = decision.node_name
            shown["evaluatedNodes"] = decision.evaluated_count
            shown["feasibleNodes"] = decision.feasible_count
            if decision.scores is not None:
                shown["total"] = _totals(decision)
        elif decision.fit_error_text:
            shown |= _shown_misfit(decision)
        else:
            shown["error"] = decision.message
        self._attempts.append(shown)

    def complete_attempts(self, outcome: GroupOutcome, placement: GroupPlacement | None) -> None:
        """Add to the attempts of the members what only the trial of their group shows."""
        first = len(self._attempts) - len(outcome.members)
        for shown, member in zip(self._attempts[first:], outcome.members, strict=True):
            is_asked = outcome.asks_permit and member.assumed is not None
            if is_asked or member.permit is not None:
                shown["permit"] = (member.permit or SUCCESS).code.label
            if placement is not None:
                shown["placement"] = placement.name

    def add_placements(
        self,
        placements: Sequence[GroupPlacement] | Status,
        node_names: Sequence[str],
        part: TreeNode | None,
    ) -> None:
        if isinstance(placements, Status):
            self._placements["placementsStatus"] = as_json(placements)
            return
        group = {} if part is None else {"group": str(part.key)}
        self._placements.setdefault("placements", []).extend(
            {
                "name": placement.name,
                "nodes": [node_names[row] for row in placement.rows.tolist()],
                **group,
            }
            for placement in placements
        )

    def add_scores(
        self, candidates: Sequence[Assignments], totals: PlacementTotals, part: TreeNode | None
    ) -> None:
        # Of a part that was tried several times, the last ones.
        by_name = {
            shown["name"]: shown
            for shown in self._placements["placements"]
            if part is None or shown["group"] == str(part.key)
        }
        for assignments, scores, total in zip(
            candidates, totals.by_plugin, totals.total, strict=True
        ):
            shown = by_name[assignments.placement.name]
            shown["assigned"] = len(assignments.pods)
            shown["scores"] = scores
            shown["total"] = total

    def add_question(
        self, part: TreeNode, scheduled_count: int, remaining_count: int, answer: Status | None
    ) -> None:
        self._feasible.append(
            {
                "group": str(part.key),
                "scheduled": scheduled_count,
                "remaining": remaining_count,
                **as_json(answer or SUCCESS),
            }
        )

    def add_group_post_filter(self, status: Status, nominations: Mapping[str, str]) -> None:
        shown = as_json(status)
        if status.is_success:
            shown.pop("plugin", None)
        if nominations:
            shown["nominated"] = {self.keys[uid]: node for uid, node in nominations.items()}
        self._post_filter = shown

    def add_failure(
        self, queued_pod: QueuedPod, status: Status, nomination: Nomination | None
    ) -> None:
        shown: JsonObject = {
            "pod": queued_pod.key,
            "code": status.code.label,
            "message": status.message,
            "nominatedNode": None if nomination is None else nomination.node_name,
        }
        error = status.as_error()
        if isinstance(error, FitError):
            # Not from the queue's record: a plugin that gates the pod is added there.
            diagnosis = error.diagnosis
            shown["unschedulablePlugins"] = sorted(diagnosis.unschedulable_plugins)
            if diagnosis.pending_plugins:
                shown["pendingPlugins"] = sorted(diagnosis.pending_plugins)
        self._failures.append(shown)

    def record(
        self,
        regarding: Pod,
        *,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: ApiObject | None = None,
    ) -> None:
        """Note an event, as an `EventSink`.

        `related` is left out: the recorder noted the argument of the call, but v1.36 passes one
        that cannot be resolved, so that the event written has none (spec 09 §9.1).
        """
        self._events.append(
            {
                "object": f"Pod {key_of(regarding)}",
                "type": type,
                "reason": reason,
                "action": action,
                "note": note,
            }
        )


def _totals(decision: Decision) -> JsonObject:
    assert decision.scores is not None
    rows: list[int] = decision.feasible.tolist()
    names = (decision.node_names[row] for row in rows)
    return dict(zip(names, decision.scores.total.tolist(), strict=True))


def _shown_misfit(decision: Decision) -> JsonObject:
    diagnosis, status = decision.diagnosis, decision.post_filter_status
    shown: JsonObject = {
        "fitError": decision.fit_error_text,
        "unschedulablePlugins": sorted(diagnosis.unschedulable_plugins),
    }
    if diagnosis.pre_filter_message:
        shown["preFilter"] = diagnosis.pre_filter_message
    elif nodes := {
        decision.node_names[row]: as_json(verdict)
        for verdict, rows in diagnosis.rows_by_status()
        for row in rows.tolist()
    }:
        # PreFilter may have left no node for the filters.
        shown["nodes"] = nodes
    if status is not None:
        post_filter = as_json(status)
        if status.is_success:
            post_filter.pop("plugin", None)
        result = decision.post_filter
        post_filter["nominatedNode"] = None if result is None else result.nominated_node_name
        shown["postFilter"] = post_filter
    return shown
