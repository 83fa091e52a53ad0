"""What `--variant NAME=WHAT` means. Files are read here, in the process of the command line."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kubestow.editions.edition import Version
from kubestow.errors import InputError
from kubestow.files.reading import read_file
from kubestow.simulator.comparison.task import SchedulerVariant

DEFAULT_NAME: Final = "default"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_WITHOUT: Final = "without:"
_VERSION: Final = re.compile(r"v\d+(\.\d+){1,2}")


class ReadVariant(NamedTuple):
    """`problem` says why it cannot be used; empty if it can."""

    variant: SchedulerVariant
    problem: str = ""


def read_variants(texts: Sequence[str]) -> list[ReadVariant]:
    """The variants in their order; InputError if two have one name or there is none."""
    if not texts:
        raise InputError(
            "nothing to compare: name at least one scheduler besides the default one, for example "
            "--variant packed=config.yaml or --variant v1.9"
        )
    found = [_read_variant(text) for text in texts]
    if len(found) == 1:
        found.insert(0, ReadVariant(SchedulerVariant(name=DEFAULT_NAME)))
    names = [each.variant.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'two variants are called "{name}"; give each a name of its own')
    return found


def variant_of(version: str, config: Path | None) -> SchedulerVariant:
    """The scheduler of a version, with a configuration or its own; InputError."""
    variant = SchedulerVariant(name=version, version=version)
    return variant if config is None else _with_config(variant, str(config))


def _read_variant(text: str) -> ReadVariant:
    name, has_name, what = text.partition("=")
    if not has_name:
        # A name alone is the default scheduler, unless it looks like something else.
        what = text if _is_version(text) or _is_file(text) or _is_plugin(text) else ""
        name = Path(text).stem if what and _is_file(text) else text
    if not name.strip():
        raise InputError(f'--variant is "{text}", expected NAME or NAME=WHAT')
    variant = SchedulerVariant(name=name.strip())
    parts = [part.strip() for part in what.split(",") if part.strip()]
    versions = [part for part in parts if _is_version(part)]
    if len(versions) > 1:
        return ReadVariant(variant, f"has {len(versions)} versions: {', '.join(versions)}")
    for part in parts:
        try:
            variant = _with_part(variant, part)
        except InputError as error:
            return ReadVariant(variant, str(error))
    return ReadVariant(variant)


def _with_part(variant: SchedulerVariant, part: str) -> SchedulerVariant:
    replace = msgspec.structs.replace
    if part.startswith(_WITHOUT):
        return replace(variant, without=(*variant.without, part.removeprefix(_WITHOUT)))
    if _is_version(part):
        if part not in tuple(Version):
            raise InputError(f'there is no version "{part}", only {", ".join(reversed(Version))}')
        return replace(variant, version=part)
    if _is_plugin(part) and not Path(part).is_file():
        return replace(variant, plugins=(*variant.plugins, part))
    if variant.config_name:
        raise InputError(f'has two configurations, "{variant.config_name}" and "{part}"')
    return _with_config(variant, part)


def _with_config(variant: SchedulerVariant, path: str) -> SchedulerVariant:
    try:
        config = read_file(path).decode()
    except OSError as error:
        raise InputError(f'cannot read "{path}": {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise InputError(f'cannot read "{path}": it is not UTF-8 text') from error
    return msgspec.structs.replace(variant, config=config, config_name=path)


def _is_version(text: str) -> bool:
    return bool(_VERSION.fullmatch(text))


def _is_file(text: str) -> bool:
    return text.endswith(_SUFFIXES) or "/" in text


def _is_plugin(text: str) -> bool:
    module, colon, name = text.partition(":")
    return bool(colon and module and name) and "/" not in text
