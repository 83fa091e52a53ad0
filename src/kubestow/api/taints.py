"""Taints of nodes and tolerations of pods (spec 01 §9).

Not here: evaluating a pod against all nodes (the plugin does it once per distinct taint list).
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from kubestow.api.labels import parse_int64
from kubestow.api.node import Taint
from kubestow.api.pod import Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

HARD_EFFECTS: Final = frozenset((NO_SCHEDULE, NO_EXECUTE))

# The taint that a toleration must accept for a node with `spec.unschedulable`.
UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)

# Stricter than Gt and Lt on labels: one way to write each number (spec 01 §17, trap 11).
_CANONICAL_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Whether the toleration accepts the taint.

    `comparison_operators` is the feature gate TaintTolerationComparisonOperators: without it `Lt`
    and `Gt` never match. An empty key is no wildcard for the value: `{}` accepts empty values only.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison_operators:
            return _compares(toleration.operator, toleration.value, taint.value)
        case _:
            return False


def is_tolerated(
    taint: Taint, tolerations: Iterable[Toleration], *, comparison_operators: bool = False
) -> bool:
    """Whether any of the tolerations accepts the taint."""
    return any(
        tolerates(toleration, taint, comparison_operators=comparison_operators)
        for toleration in tolerations
    )


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] | None = HARD_EFFECTS,
    *,
    comparison_operators: bool = False,
) -> Taint | None:
    """The first taint with one of the effects (None: any) that no toleration accepts."""
    for taint in taints:
        if effects is not None and taint.effect not in effects:
            continue
        if not is_tolerated(taint, tolerations, comparison_operators=comparison_operators):
            return taint
    return None


def soft_tolerations(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations that scoring reads: those that could accept a PreferNoSchedule taint."""
    return tuple(
        toleration for toleration in tolerations if toleration.effect in ("", PREFER_NO_SCHEDULE)
    )


def untolerated_soft_count(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    *,
    comparison_operators: bool = False,
) -> int:
    """How many PreferNoSchedule taints no toleration accepts."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE
        and not is_tolerated(taint, tolerations, comparison_operators=comparison_operators)
        for taint in taints
    )


def _compares(operator: str, tolerated: str, tainted: str) -> bool:
    limit = _parse_canonical(tolerated)
    value = _parse_canonical(tainted)
    if limit is None or value is None:
        return False
    return value < limit if operator == "Lt" else value > limit


def _parse_canonical(text: str) -> int | None:
    return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None
