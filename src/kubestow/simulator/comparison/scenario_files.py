"""A scenario with the files that it names, packed to be sent to workers.

Files with an absolute path stay where they are: each worker reads its own.
"""

import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.files.reading import files_below, read_file
from kubestow.simulator.comparison.task import PackedFiles
from kubestow.simulator.scenario.document import ScenarioDocument
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.source import SourceText


def pack_scenario(path: Path) -> tuple[PackedFiles, Scenario]:
    """Read the scenario, to find mistakes here, and pack it; InputError names file, line, field."""
    scenario = read_scenario(path)
    document = SourceText.of_file(path).read(ScenarioDocument)
    named = [*document.cluster, *_named_by_entries(document)]
    relative = [path.parent / name for name in named if not os.path.isabs(name)]
    files = [path, *(file for one in relative for file in _files_at(one))]
    # Paths may go up: then the folder above is the one that is packed.
    folder = os.path.commonpath([os.path.abspath(file.parent) for file in files])
    packed = PackedFiles(
        folder=folder,
        main=os.path.relpath(path, folder),
        files={os.path.relpath(file, folder): _content(file) for file in files},
    )
    return packed, scenario


def _named_by_entries(document: ScenarioDocument) -> Iterator[str]:
    if (trace := document.trace) is not None:
        yield from filter(None, (trace.pods, trace.nodes, trace.usage))
    for entry in document.arrivals:
        yield from filter(None, (entry.csv, entry.file))
    for entry in document.actions:
        if isinstance(entry.apply, str):
            yield entry.apply
        yield from filter(None, (entry.kustomize, entry.descheduler))
        if isinstance(entry.chart, str):
            yield entry.chart
        elif entry.chart is not None:
            values = entry.chart.values
            yield from (entry.chart.path, *([values] if isinstance(values, str) else values))


def _files_at(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from sorted(file for file in files_below(path) if file.is_file())


def _content(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise InputError(f'cannot read "{path}": {error.strerror}') from error


@contextmanager
def unpacked(
    packed: PackedFiles, documents: Sequence[Document], without: Sequence[str] = ()
) -> Generator[Scenario, None, None]:
    """The scenario, whose files exist inside the `with` block. `documents` are a cluster besides
    that of the scenario; actions `without` are left out. Errors name the files as they are called
    where they come from."""
    with tempfile.TemporaryDirectory(prefix="kubestow-scenario-") as folder:
        for name, content in packed.files.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        try:
            scenario = read_scenario(Path(folder, packed.main), without)
            yield replace(scenario, documents=[*documents, *scenario.documents])
        except InputError as error:
            raise InputError(str(error).replace(folder, packed.folder)) from error
