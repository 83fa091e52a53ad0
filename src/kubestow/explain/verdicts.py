"""The verdict on each node, and the nodes of each reason, from a frozen decision."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubestow.engine.frozen_decision import FrozenDecision, FrozenStatus
from kubestow.explain.explanation import (
    NodeExplanation,
    PluginScore,
    ReasonGroup,
    SearchEnd,
    Verdict,
)
from kubestow.explain.reason_codes import OTHER, reason_code
from kubestow.framework.status import Code

_ERROR: Final = Code.ERROR.label
# Why a node was not looked at, where that has no reason of its own.
_UNSEEN: Final[dict[SearchEnd, str]] = {
    "AllNodes": "",
    "EnoughFound": "EnoughFound",
    "NominatedNode": "NominatedNodeFits",
    "Hint": "HintFits",
    "PreFilterRestricted": "RestrictedByPreFilter",
    "PreFilterRejected": "",
    "Error": "AttemptFailed",
}


def search_end(attempt: FrozenDecision) -> SearchEnd:
    """Why the search for nodes ended."""
    if attempt.via_nominated_node:
        return "NominatedNode"
    if attempt.via_hint:
        return "Hint"
    if attempt.pre_filter is not None:
        return "Error" if attempt.pre_filter.code == _ERROR else "PreFilterRejected"
    if attempt.status is not None and attempt.status.code == _ERROR and attempt.total is None:
        return "Error"
    if attempt.restricted_to is not None:
        return "PreFilterRestricted"
    return "EnoughFound" if len(attempt.absent.nodes) else "AllNodes"


def node_explanations(attempt: FrozenDecision) -> Iterator[NodeExplanation]:
    """All nodes: those that fit by rank, then the rejected ones, then those not looked at."""
    yield from _feasible(attempt)
    for group in attempt.rejected:
        verdict: Verdict = "Error" if group.status.code == _ERROR else "Rejected"
        yield from _alike(group.nodes, verdict, group.status, group.status.plugin)
    failed, error = attempt.failed_node, attempt.status
    if failed and error is not None:
        yield from _alike((failed,), "Error", error, error.plugin)
    yield from _absent(attempt, [name for name in attempt.absent.nodes if name != failed])


def _absent(attempt: FrozenDecision, names: Sequence[str]) -> Iterator[NodeExplanation]:
    """Nodes that were not filtered; all of them are rejected if PreFilter did so."""
    end, status = search_end(attempt), absent_status(attempt)
    if status is not None:
        verdict: Verdict = "Rejected" if end == "PreFilterRejected" else "NotLookedAt"
        yield from _alike(names, verdict, status, _absent_plugin(attempt, status))
        return
    codes = (_UNSEEN[end],) if _UNSEEN[end] else ()
    for name in names:
        yield NodeExplanation(name=name, verdict="NotLookedAt", reason_codes=codes)


def reason_groups(attempt: FrozenDecision) -> tuple[ReasonGroup, ...]:
    """Reasons of rejected nodes, the most frequent first.

    Nodes that PreFilter left out count if no node fits: then they are part of the message.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    groups = [(group.status, group.status.plugin, group.nodes) for group in attempt.rejected]
    status = absent_status(attempt)
    if status is not None and not attempt.node:
        groups.append((status, _absent_plugin(attempt, status), attempt.absent.nodes))
    for status, plugin, nodes in groups:
        names = list(nodes)
        for reason in status.reasons if names else ():
            found.setdefault((plugin, status.code, reason), []).extend(names)
    return tuple(
        ReasonGroup(
            plugin=plugin,
            code=code,
            reason=reason,
            reason_code=_code_of(plugin, reason),
            count=len(names),
            nodes=tuple(names),
        )
        for (plugin, code, reason), names in sorted(
            found.items(), key=lambda entry: (-len(entry[1]), entry[0])
        )
    )


def absent_status(attempt: FrozenDecision) -> FrozenStatus | None:
    """The status that nodes count with which were not filtered; None if they do not count."""
    return attempt.absent.status if attempt.absent.status.reasons else None


def _absent_plugin(attempt: FrozenDecision, status: FrozenStatus) -> str:
    return status.plugin or " ".join(attempt.restricted_by)


def _alike(
    names: Iterable[str], verdict: Verdict, status: FrozenStatus, plugin: str
) -> Iterator[NodeExplanation]:
    codes = tuple(_code_of(plugin, reason) for reason in status.reasons)
    for name in names:
        yield NodeExplanation(
            name=name,
            verdict=verdict,
            plugin=plugin,
            code=status.code,
            reasons=status.reasons,
            reason_codes=codes,
        )


def _code_of(plugin: str, reason: str) -> str:
    """Reasons of the cycle itself, such as that PreFilter left a node out, name no plugin."""
    code = reason_code("", reason)
    return reason_code(plugin, reason) if code == OTHER else code


def _feasible(attempt: FrozenDecision) -> Iterator[NodeExplanation]:
    names = list(attempt.feasible)
    if attempt.total is None:
        for name in names:
            yield NodeExplanation(name=name, verdict="Feasible")
        return
    totals: list[int] = attempt.total.tolist()
    parts = [
        (part.plugin, part.weight, part.raw.tolist(), part.normalized.tolist(), part.weighted)
        for part in attempt.scores
    ]
    for position in ranking(attempt):
        scores = {
            plugin: PluginScore(
                raw=raw[position],
                normalized=normalized[position],
                weight=weight,
                weighted=int(weighted[position]),
            )
            for plugin, weight, raw, normalized, weighted in parts
        }
        yield NodeExplanation(
            name=names[position], verdict="Feasible", scores=scores, total=totals[position]
        )


def ranking(attempt: FrozenDecision) -> list[int]:
    """Positions of the feasible nodes by total; the chosen one is the first of the best."""
    assert attempt.total is not None
    totals: list[int] = attempt.total.tolist()
    names = list(attempt.feasible)
    return sorted(
        range(len(names)),
        key=lambda position: (-totals[position], names[position] != attempt.node),
    )
