"""What a comparison plays: a cluster to be placed once, a scenario, or a recording."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.files.reading import read_file
from kubestow.simulator.comparison.recorded import read_recording
from kubestow.simulator.comparison.scenario_files import pack_scenario
from kubestow.simulator.comparison.task import Material
from kubestow.simulator.traces.use_files import series_of


class ReadMaterial(NamedTuple):
    """The input, and the seed it names."""

    material: Material
    seed: int


def read_material(
    documents: Sequence[Document],
    *,
    name: str,
    scenario: Path | None,
    recording: Path | None,
    gates: tuple[str, ...],
    limit_s: float,
    until_s: float | None = None,
    usage: Path | None = None,
) -> ReadMaterial:
    """The input of all tasks; InputError if it cannot be used.

    `documents` are the cluster, or are added to that of the scenario; `name` is theirs. `until_s`
    is the end of the scenario, if it is another one than its file says. `usage` has measurements of
    what the pods of the recording used.
    """
    if scenario is not None and recording is not None:
        raise InputError("a scenario and a recording cannot be played together; name one of them")
    if usage is not None and recording is None:
        raise InputError(
            "measurements of use are for a recording; a scenario names its own (trace.usage)"
        )
    if recording is not None:
        if documents:
            raise InputError("a recording brings its own cluster: no other can be given")
        recorded = read_recording(recording)
        material = Material(
            name=recording.name,
            recorded=recorded,
            gates=gates,
            usage=None if usage is None else _checked_use(usage),
        )
        return ReadMaterial(material, 0)
    if scenario is None:
        return ReadMaterial(
            Material(name=name, documents=[*documents], limit_s=limit_s, gates=gates), 0
        )
    packed, read = pack_scenario(scenario)
    material = Material(
        name=read.name, documents=[*documents], scenario=packed, until_s=until_s, gates=gates
    )
    return ReadMaterial(material, read.seed)


def _checked_use(path: Path) -> bytes:
    """The content of a file of measurements; InputError names the line that is wrong."""
    series_of(path, "measurements", start_s=0.0)
    return read_file(path)
