"""Files that use names which the other version does not have: alerts, dashboards, scripts.

Every file is read as text, so PrometheusRules, Grafana's JSON and scripts are all the same. What is
large, binary or beyond the limits is counted and named, not read.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from kubestow.api.files import Document
from kubestow.editions.noticed import ChangedName, NoticedChanges
from kubestow.errors import InputError
from kubestow.files.reading import files_below
from kubestow.simulator.upgrade.objects import described
from kubestow.simulator.upgrade.report import Effect, UpgradeFinding

FILES_MAX: Final = 20_000
FILE_BYTES_MAX: Final = 16 << 20
FINDINGS_MAX: Final = 1_000
# Alerts, and dashboards that Grafana reads from the cluster.
SEARCHED_KINDS: Final = frozenset(("PrometheusRule", "ConfigMap", "GrafanaDashboard"))
# Not within a longer name. A line break in a text of JSON ends with a letter.
_BEGIN: Final = r"(?:(?<![\w.])|(?<=\\n)|(?<=\\t))"
_SKIPPED_FOLDERS: Final = frozenset((".git", "node_modules", "__pycache__"))


class SearchedFiles(NamedTuple):
    searched: int
    findings: tuple[UpgradeFinding, ...]
    # What was not searched, a line each.
    left_out: tuple[str, ...]


def search_files(paths: Sequence[Path], noticed: NoticedChanges, *, is_back: bool) -> SearchedFiles:
    """Search files, and all files of folders; InputError if one that is named does not exist."""
    for path in paths:
        # Unlike the methods of `Path`, also for a name that is too long.
        if not os.path.isfile(path) and not os.path.isdir(path):
            raise InputError(f"--search: there is no file or folder {path}")
    return _Search(noticed, is_back=is_back).run(paths)


def search_documents(
    documents: Iterable[Document], noticed: NoticedChanges, *, is_back: bool
) -> tuple[UpgradeFinding, ...]:
    """Search the texts of objects such as PrometheusRules, a finding for each name in one."""
    search = _Search(noticed, is_back=is_back)
    return tuple(found for document in documents for found in search.in_document(document))


class _Search:
    def __init__(self, noticed: NoticedChanges, *, is_back: bool) -> None:
        self._is_back = is_back
        self._names = [each for each in noticed.names if self._gone(each)]
        self._pattern = re.compile(
            "|".join(rf"{_BEGIN}({self._gone(each)})(?!\w)" for each in self._names)
        )
        self._searched = 0
        self._findings: list[UpgradeFinding] = []
        self._left_out: list[str] = []

    def _gone(self, name: ChangedName) -> str:
        return name.after if self._is_back else name.before

    def run(self, paths: Sequence[Path]) -> SearchedFiles:
        self._search_all(paths)
        if paths and not self._searched and not self._left_out:
            self._left_out.append("no file with text was found to search")
        return SearchedFiles(self._searched, tuple(self._findings), tuple(self._left_out))

    def _search_all(self, paths: Sequence[Path]) -> None:
        for path in _files(paths, self._leave_out):
            if self._searched == FILES_MAX:
                self._left_out.append(f"files after the first {FILES_MAX:,}")
                break
            if len(self._findings) >= FINDINGS_MAX:
                self._left_out.append(f"files after the first {FINDINGS_MAX:,} places")
                break
            self._search_one(path)

    def _search_one(self, path: Path) -> None:
        try:
            if path.stat().st_size > FILE_BYTES_MAX:
                self._left_out.append(f"{path}: larger than {FILE_BYTES_MAX >> 20}Mi")
                return
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            return  # Not text.
        except OSError as error:
            self._leave_out(error)
            return
        if not text.strip():
            # As a command leaves it that has failed: `kubectl get … > watched.yaml`.
            self._left_out.append(f"{path}: it is empty")
            return
        self._searched += 1
        for number, line in enumerate(text.splitlines(), start=1):
            seen = {(found.lastindex or 1, found[0]) for found in self._pattern.finditer(line)}
            for index, word in sorted(seen):
                self._findings.append(self._finding(f"{path}:{number}", index - 1, word))

    def _leave_out(self, error: OSError) -> None:
        self._left_out.append(f"{error.filename}: {error.strerror}")

    def in_document(self, document: Document) -> Iterator[UpgradeFinding]:
        where = f"{described(document.raw)} ({document.source})"
        seen = {
            (found.lastindex or 1, found[0])
            for text in _texts(document.raw)
            for found in self._pattern.finditer(text)
        }
        for index, word in sorted(seen):
            yield self._finding(where, index - 1, word)

    def _finding(self, where: str, index: int, word: str) -> UpgradeFinding:
        name = self._names[index]
        instead = name.earlier if self._is_back else name.instead
        return UpgradeFinding(
            effect=Effect.RENAMED,
            where=where,
            text=f"{name.kind} {word}: {instead}",
            change=name.number or None,
        )


def _texts(value: object) -> Iterator[str]:
    """All texts in a document, those of its metadata as well."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, object]", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)


def _files(paths: Sequence[Path], unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    """In the order given; those of a folder in the order of their names."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        # Only plain files: a pipe or a device might never end.
        found = files_below(path, skipped=_SKIPPED_FOLDERS, unreadable=unreadable)
        yield from (file for file in found if file.is_file())
