"""The input of a simulation as files, which load again to the same simulation.

    NAME.json, NAME.yaml   one file with a list
    any other name         a folder with a file for each kind

Objects of a kind stay in order, because ties between nodes are broken by it. What no rule reads and
may be secret is left out (`kept_documents`).
"""

import os
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from kubestow.api.deep_json import readable_json
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.simulator.kept_documents import without_unread_parts

_JSON: Final = ".json"
_YAML: Final = (".yaml", ".yml")
# An annotation of the list.
SERVER_VERSION: Final = "kubestow.io/server-version"
_VERSION: Final = re.compile(rb'kubestow\.io/server-version"?: "?(v[0-9][0-9A-Za-z.+-]*)')
_HEAD_BYTES: Final = 512


def require_place(path: Path, *, force: bool = False) -> None:
    """InputError unless the input can be saved there; other files are not overwritten."""
    if _is_file(path):
        keeping.require_new(path, "--save", force=force)
        return
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InputError(
            f'cannot save to "{path}": it is a file; name a folder, or a file with {_JSON} or .yaml'
        )
    if os.path.isdir(path) and any(path.iterdir()) and not force:
        raise InputError(
            f'cannot save to "{path}": the folder is not empty; name another, or add --force'
        )


def save_input(
    documents: Sequence[Document], path: Path, *, force: bool = False, server_version: str = ""
) -> int:
    """Write what decides of the documents; returns how many files were written.

    `server_version` is that of the server they come from; `saved_version` reads it again.
    """
    try:
        if _is_file(path):
            items = [without_unread_parts(one.raw) for one in documents]
            _write(path, items, server_version, force=force)
            return 1
        by_name: dict[str, list[JsonObject]] = {}
        for document in documents:
            raw = without_unread_parts(document.raw)
            by_name.setdefault(_file_name(raw), []).append(raw)
        path.mkdir(mode=keeping.FOLDER_MODE, parents=True, exist_ok=True)
        with _all_or_none(path / name for name in by_name):
            for name, items in by_name.items():
                _write(path / name, items, server_version, force=force)
        return len(by_name)
    except OSError as error:
        raise InputError(f'cannot save to "{path}": {error.strerror}') from error


@contextmanager
def _all_or_none(paths: Iterable[Path]) -> Generator[None]:
    """If not all of these files can be written, those that are new are removed: a part of a cluster
    would load as if it were all of it."""
    new = [path for path in paths if not path.exists()]
    try:
        yield
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise


def _is_file(path: Path) -> bool:
    return path.suffix in (_JSON, *_YAML)


def _file_name(raw: JsonObject) -> str:
    """`pod.json`, `deployment.apps.json`."""
    group = str(raw.get("apiVersion", "")).rpartition("/")[0]
    return ".".join(filter(None, (raw["kind"].lower(), group))) + _JSON


def saved_version(files: Iterable[str]) -> str:
    """The version of the server from which one of these files or folders was saved; empty if there
    is none. Only the beginning of files is read."""
    for name in files:
        path = Path(name)
        try:
            paths = sorted(path.iterdir()) if path.is_dir() else [path]
            for each in paths:
                if _is_file(each) and each.is_file():
                    with each.open("rb") as file:
                        found = _VERSION.search(file.read(_HEAD_BYTES))
                    if found is not None:
                        return found[1].decode()
        except OSError:
            continue  # Reported where it is read.
    return ""


def _write(path: Path, items: list[JsonObject], server_version: str, *, force: bool) -> None:
    content: JsonObject = {"apiVersion": "v1", "kind": "List"}
    if server_version:
        # Before the items, where it is found again.
        content["metadata"] = {"annotations": {SERVER_VERSION: server_version}}
    content["items"] = items
    if path.suffix in _YAML:
        # Without references, which other programs may not read.
        try:
            text = yaml.dump(content, Dumper=_Plain, sort_keys=False, allow_unicode=True)
        except (RecursionError, yaml.representer.RepresenterError) as error:
            raise InputError(
                f'cannot save to "{path}": an object is nested too deeply for YAML; '
                f"name a file with {_JSON}"
            ) from error
        keeping.write(path, text, force=force)
        return
    keeping.write(path, readable_json(content), force=force)


class _Plain(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
