"""What `kubestow test` does: find tests, run their cases, print and write what came of them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubestow.errors import InputError, KubestowError
from kubestow.files import keeping
from kubestow.service.commands.test.output import data_of, print_run
from kubestow.service.formats import TestFormat
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import progress_bar
from kubestow.simulator.placement_tests.against import (
    OtherTree,
    StateComparison,
    compare_runs,
    other_tree,
)
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.document import SUFFIX
from kubestow.simulator.placement_tests.reading import find_tests, read_test
from kubestow.simulator.placement_tests.reports.junit import junit_text
from kubestow.simulator.placement_tests.reports.markdown import markdown_text
from kubestow.simulator.placement_tests.results import CaseResult, PlacementRun, run_of
from kubestow.simulator.placement_tests.running import RunOptions, RunProgress, run_cases

_FAILED: Final = 1
_WRONG_INPUT: Final = 2
_INTERRUPTED: Final = 130
_REPORTS: Final = (".xml", ".md", ".json")


class TestRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    paths: Sequence[Path]
    output: TestFormat
    reports: Sequence[Path]
    against: str
    only: str
    # That configurations of the tests may import.
    plugins: Sequence[str] = ()
    jobs: int | None
    force: bool
    has_init_options: bool


class _Read(msgspec.Struct):
    """The cases of all files, and those files that cannot be used."""

    cases: list[PlacementCase]
    wrong: list[CaseResult]


def run_tests(request: TestRequest) -> int:
    """Run everything and print it; the exit code."""
    if request.has_init_options:
        raise InputError("-f and options of a live cluster need --init; a test names its files")
    for path in request.reports:
        if path.suffix not in _REPORTS:
            raise InputError(f'--report is "{path}", expected a name with {", ".join(_REPORTS)}')
        keeping.require_new(path, "--report", force=request.force)
    files = find_tests(request.paths)
    if not files:
        raise InputError(
            f"there are no files *{SUFFIX} in {', '.join(map(str, request.paths))}; write a first "
            f"one: kubestow test --init web{SUFFIX} -f manifests/"
        )
    read = _read(files, request, None)
    if not read.cases and not read.wrong:
        raise InputError(f'no case has "{request.only}" in its name')
    comparison: StateComparison | None = None
    if request.against:
        with other_tree(request.against, Path.cwd()) as other:
            of_other = _read(files, request, other)
            before = _run(of_other, request, f"Running {other.name}")
            run = _run(read, request, "Running")
        missing = {(case.file, case.name): case.missing for case in of_other.cases}
        comparison = compare_runs(request.against, before, run, missing)
    else:
        run = _run(read, request, "Running")
    print_run(run, comparison, request.output)
    for path in request.reports:
        _write(path, run, comparison, force=request.force)
    if run.is_partial:
        return _INTERRUPTED
    if run.errors:
        return _WRONG_INPUT
    return _FAILED if run.failed else 0


def _read(files: Sequence[Path], request: TestRequest, other: OtherTree | None) -> _Read:
    read = _Read([], [])
    for file in files:
        try:
            folder = None if other is None else other.folder_of(file)
            cases = read_test(file, folder=folder, plugins=request.plugins)
        except KubestowError as error:
            name = file.name.removesuffix(SUFFIX)
            text = str(error) if other is None else other.shown(str(error))
            read.wrong.append(
                CaseResult(name=name, file=str(file), test=name, status="error", error=text)
            )
            continue
        read.cases += [case for case in cases if request.only in case.name]
    return read


def _run(read: _Read, request: TestRequest, description: str) -> PlacementRun:
    options = RunOptions(jobs=request.jobs or os.cpu_count() or 1, keeps_pods=bool(request.against))
    with warnings_on_stderr(), progress_bar(description) as progress:
        task = progress.add_task("", total=len(read.cases))

        def note(each: RunProgress) -> None:
            progress.update(task, total=each.total, completed=each.done)

        run = run_cases(read.cases, options, on_progress=note)
    return run_of([*read.wrong, *run.cases], is_partial=run.is_partial)


def _write(
    path: Path, run: PlacementRun, comparison: StateComparison | None, *, force: bool
) -> None:
    match path.suffix:
        case ".xml":
            content = junit_text(run)
        case ".md":
            content = markdown_text(run, comparison)
        case _:
            data = msgspec.json.encode(data_of(run, comparison))
            content = msgspec.json.format(data, indent=2).decode() + "\n"
    try:
        keeping.write(path, content, force=force)
    except OSError as error:
        raise InputError(f'cannot write the report "{path}": {error.strerror}') from error
