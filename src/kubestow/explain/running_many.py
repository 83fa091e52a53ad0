"""All waiting pods of a running scheduler, grouped by the reasons of their last attempts.

Made of kept attempts alone, away from the scheduler's loop; no change is searched.
"""

from collections import Counter
from collections.abc import Iterable

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.many_explanation import PODS_NAMED, Cause, ManyExplanation
from kubestow.explain.reason_codes import reason_code
from kubestow.plural import counted


def explain_kept(attempts: Iterable[FrozenDecision]) -> ManyExplanation:
    """Why the pods of these attempts wait."""
    by_codes: dict[frozenset[str], list[tuple[str, Counter[tuple[str, str]]]]] = {}
    waiting = 0
    for attempt in attempts:
        waiting += 1
        reasons = _reasons(attempt)
        codes = frozenset(code for _, code in reasons)
        by_codes.setdefault(codes, []).append((attempt.pod.key, reasons))
    causes = [_cause(entries) for entries in by_codes.values()]
    return ManyExplanation(
        waiting=waiting,
        fitting=0,
        causes=tuple(sorted(causes, key=lambda each: -each.count)),
        summary=f"{counted(waiting, 'pod')} that wait, by their last attempts",
    )


def _reasons(attempt: FrozenDecision) -> Counter[tuple[str, str]]:
    """Reasons and their codes, with the number of nodes."""
    found: Counter[tuple[str, str]] = Counter()
    for group in (*attempt.rejected, attempt.absent):
        for reason in group.status.reasons:
            code = reason_code(group.status.plugin, reason)
            found[reason, code] += len(group.nodes)
    if not found and attempt.status is not None:
        # No node was asked: there is none, or the attempt failed before.
        plugin = attempt.status.plugin
        found.update({(each, reason_code(plugin, each)): 0 for each in attempt.status.reasons})
    return found


def _cause(entries: list[tuple[str, Counter[tuple[str, str]]]]) -> Cause:
    reasons = entries[0][1].most_common()
    return Cause(
        text=", ".join(dict.fromkeys(reason for (reason, _), _ in reasons)) or "the attempt failed",
        reasons=tuple(reason for (reason, _), _ in reasons),
        reason_codes=tuple(code for (_, code), _ in reasons),
        evidence=tuple(
            f"{counted(count, 'node')}: {reason}" for (reason, _), count in reasons if count
        ),
        count=len(entries),
        pods=tuple(key for key, _ in entries[:PODS_NAMED]),
        owners=(),
    )
