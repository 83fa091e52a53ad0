"""What `kubestow conformance` does: replay recorded decisions, count and print differences."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.markup import escape

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import is_list, is_object
from kubestow.errors import InputError, MissingFeatureError
from kubestow.logs import silenced
from kubestow.plural import counted
from kubestow.service.formats import DataFormat
from kubestow.service.output import print_data, progress_bar, stdout
from kubestow.simulator.conformance import (
    Recording,
    Report,
    find_recordings,
    load_recording,
    replay_scenario,
)
from kubestow.simulator.conformance.recording import blaming, is_run
from kubestow.simulator.conformance.report import Difference, Only
from kubestow.simulator.conformance.runs import replay_run
from kubestow.simulator.recorded_parts import PARTS, PODS
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop
from kubestow.table import Table

# Those of the repository: where it is the current directory, and where this file is in it.
FOLDERS = (Path("conformance"), Path(__file__).resolve().parents[5] / "conformance")
_SHOWN_CHARACTERS_MAX = 600


def compare_recordings(
    paths: Sequence[Path], only: Sequence[str], *, show: int, output: DataFormat
) -> int:
    """Replay and print the first `show` differences; the exit code."""
    for part in only:
        if part.split("/", 1)[0] not in PARTS:
            raise InputError(
                f'--only: there is no part "{part}"; the parts are {", ".join(PARTS)}, '
                "each optionally followed by / and the name of a plugin"
            )
    recordings = [
        load_recording(file)
        for path in paths or [repository_folder()]
        for file in find_recordings(path)
    ]
    parts = Only(only)
    report = Report(parts, kept_max=max(show, 100))
    # Recorded attempts fail in every way, and the scheduler logs each failure.
    with silenced():
        _replay_all(recordings, report)
    for missing, hint in parts.missing():
        raise InputError(f'--only: these recordings have nothing of "{missing}"{hint}')
    if output is not DataFormat.TABLE:
        print_data(_as_data(report, show), output)
    else:
        _print_table(report)
        _print_differences(report.differences[:show])
    return 1 if report.differing or report.not_replayed else 0


def repository_folder() -> Path:
    """The recordings of the project, which are not in an installed package."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise InputError(
            "there are no recordings here: they are in the folder conformance of kubestow's source "
            "repository; run this in a copy of it, or name a folder: kubestow conformance PATH"
        )
    return folder


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
                    try:
                        with blaming(recording, scenario):
                            replay(scenario, report)
                    except MissingFeatureError as error:
                        report.not_replayed[str(error)] += 1
                    progress.advance(task)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _replayer(recording: Recording, clock: VirtualClock) -> Callable[[JsonObject, Report], None]:
    edition = recording.edition
    if edition.is_modern:
        decisions = partial(replay_scenario, clock=clock, edition=edition)
        runs = partial(replay_run, edition=edition)

        def replay(scenario: JsonObject, report: Report) -> None:
            (runs if is_run(scenario) else decisions)(scenario, report)

        return replay
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions.v1_9.simulator.conformance import replay_v1_9

    return replay_v1_9


def _print_table(report: Report) -> None:
    # Every family has some of the parts; those that no family has would only take room.
    shown = [part for part in PARTS if any(part in parts for parts in report.families.values())]
    numbers = [name.upper() for name in ("pods", *shown, "differ")]
    table = Table("FAMILY", *numbers, right=numbers)
    totals: dict[str, list[int]] = {}
    for family, parts in report.families.items():
        cells: list[str] = []
        for part in (PODS, *shown):
            tally = parts.get(part)
            compared, differing = (tally.compared, tally.differing) if tally else (0, 0)
            sums = totals.setdefault(part, [0, 0])
            sums[0] += compared
            sums[1] += differing
            cells.append(_cell(compared, differing))
        differing = sum(tally.differing for tally in parts.values())
        table.add(family, *cells, str(differing))
    table.add("total", *(_cell(*sums) for sums in totals.values()), str(report.differing))
    table.print()
    compared = sum(compared for part, (compared, _) in totals.items() if part != PODS)
    pod_count = totals[PODS][0]
    stdout().print(f"\n{pod_count:,} decisions, {compared:,} values, {report.differing:,} differ")
    for reason, count in report.not_replayed.items():
        stdout().print(f"{counted(count, 'scenario')} not replayed: {reason}", markup=False)


def _cell(compared: int, differing: int) -> str:
    if not compared:
        return "-"
    return f"{differing}/{compared}" if differing else str(compared)


def _print_differences(differences: list[Difference]) -> None:
    console = stdout()
    last_place = ""
    for difference in differences:
        attempt = f", attempt {difference.attempt}" if difference.attempt > 1 else ""
        place = f"{difference.scenario} {difference.pod}{attempt}".strip()
        if place != last_place:
            console.print(f"\n[bold]{escape(place)}[/bold]")
        last_place = place
        console.print(f"  {difference.part}: {escape(difference.detail)}")
        for where, expected, got in _unlike_parts(difference.expected, difference.got):
            if where:
                console.print(f"    at {escape(where)}")
            console.print(f"    recorded  {escape(_shown(expected))}")
            console.print(f"    ours      {escape(_shown(got))}")


def _unlike_parts(expected: Any, got: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The smallest parts of two values that differ, each with its place."""
    if is_object(expected) and is_object(got):
        pairs = [(key, expected.get(key), got.get(key)) for key in {**expected, **got}]
    elif is_list(expected) and is_list(got) and len(expected) == len(got):
        items = zip(expected, got, strict=True)
        pairs = [(str(index), *pair) for index, pair in enumerate(items)]
    else:
        yield where, expected, got
        return
    for key, one, other in pairs:
        if one != other:
            yield from _unlike_parts(one, other, f"{where}.{key}" if where else key)


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
        "notReplayed": dict(report.not_replayed),
    }
