"""What is counted of faults and states, and how it is shown."""

from collections import Counter
from io import StringIO

from rich.console import Console

from tools.faults.coverage import IMPORTANT, POSSIBLE, Met, PodState, never_met
from tools.faults.fault import Fault, Point
from tools.faults.invariants import Broken
from tools.faults.report import Totals, print_coverage
from tools.faults.simulation import Outcome


def totals_of(*met: Met, broken: list[Broken] | None = None) -> Totals:
    totals = Totals()
    totals.add(
        7,
        Outcome(
            broken=broken or [],
            bound_count=0,
            pending_count=0,
            faults=Counter(),
            met=Counter(met),
            exits=Counter(),
            gangs=Counter(),
            duration_s=0.0,
        ),
    )
    return totals


def shown(totals: Totals) -> str:
    console = Console(file=StringIO(), width=160)
    print_coverage(totals, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_every_fault_has_states_in_which_it_can_happen() -> None:
    assert {fault.name for fault in Fault} <= POSSIBLE.keys()


def test_what_is_important_is_possible() -> None:
    assert [pair for pair in IMPORTANT if pair.state not in POSSIBLE[pair.fault]] == []


def test_what_was_not_met_is_named() -> None:
    met = Met("kill", PodState.PERMIT)
    never = never_met(Counter([met]))
    assert met not in never
    assert Met("kill", PodState.BINDING) in never
    # Nothing happens to a process that is not there.
    assert Met("kill", PodState.DOWN) not in never
    lines = shown(totals_of(met)).splitlines()
    (named,) = (line for line in lines if line.startswith("never met: kill:"))
    assert PodState.BINDING in named
    assert PodState.PERMIT not in named


def test_nothing_is_named_when_all_was_met() -> None:
    everything = (Met(fault, state) for fault, states in POSSIBLE.items() for state in states)
    assert "every possible combination was met" in shown(totals_of(*everything))


def test_the_document_has_counts_and_what_is_missing() -> None:
    broken = [Broken("quiet", 1.0, "it does not become quiet")]
    met = [Met("PLUGIN_JUNK", Point.RESERVE)] * 3
    document = totals_of(*met, broken=broken).as_document()
    assert document["seeds"] == 1
    assert document["met"]["PLUGIN_JUNK"] == {"reserve": 3}
    assert ["PLUGIN_JUNK", "permit"] in document["neverMet"]
    assert document["broken"] == {"7": ["quiet at 1.000 s: it does not become quiet"]}
