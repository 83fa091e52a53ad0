"""Compares a step or a round of a run with the recorded one."""

from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.simulator.conformance.report import Comparer, Report
from kubestow.simulator.recorded_parts import (
    CHOICES,
    CLUSTER,
    EVENTS,
    MESSAGES,
    POST_FILTER,
    PRE_FILTER,
    QUEUE,
    RESERVE,
    SCORES,
    VERDICTS,
    WRITES,
)

_STATES: Final = (
    "active",
    "backoff",
    "errorBackoff",
    "gated",
    "unschedulable",
    "waiting",
    "inFlight",
    "assumed",
    "nominated",
    "groups",
    "queuedGroups",
    "incomplete",
    "pendingMembers",
)
# Part of an attempt → the part of the report it counts for.
_ATTEMPT_PARTS: Final = {
    "pod": QUEUE,
    "startNodeIndex": CHOICES,
    "preFilter": PRE_FILTER,
    "nodes": VERDICTS,
    "total": SCORES,
    "node": CHOICES,
    "evaluatedNodes": CHOICES,
    "feasibleNodes": CHOICES,
    "fitError": MESSAGES,
    "error": MESSAGES,
    "unschedulablePlugins": MESSAGES,
    "postFilter": POST_FILTER,
    "placement": QUEUE,
    "permit": RESERVE,
}


class RunComparer:
    """Compares one step; `is_equal` until something differs."""

    def __init__(self, report: Report, scenario: JsonObject, title: str) -> None:
        self.family: Final[str] = scenario["family"]
        self._report = report
        self._name: str = scenario["name"]
        self._title = title
        self._comparer: Comparer = report.comparer(self.family, self._name, title)
        self._differing = report.differing

    @property
    def is_equal(self) -> bool:
        return self._report.differing == self._differing

    def compare_step(self, expected: JsonObject, got: JsonObject) -> None:
        for key in ("at", "error", "reaped"):
            self._equal(CLUSTER, key, expected, got)
        self._compare_effects(expected.get("async", {}), got.get("async", {}))

    def compare_round(self, number: int, expected: JsonObject, got: JsonObject) -> None:
        title = f"{self._title}, round {number} ({got['popped']})"
        self._comparer = self._report.comparer(self.family, self._name, title)
        for key in ("popped", "from", "group", "pods", "composite"):
            self._equal(QUEUE, key, expected, got)
        for key in ("nodeOrder", "during"):
            self._equal(CLUSTER, key, expected, got)
        for key in ("placements", "placementsStatus", "feasible"):
            self._equal(CHOICES, key, expected, got)
        self._equal(POST_FILTER, "groupPostFilter", expected, got)
        self._compare_attempts(expected.get("attempts", []), got.get("attempts", []))
        if expected.get("composite"):
            got["writes"] = _without_waits(got.get("writes", []))
        self._compare_effects(expected, got)
        self.compare_state(expected.get("state", {}), got["state"])
        self._comparer = self._report.comparer(self.family, self._name, self._title)

    def compare_round_count(self, expected: int, got: int) -> None:
        self._comparer.equal(QUEUE, "rounds", expected, got)

    def compare_state(self, expected: JsonObject, got: JsonObject) -> None:
        for key in _STATES:
            self._equal(QUEUE, key, expected, got)

    def compare_final(self, expected: JsonObject, got: JsonObject) -> None:
        for key in sorted(expected.keys() | got.keys()):
            self._equal(WRITES, f"{key}", expected, got)

    def _compare_attempts(self, expected: list[JsonObject], got: list[JsonObject]) -> None:
        # Simulations of a preemption are not compared: what they lead to is.
        expected = [attempt for attempt in expected if not attempt.get("dryRun")]
        self._comparer.equal(QUEUE, "attempts", len(expected), len(got))
        for recorded, ours in zip(expected, got, strict=False):
            for key in sorted(recorded.keys() | ours.keys()):
                self._equal(_ATTEMPT_PARTS.get(key, CHOICES), key, recorded, ours)

    def _compare_effects(self, expected: JsonObject, got: JsonObject) -> None:
        """What was sent back to the queue, written and reported."""
        self._equal(MESSAGES, "failures", expected, got)
        self._by_name(WRITES, "name", expected.get("writes", []), got.get("writes", []))
        events = [_without_related(event) for event in expected.get("events", [])]
        self._by_name(EVENTS, "object", events, got.get("events", []))

    def _by_name(
        self, part: str, key: str, expected: list[JsonObject], got: list[JsonObject]
    ) -> None:
        """The order counts for each object, not between objects."""
        names = sorted({entry[key] for entry in (*expected, *got)})
        for name in names:
            recorded = [entry for entry in expected if entry[key] == name]
            ours = [entry for entry in got if entry[key] == name]
            self._comparer.equal(part, name, recorded, ours)

    def _equal(self, part: str, key: str, expected: JsonObject, got: JsonObject) -> None:
        recorded: Any = expected.get(key)
        ours: Any = got.get(key)
        if recorded is not None or ours is not None:
            self._comparer.equal(part, key, recorded, ours)


def _without_waits(writes: list[JsonObject]) -> list[JsonObject]:
    """The writes without nominations of pods that waited at Permit and were bound.

    In a tree of groups it is left to chance which pods these are; they are not recorded.
    """
    bound = {write["name"] for write in writes if write["verb"] == "bind"}
    return [
        write
        for write in writes
        if write["name"] not in bound or write.get("body", {}).keys() != {"nominatedNodeName"}
    ]


def _without_related(event: JsonObject) -> JsonObject:
    """See `Observed.record`."""
    return {key: value for key, value in event.items() if key != "related"}
