"""What a comparison plays: a cluster to be placed once, a scenario, or a recording."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.simulator.comparison.recorded import read_recording
from kubestow.simulator.comparison.scenario_files import pack_scenario
from kubestow.simulator.comparison.task import Material


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
) -> ReadMaterial:
    """The input of all tasks; InputError if it cannot be used.

    `documents` are the cluster, or are added to that of the scenario; `name` is theirs.
    """
    if scenario is not None and recording is not None:
        raise InputError("a scenario and a recording cannot be played together; name one of them")
    if recording is not None:
        if documents:
            raise InputError("a recording brings its own cluster: no other can be given")
        recorded = read_recording(recording)
        return ReadMaterial(Material(name=recording.name, recorded=recorded, gates=gates), 0)
    if scenario is None:
        return ReadMaterial(
            Material(name=name, documents=[*documents], limit_s=limit_s, gates=gates), 0
        )
    packed, read = pack_scenario(scenario)
    return ReadMaterial(
        Material(name=read.name, documents=[*documents], scenario=packed, gates=gates), read.seed
    )
