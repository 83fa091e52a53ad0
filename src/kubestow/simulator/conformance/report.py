"""Counts of compared values and differences, per family and part."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from kubestow.close_names import close_hint
from kubestow.simulator.recorded_parts import PODS


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One value that is not as recorded. `detail` names it: a plugin, a node, a field."""

    family: str
    scenario: str
    pod: str
    attempt: int
    part: str
    detail: str
    expected: Any
    got: Any


class PartCounts(msgspec.Struct):
    compared: int = 0
    differing: int = 0


class Only:
    """Which parts are compared: `verdicts`, or `verdicts/TaintToleration` for one plugin's."""

    def __init__(self, filters: Iterable[str] = ()) -> None:
        self._filters = [tuple(text.split("/", 1)) for text in filters]
        # The names there were of each part that is asked for.
        self._found: dict[str, set[str]] = {wanted[0]: set() for wanted in self._filters}

    def includes(self, part: str, detail: str = "") -> bool:
        if not self._filters:
            return True
        if part not in self._found:
            return False
        name = detail.split(" ", 1)[0]
        self._found[part].add(name)
        return any(
            wanted[0] == part and (len(wanted) == 1 or name == wanted[1])
            for wanted in self._filters
        )

    def missing(self) -> Iterator[tuple[str, str]]:
        """What was asked for and is not in what was compared, and a hint at what is like it."""
        for wanted in self._filters:
            part, found = wanted[0], self._found[wanted[0]]
            if len(wanted) == 1 and not found:
                yield part, ""
            elif len(wanted) == 2 and wanted[1] not in found:
                text = "/".join(wanted)
                yield text, close_hint(text, [f"{part}/{name}" for name in found])


class Report:
    """Counts for all families. Differences are kept up to a limit; all of them are counted."""

    def __init__(self, only: Only | None = None, *, kept_max: int = 1000) -> None:
        self._only = only or Only()
        self._kept_max = kept_max
        self.families: dict[str, dict[str, PartCounts]] = {}
        self.differences: list[Difference] = []
        # Scenarios that need what this version does not have, by what that is.
        self.not_replayed: Counter[str] = Counter()

    def counts(self, family: str, part: str) -> PartCounts:
        return self.families.setdefault(family, {}).setdefault(part, PartCounts())

    @property
    def differing(self) -> int:
        return sum(tally.differing for parts in self.families.values() for tally in parts.values())

    def comparer(self, family: str, scenario: str, pod: str = "", attempt: int = 0) -> "Comparer":
        return Comparer(self, self._only, family, scenario, pod, attempt)

    def add(self, difference: Difference) -> None:
        self.counts(difference.family, difference.part).differing += 1
        if len(self.differences) < self._kept_max:
            self.differences.append(difference)


class Comparer:
    """Compares the values of one attempt."""

    def __init__(
        self, report: Report, only: Only, family: str, scenario: str, pod: str, attempt: int
    ) -> None:
        self._report = report
        self._only = only
        self._family = family
        self._scenario = scenario
        self._pod = pod
        self._attempt = attempt

    def includes(self, part: str, detail: str = "") -> bool:
        return self._only.includes(part, detail)

    def count_pod(self) -> None:
        self._report.counts(self._family, PODS).compared += 1

    def equal(self, part: str, detail: str, expected: Any, got: Any) -> None:
        """`detail` begins with the name of the plugin where there is one."""
        if not self._only.includes(part, detail):
            return
        self._report.counts(self._family, part).compared += 1
        if expected != got:
            self._report.add(
                Difference(
                    family=self._family,
                    scenario=self._scenario,
                    pod=self._pod,
                    attempt=self._attempt,
                    part=part,
                    detail=detail,
                    expected=expected,
                    got=got,
                )
            )

    def mapping(
        self,
        part: str,
        detail: str,
        keys: Iterable[str],
        expected: dict[str, Any],
        got: Callable[[str], Any],
    ) -> None:
        """Compare one value per key; a key the recording lacks counts as None."""
        for key in keys:
            self.equal(part, f"{detail} {key}", expected.get(key), got(key))
