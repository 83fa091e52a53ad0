"""Files of recorded decisions: their structure, and reading them."""

import os
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.decode import UNREADABLE, quoted
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import is_list
from kubestow.editions import edition_named
from kubestow.editions.edition import Edition
from kubestow.errors import ConfigError, DecodeError, InputError
from kubestow.files.reading import DamagedError, files_below, read_file, unpacked

DECISION_KEYS: Final = ("name", "objects", "incoming", "expected")
RUN_KEYS: Final = ("name", "objects", "initial", "steps", "expected", "final")


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One file: decisions of one family of scenarios, by the scheduler of one version."""

    upstream: str
    family: str
    scenarios: list[JsonObject]
    source: str = ""  # the file

    @property
    def edition(self) -> Edition:
        """The edition of the scheduler that decided; raises ConfigError if there is none."""
        return edition_named(".".join(self.upstream.split(".")[:2]))


def find_recordings(path: Path) -> list[Path]:
    """The files at a path: itself, or all recordings in a directory and below."""
    if not os.path.isdir(path):  # unlike `Path.is_dir`, also for a name that is too long
        return [path]
    files = [file for file in files_below(path) if file.name.endswith((".json", ".json.gz"))]
    if not files:
        raise InputError(f'there are no recordings in "{path}"; expected *.json.gz or *.json')
    return sorted(files, key=lambda file: (len(file.parts), file))


def load_recording(path: Path) -> Recording:
    """Read one file, gzipped or not."""
    try:
        raw = read_file(path)
    except OSError as error:
        raise DecodeError(f'cannot read recording "{path}": {error.strerror or error}') from error
    try:
        raw = unpacked(raw, str(path))
    except DamagedError as error:
        raise DecodeError(
            f'recording "{path}" is cut off or damaged: {error}; fetch it again'
        ) from error
    try:
        document = msgspec.json.decode(raw, type=JsonObject)
        recording = msgspec.convert(document, Recording)
    except UNREADABLE as error:
        raise DecodeError(
            f'"{path}" is not a recording of decisions: {error}; expected an object with '
            '"upstream", "family" and "scenarios"'
        ) from error
    try:
        edition = recording.edition
    except ConfigError as error:
        raise DecodeError(
            f'"{path}" was recorded from kube-scheduler {quoted(recording.upstream)}, whose rules '
            "are not known here; leave this file out"
        ) from error
    for index, scenario in enumerate(recording.scenarios):
        keys = RUN_KEYS if is_run(scenario) else DECISION_KEYS
        missing = [key for key in keys if key not in scenario]
        if missing:
            raise DecodeError(
                f'"{path}": scenario {index} lacks {", ".join(missing)}; is the file complete?'
            )
        gates = scenario.get("gates", [])
        if not is_list(gates) or not edition.gates.keys() >= set(map(str, gates)):
            raise DecodeError(
                f'"{path}": scenario {index} needs feature gates {quoted(gates)}, of which some '
                "are not known; leave this file out"
            )
    return msgspec.structs.replace(recording, source=str(path))


@contextmanager
def blaming(recording: Recording, scenario: JsonObject) -> Generator[None]:
    """Report what is wrong with the shape of a scenario as a DecodeError that names the file.

    The values of a recording are read all over this package; their types are not declared. An error
    that comes from elsewhere is a defect of the program and is passed on.
    """
    try:
        yield
    except DecodeError as error:
        raise DecodeError(f"{_place(recording, scenario)}: {error}") from error
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if not _is_raised_here(error):
            raise
        what = f"lacks {error}" if isinstance(error, KeyError) else f"has an odd value: {error}"
        raise DecodeError(f"{_place(recording, scenario)} {what}; is the file complete?") from error


def _place(recording: Recording, scenario: JsonObject) -> str:
    return f'"{recording.source}": scenario {quoted(scenario.get("name"))}'


def _is_raised_here(error: Exception) -> bool:
    modules = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = ("kubestow.api.", "kubestow.simulator.")
    return next(
        (name.startswith(own) for name in reversed(modules) if name.startswith("kubestow.")), False
    )


def is_run(scenario: JsonObject) -> bool:
    """Whether the scenario is a whole run with steps, instead of single decisions."""
    return "steps" in scenario
