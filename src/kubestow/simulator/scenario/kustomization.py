"""Whether a kustomization is all here: nothing that it names would be fetched.

kustomize is written in Go, which reads a field in any case (`RESOURCES`), and loads every file that
a field names, also one of a generator or transformer, from an address as from a path.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml

from kubestow.api.meta import JsonObject
from kubestow.api.yaml_text import value_of, yaml_nodes
from kubestow.cluster.documents import is_list, is_object
from kubestow.errors import InputError
from kubestow.files.reading import read_file

_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# Fields that name files and folders, which are here: of objects, and of what makes or changes them,
# which is a text of the kustomization itself if it has several lines.
_NAMING: Final = ("resources", "bases", "components")
_WORKING: Final = ("generators", "transformers", "validators")
# Fields that may name files.
_READING: Final = (
    "configmapgenerator", "configurations", "crds", "openapi", "patches", "patchesjson6902",
    "patchesstrategicmerge", "replacements", "secretgenerator",
)  # fmt: skip
# Parts of these that name none, with any texts.
_PLAIN: Final = ("literals", "options")
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*(://|::)|git@", re.IGNORECASE)


def require_local(folder: Path) -> None:
    """InputError if a kustomization, or one that it names, has something that would be fetched."""
    _Walk().check_folder(folder, is_working=False)


class _Walk:
    def __init__(self) -> None:
        self._seen: set[tuple[Path, bool]] = set()

    def check_folder(self, folder: Path, *, is_working: bool) -> None:
        """`is_working`: its objects are generators, transformers or validators."""
        if (folder.resolve(), is_working) in self._seen:
            return
        self._seen.add((folder.resolve(), is_working))
        for file in (folder / name for name in _KUSTOMIZATIONS):
            if file.is_file():
                for content in _contents(file):
                    self._check_content(file, content, is_working=is_working)

    def _check_content(self, file: Path, content: JsonObject, *, is_working: bool) -> None:
        _check_texts(file, _values(content, _READING))
        for text in _texts(_values(content, _NAMING)):
            self._check_named(file, text, is_working=is_working)
        for text in _texts(_values(content, _WORKING)):
            if "\n" in text:
                _check_texts(file, _objects(text.encode(), file))
            else:
                self._check_named(file, text, is_working=True)

    def _check_named(self, file: Path, text: str, *, is_working: bool) -> None:
        named = file.parent / text
        if "\n" in text or _ADDRESS.match(text) or not named.exists():
            raise _remote(file, text)
        if named.is_dir():
            self.check_folder(named, is_working=is_working)
        elif is_working:
            _check_texts(named, _contents(named))


def _values(content: JsonObject, fields: Sequence[str]) -> list[object]:
    return [value for name, value in content.items() if name.casefold() in fields]


def _check_texts(file: Path, content: Sequence[object]) -> None:
    for text in _texts(content):
        # A file of a ConfigMap may be given as KEY=FILE.
        for part in (text, text.partition("=")[2]):
            if "\n" not in text and _ADDRESS.match(part):
                raise _remote(file, text)


def _texts(content: object) -> Iterator[str]:
    """All texts that are values, but for those of `_PLAIN`."""
    if isinstance(content, str):
        yield content
    elif is_object(content):
        for name, value in content.items():
            if name.casefold() not in _PLAIN:
                yield from _texts(value)
    elif is_list(content):
        for each in content:
            yield from _texts(each)


def _contents(file: Path) -> list[JsonObject]:
    try:
        return _objects(read_file(file), file)
    except OSError as error:
        raise InputError(f'cannot read "{file}": {error.strerror}') from error


def _objects(text: bytes, file: Path) -> list[JsonObject]:
    try:
        values = [value_of(node, loader) for node, loader in yaml_nodes(text)]
    except yaml.YAMLError as error:
        raise InputError(f'cannot read "{file}": {error}') from error
    return [each for each in values if is_object(each)]


def _remote(file: Path, text: str) -> InputError:
    return InputError(
        f'"{file}" names "{text}", which is not here, and nothing is fetched: name the output of '
        "kubectl kustomize with apply"
    )
