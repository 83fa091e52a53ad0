"""Files of recorded decisions: their structure, and reading them."""

import gzip
import zlib
from pathlib import Path
from typing import Any, Final

import msgspec

from kubestow.errors import DecodeError, InputError

Json = dict[str, Any]

DECISION_KEYS: Final = ("name", "objects", "incoming", "expected")
RUN_KEYS: Final = ("name", "objects", "initial", "steps", "expected", "final")


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One file: decisions of one family of scenarios, by the scheduler of one version."""

    upstream: str
    family: str
    scenarios: list[Json]

    @property
    def is_v1_9(self) -> bool:
        """Whether predicates and priorities decided, in v1.9's format."""
        return self.upstream.startswith("v1.9.")


def find_recordings(path: Path) -> list[Path]:
    """The files at a path: itself, or all recordings in a directory and below."""
    if not path.is_dir():
        return [path]
    files = [file for pattern in ("*.json", "*.json.gz") for file in path.rglob(pattern)]
    if not files:
        raise InputError(f'there are no recordings in "{path}"; expected *.json.gz or *.json')
    return sorted(files, key=lambda file: (len(file.parts), file))


def load_recording(path: Path) -> Recording:
    """Read one file, gzipped or not."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DecodeError(f'cannot read recording "{path}": {error.strerror or error}') from error
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DecodeError(
                f'recording "{path}" is cut off or damaged: {error}; fetch it again'
            ) from error
    try:
        document = msgspec.json.decode(raw, type=Json)
        recording = msgspec.convert(document, Recording)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DecodeError(
            f'"{path}" is not a recording of decisions: {error}; expected an object with '
            '"upstream", "family" and "scenarios"'
        ) from error
    for index, scenario in enumerate(recording.scenarios):
        keys = RUN_KEYS if is_run(scenario) else DECISION_KEYS
        missing = [key for key in keys if key not in scenario]
        if missing:
            raise DecodeError(
                f'"{path}": scenario {index} lacks {", ".join(missing)}; is the file complete?'
            )
        if gates := scenario.get("gates"):
            raise DecodeError(
                f'"{path}": scenario {index} needs the feature gates {", ".join(sorted(gates))}, '
                "which kubestow does not have yet; leave this file out"
            )
    return recording


def is_run(scenario: Json) -> bool:
    """Whether the scenario is a whole run with steps, instead of single decisions."""
    return "steps" in scenario
