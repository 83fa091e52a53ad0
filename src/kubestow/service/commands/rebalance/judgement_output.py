"""What `kubestow rebalance --descheduler` prints: each round, and where its pods went."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from kubestow.plural import counted
from kubestow.service.formats import DataFormat, RebalanceFormat
from kubestow.service.output import print_data, say
from kubestow.simulator.rebalance.descheduler.judgement import (
    JudgedEviction,
    JudgedRound,
    PolicyJudgement,
)
from kubestow.table import Table

_EVICTIONS_SHOWN: Final = 20
_REPEATED_SHOWN: Final = 5


def print_judgement(judgement: PolicyJudgement, output: RebalanceFormat) -> None:
    if output is not RebalanceFormat.TABLE:
        print_data(judgement, DataFormat(output.value))
        return
    for line in _summary(judgement):
        say(line)
    for note in judgement.notes:
        say(f"note: {note}")
    if judgement.rounds:
        say("")
        _round_table(judgement).print()
        _print_evictions(judgement.rounds[0])


def _summary(judgement: PolicyJudgement) -> Iterable[str]:
    count = judgement.eviction_count
    if not count and not any(each.failed for each in judgement.rounds):
        yield "the policy evicts nothing"
        return
    rounds = counted(len(judgement.rounds), "round")
    parts = [counted(count, "eviction"), f"{judgement.count('returned')} return to the same node"]
    if waits := judgement.count("waits"):
        parts.append(f"{waits} find no node")
    yield f"{', '.join(parts)}; {rounds}"
    if judgement.settles_after is None:
        yield "the policy does not settle: it still evicts in the last round"
    yield from _repeated(judgement)


def _repeated(judgement: PolicyJudgement) -> Iterable[str]:
    """Owners whose pods go in several rounds."""
    rounds: Counter[str] = Counter()
    for each in judgement.rounds:
        rounds.update({eviction.owner for eviction in each.evictions if eviction.owner})
    often = [(count, owner) for owner, count in rounds.items() if count > 1]
    for count, owner in sorted(often, key=lambda entry: (-entry[0], entry[1]))[:_REPEATED_SHOWN]:
        yield f"pods of {owner} are evicted in {count} rounds"


def _round_table(judgement: PolicyJudgement) -> Table:
    names = ["ROUND", "EVICTED", "MOVED", "RETURNED", "NO NODE", "REFUSED BY BUDGETS"]
    has_figure = judgement.figure_before is not None
    if has_figure:
        names.append(judgement.goal.upper())
    table = Table(*names, right=tuple(names))
    if has_figure:
        table.add("", "", "", "", "", "", f"{judgement.figure_before:g}")
    for each in judgement.rounds:
        cells = [
            str(each.number),
            str(len(each.evictions)),
            str(each.count("moved")),
            str(each.count("returned")),
            str(each.count("waits")),
            str(each.refused),
        ]
        if has_figure:
            cells.append(f"{each.figure_after:g}")
        table.add(*cells)
    return table


def _print_evictions(first: JudgedRound) -> None:
    if not first.evictions:
        return
    say("\nThe first round:\n")
    table = Table("PLUGIN", "POD", "NODE", "GOES TO")
    for each in first.evictions[:_EVICTIONS_SHOWN]:
        table.add(each.plugin, each.pod, each.node, _place(each))
    table.print()
    more = len(first.evictions) - _EVICTIONS_SHOWN
    if more > 0:
        say(f"and {more} more (-o json has all)")


def _place(eviction: JudgedEviction) -> str:
    match eviction.outcome:
        case "moved":
            return eviction.to_node
        case "returned":
            return f"{eviction.to_node} (the same)"
        case _:
            return eviction.message
