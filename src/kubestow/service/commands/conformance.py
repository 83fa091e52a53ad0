"""`kubestow conformance`: replay recorded decisions and count differences."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from kubestow.errors import InputError
from kubestow.service.output import OutputFormat, print_data, progress_bar, stdout
from kubestow.simulator.conformance import (
    Recording,
    Report,
    find_recordings,
    load_recording,
    replay_scenario,
)
from kubestow.simulator.conformance.recording import Json
from kubestow.simulator.conformance.report import PARTS, PODS, Difference, Only
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

RECORDINGS = Path("conformance")  # those of the repository, where it is the current directory
_SHOWN_CHARACTERS_MAX = 600


def conformance(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Recordings, gzipped JSON or JSON, or directories of them.",
            show_default="conformance",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help=f"Compare only this part: {', '.join(PARTS)}; or one plugin's share of it, "
            "such as verdicts/TaintToleration or scores/ImageLocality. May be repeated.",
        ),
    ] = None,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print the first N differences.")
    ] = 0,
    output: Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print.")] = (
        OutputFormat.TABLE
    ),
) -> None:
    """Replay decisions recorded from kube-scheduler and count where ours differ.

    Exit code 0 means that nothing differs, 1 that something does.

    Example: kubestow conformance conformance/v1.9 --only verdicts/PodFitsResources --show 3
    """
    for part in only or ():
        if part.split("/", 1)[0] not in PARTS:
            raise InputError(
                f'--only: there is no part "{part}"; the parts are {", ".join(PARTS)}, '
                "each optionally followed by / and the name of a plugin"
            )
    recordings = [
        load_recording(file) for path in paths or [RECORDINGS] for file in find_recordings(path)
    ]
    report = Report(Only(only or ()), kept_max=max(show, 100))
    _replay_all(recordings, report)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        print_data(_as_data(report, show), output)
    else:
        _print_table(report)
        _print_differences(report.differences[:show])
    raise typer.Exit(1 if report.differing else 0)


def _replay_all(recordings: list[Recording], report: Report) -> None:
    loop = VirtualTimeLoop()
    clock = VirtualClock(loop)
    count = sum(len(recording.scenarios) for recording in recordings)
    asyncio.set_event_loop(loop)
    try:
        with progress_bar("Replaying scenarios") as progress:
            task = progress.add_task("", total=count)
            for recording in recordings:
                replay = _replayer(recording, clock)
                for scenario in recording.scenarios:
                    replay(scenario, report)
                    progress.advance(task)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _replayer(recording: Recording, clock: VirtualClock) -> Callable[[Json, Report], None]:
    if not recording.is_v1_9:
        return partial(replay_scenario, clock=clock)
    # Imported here, like all legacy code: only when an older version is to run.
    from kubestow.simulator.legacy.conformance import replay_v1_9

    return replay_v1_9


def _print_table(report: Report) -> None:
    table = Table(title=None, header_style="bold")
    table.add_column("family")
    table.add_column("pods", justify="right")
    for part in PARTS:
        table.add_column(part, justify="right")
    table.add_column("differ", justify="right")
    totals: dict[str, list[int]] = {}
    for family, parts in report.families.items():
        cells: list[str] = []
        for part in (PODS, *PARTS):
            tally = parts.get(part)
            compared, differing = (tally.compared, tally.differing) if tally else (0, 0)
            sums = totals.setdefault(part, [0, 0])
            sums[0] += compared
            sums[1] += differing
            cells.append(_cell(compared, differing))
        differing = sum(tally.differing for tally in parts.values())
        table.add_row(family, *cells, str(differing))
    table.add_section()
    table.add_row("total", *(_cell(*sums) for sums in totals.values()), str(report.differing))
    stdout().print(table)
    compared = sum(compared for part, (compared, _) in totals.items() if part != PODS)
    pod_count = totals[PODS][0]
    stdout().print(f"{pod_count:,} decisions, {compared:,} values, {report.differing:,} differ")


def _cell(compared: int, differing: int) -> str:
    if not compared:
        return "-"
    return f"[red]{differing}[/red]/{compared}" if differing else str(compared)


def _print_differences(differences: list[Difference]) -> None:
    console = stdout()
    for difference in differences:
        attempt = f", attempt {difference.attempt}" if difference.attempt > 1 else ""
        where = f"{difference.scenario} {difference.pod}{attempt}".strip()
        console.print(f"\n[bold]{where}[/bold]  {difference.part}: {escape(difference.detail)}")
        console.print(f"  recorded  {escape(_shown(difference.expected))}")
        console.print(f"  ours      {escape(_shown(difference.got))}")


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    if len(text) > _SHOWN_CHARACTERS_MAX:
        return text[:_SHOWN_CHARACTERS_MAX] + " …"
    return text


def _as_data(report: Report, show: int) -> dict[str, Any]:
    return {
        "families": {
            family: {
                part: {"compared": tally.compared, "differing": tally.differing}
                for part, tally in parts.items()
            }
            for family, parts in report.families.items()
        },
        "differing": report.differing,
        "differences": report.differences[:show],
    }
