"""What came of many seeds: as tables, and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from kubestow.api.meta import JsonObject
from tools.faults.coverage import POSSIBLE, Met, PodState, never_met
from tools.faults.fault import Point
from tools.faults.invariants import Broken
from tools.faults.simulation import Outcome


class Totals:
    """The sum of the outcomes of many seeds."""

    def __init__(self) -> None:
        self.seed_count = 0
        self.counts: Counter[str] = Counter()
        self.exits: Counter[str] = Counter()
        self.gangs: Counter[str] = Counter()
        self.met: Counter[Met] = Counter()
        self.broken: dict[int, list[Broken]] = {}

    def add(self, seed: int, outcome: Outcome) -> None:
        self.seed_count += 1
        self.counts.update(outcome.faults)
        self.exits.update(outcome.exits)
        self.gangs.update(outcome.gangs)
        self.met.update(outcome.met)
        if outcome.broken:
            self.broken[seed] = outcome.broken

    def as_document(self) -> JsonObject:
        met: dict[str, dict[str, int]] = {fault: {} for fault in POSSIBLE}
        for (fault, state), times in sorted(self.met.items()):
            met.setdefault(fault, {})[str(state)] = times
        return {
            "seeds": self.seed_count,
            "happened": dict(sorted(self.counts.items())),
            "exits": dict(sorted(self.exits.items())),
            "gangs": dict(sorted(self.gangs.items())),
            "met": met,
            "neverMet": [[fault, str(state)] for fault, state in never_met(self.met)],
            "broken": {str(seed): list(map(str, found)) for seed, found in self.broken.items()},
        }


def print_counts(totals: Totals, console: Console) -> None:
    table = Table("what happened", "times", title=f"{totals.seed_count} seeds")
    for name, times in sorted(totals.counts.items()):
        table.add_row(_words(name), str(times))
    for name, times in sorted(totals.exits.items()):
        table.add_row(f"process ended: {name}", str(times))
    for name, times in sorted(totals.gangs.items()):
        table.add_row(f"gang at the end: {name}", str(times))
    console.print(table)


def print_coverage(totals: Totals, console: Console) -> None:
    """Which faults met which states; 0 was possible, a dot is not."""
    of_points = {fault for fault, states in POSSIBLE.items() if Point.FILTER in states}
    of_states = [fault for fault in POSSIBLE if fault not in of_points]
    states = [state for state in PodState if any(state in POSSIBLE[fault] for fault in of_states)]
    console.print(_matrix("faults met states", totals.met, of_states, states))
    console.print(_matrix("faults at extension points", totals.met, sorted(of_points), list(Point)))
    never: dict[str, list[str]] = {}
    for fault, state in never_met(totals.met):
        never.setdefault(fault, []).append(str(state))
    for fault, missing in never.items():
        console.print(f"never met: {_words(fault)}: {', '.join(missing)}")
    if not never:
        console.print("every possible combination was met")


def _matrix(
    title: str, met: Counter[Met], faults: Iterable[str], states: Sequence[PodState | Point]
) -> Table:
    table = Table("fault", *(str(state) for state in states), title=title, padding=(0, 0))
    for fault in faults:
        cells = (
            str(met[Met(fault, state)]) if state in POSSIBLE[fault] else "·" for state in states
        )
        table.add_row(_words(fault), *cells)
    return table


def _words(name: str) -> str:
    return name.replace("_", " ").lower()
