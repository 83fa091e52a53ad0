"""Taints of nodes and tolerations of pods (spec 01 §9).

Not here: evaluating a pod against all nodes (the plugin does it once per distinct taint list).
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

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


def taint_text(taint: Taint) -> str:
    """A taint as kubectl writes it: `key=value:effect`, without a value `key:effect`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


class AnyTaint(Protocol):
    """A taint of a node or of a device."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class AnyToleration(AnyTaint, Protocol):
    """A toleration of such taints."""

    @property
    def operator(self) -> str: ...


A = TypeVar("A", bound=AnyTaint)
T = TypeVar("T", bound=AnyToleration)


class TolerationTable(Generic[T]):
    """Tolerations by what they accept: a taint is looked up, not compared with each of them.

    The rule for one toleration: its effect and its key are empty or those of the taint. `Exists`
    accepts any value, `Equal` (also if it is not written) the same one, `Lt` and `Gt` compare
    integers. An empty key is no wildcard for the value: `{}` accepts empty values only.
    Of a taint therefore at most four pairs of key and effect are looked up.
    """

    __slots__ = ("_accepted", "_forms", "_limits", "entries")

    def __init__(self, tolerations: Iterable[T]) -> None:
        self.entries: Final = tuple(tolerations)
        # Positions of the first toleration by (key, effect) and by (key, effect, value). They are
        # found at the first use: the answers for most tolerations are known already.
        self._accepted: dict[tuple[str, ...], int] | None = None
        # Which of key and effect are written.
        self._forms: set[tuple[bool, bool]] = set()
        self._limits: dict[tuple[str, str], _Limits] = {}

    def accepts(self, taint: AnyTaint, *, comparison_operators: bool = False) -> bool:
        """Whether any of the tolerations accepts the taint.

        `comparison_operators` is the feature gate TaintTolerationComparisonOperators: without it
        `Lt` and `Gt` never match.
        """
        return self.first(taint, comparison_operators=comparison_operators) is not None

    def first(self, taint: AnyTaint, *, comparison_operators: bool = False) -> T | None:
        """The first of the tolerations that accepts the taint."""
        accepted = self._accepted
        if accepted is None:
            accepted = self._fill()
        tainted_key, tainted_value, tainted_effect = taint.key, taint.value, taint.effect
        found = absent = len(self.entries)
        for has_key, has_effect in self._forms:
            key, effect = tainted_key if has_key else "", tainted_effect if has_effect else ""
            found = min(
                found,
                accepted.get((key, effect), absent),
                accepted.get((key, effect, tainted_value), absent),
            )
            if comparison_operators and self._limits:
                limits = self._limits.get((key, effect))
                if limits is not None:
                    found = min(found, limits.first(tainted_value, absent))
        return None if found == absent else self.entries[found]

    def _fill(self) -> dict[tuple[str, ...], int]:
        accepted: dict[tuple[str, ...], int] = {}
        for position, toleration in enumerate(self.entries):
            key, effect = toleration.key, toleration.effect
            match toleration.operator:
                case "" | "Equal":
                    accepted.setdefault((key, effect, toleration.value), position)
                case "Exists":
                    accepted.setdefault((key, effect), position)
                case "Lt" | "Gt" as operator:
                    limit = _parse_canonical(toleration.value)
                    if limit is None:
                        continue
                    self._limits.setdefault((key, effect), _Limits()).add(operator, limit, position)
                case _:
                    continue
            self._forms.add((key != "", effect != ""))
        self._accepted = accepted
        return accepted


class _Limits:
    """The limits of `Lt` and `Gt` for one key and effect.

    Only a limit that accepts more than all before it can be the first that accepts a value; these
    are in order, so the first is found by bisection.
    """

    __slots__ = ("_above", "_below")

    def __init__(self) -> None:
        self._below: tuple[list[int], list[int]] = ([], [])
        self._above: tuple[list[int], list[int]] = ([], [])

    def add(self, operator: str, limit: int, position: int) -> None:
        # A value greater than a limit is one whose negative is less than the limit's.
        limits, positions = self._below if operator == "Lt" else self._above
        limit = limit if operator == "Lt" else -limit
        if not limits or limit > limits[-1]:
            limits.append(limit)
            positions.append(position)

    def first(self, text: str, absent: int) -> int:
        value = _parse_canonical(text)
        if value is None:
            return absent
        below = _first_above(value, *self._below, absent)
        return min(below, _first_above(-value, *self._above, absent))


def _first_above(value: int, limits: Sequence[int], positions: Sequence[int], absent: int) -> int:
    index = bisect_right(limits, value)
    return positions[index] if index < len(positions) else absent


def first_untolerated(
    taints: Iterable[A],
    tolerations: TolerationTable[T],
    effects: Collection[str] | None = HARD_EFFECTS,
    *,
    comparison_operators: bool = False,
) -> A | None:
    """The first taint with one of the effects (None: any) that no toleration accepts."""
    for taint in taints:
        if effects is not None and taint.effect not in effects:
            continue
        if not tolerations.accepts(taint, comparison_operators=comparison_operators):
            return taint
    return None


def soft_tolerations(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations that scoring reads: those that could accept a PreferNoSchedule taint."""
    return tuple(
        toleration for toleration in tolerations if toleration.effect in ("", PREFER_NO_SCHEDULE)
    )


def untolerated_soft_count(
    taints: Iterable[Taint],
    tolerations: TolerationTable[T],
    *,
    comparison_operators: bool = False,
) -> int:
    """How many PreferNoSchedule taints no toleration accepts."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE
        and not tolerations.accepts(taint, comparison_operators=comparison_operators)
        for taint in taints
    )


def _parse_canonical(text: str) -> int | None:
    return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None
