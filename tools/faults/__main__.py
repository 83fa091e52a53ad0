"""Runs seeds: `python -m tools.faults --seeds 200`, or one of them again.

A seed that breaks an invariant, or fails in any other way, is printed with the command that repeats
it; `--shrink` looks for the shortest plan that still does.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kubestow.clock import SystemClock
from kubestow.editions.edition import Version
from tools.faults.plan import Plan, make_plan
from tools.faults.report import Totals, print_counts, print_coverage
from tools.faults.seeds import play_seed, run_seeds
from tools.faults.shrink import shrink
from tools.faults.simulation import run_plan

# Wide enough for the states in one row.
TABLE_WIDTH = 160


def main() -> int:
    arguments = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return _run_one(arguments.seed, arguments.compatibility, shrinks=arguments.shrink)
    numbers = range(arguments.first, arguments.first + arguments.seeds)
    totals = _run_many(
        numbers if arguments.minutes is None else _for_minutes(arguments.first, arguments.minutes),
        total=None if arguments.minutes is not None else arguments.seeds,
        processes=arguments.processes,
        edition=arguments.compatibility,
    )
    if arguments.output == "json":
        print(json.dumps(totals.as_document(), indent=2))
    else:
        _print(totals, arguments.compatibility, has_coverage=arguments.coverage)
    return 1 if totals.broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.faults",
        description="The whole service under faults, in virtual time, from seeds.",
    )
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds (200)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--minutes", type=float, help="run seeds for so long, instead of --seeds")
    parser.add_argument("--processes", type=int, default=None, help="at a time (one per core)")
    parser.add_argument("--coverage", action="store_true", help="which faults met which states")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="(text)")
    parser.add_argument("--seed", type=int, help="run this seed only and print its plan")
    parser.add_argument(
        "--compatibility",
        type=Version,
        choices=(Version.V1_36, Version.V1_37),
        default=Version.V1_36,
        help="the edition of schedulers and API server (v1.36)",
    )
    parser.add_argument("--shrink", action="store_true", help="with --seed: the shortest plan")
    return parser


# --- one seed ---


def _run_one(seed: int, edition: Version, *, shrinks: bool) -> int:
    plan = make_plan(seed, edition)
    outcome = run_plan(plan)
    if outcome.broken and shrinks:
        print(f"shrinking {len(plan.actions)} actions", file=sys.stderr)
        invariant = outcome.broken[0].invariant
        plan = shrink(plan, lambda shorter: _breaks(shorter, invariant), tried=_show_length)
        outcome = run_plan(plan)
    print(f"seed {seed}, replicas {', '.join(plan.replicas)}, {plan.setup}")
    for action in plan.actions:
        print(f"  {action}")
    print(f"{outcome.bound_count} pods bound, {outcome.pending_count} pending")
    for line in outcome.broken:
        print(f"BROKEN: {line}")
    return 1 if outcome.broken else 0


def _breaks(plan: Plan, invariant: str) -> bool:
    return any(broken.invariant == invariant for broken in run_plan(plan).broken)


def _show_length(plan: Plan) -> None:
    print(f"  {len(plan.actions)} are enough", file=sys.stderr)


# --- many seeds ---


def _run_many(
    numbers: Iterable[int], *, total: int | None, processes: int | None, edition: Version
) -> Totals:
    totals, workers = Totals(), processes or os.cpu_count() or 1
    play = partial(play_seed, edition=edition)
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        for seed, outcome in run_seeds(numbers, processes=workers, play=play):
            progress.advance(task)
            totals.add(seed, outcome)
            if outcome.broken:
                progress.console.print(f"seed {seed}: {outcome.broken[0]}", markup=False)
    return totals


def _print(totals: Totals, edition: Version, *, has_coverage: bool) -> None:
    console = Console(width=TABLE_WIDTH)
    print_counts(totals, console)
    if has_coverage:
        print_coverage(totals, console)
    for seed, broken in sorted(totals.broken.items()):
        print(f"seed {seed}: {broken[0]}")
        print(f"  python -m tools.faults --seed {seed} --compatibility {edition} --shrink")
    print(f"{totals.seed_count} seeds, {len(totals.broken)} break an invariant")


def _for_minutes(first: int, minutes: float) -> Iterator[int]:
    clock = SystemClock()
    deadline_s = clock.monotonic_s() + 60 * minutes
    for seed in count(first):
        if clock.monotonic_s() > deadline_s:
            return
        yield seed


if __name__ == "__main__":
    raise SystemExit(main())
