"""A kubeconfig file that has a context of this server for as long as the server runs.

    no file ────────── add ──► file with our context only ──────── remove ──► no file, and no
                                                                              folder made for it
    a kubeconfig ───── add ──► the same with one more context ──── remove ──► as it was before
    anything else ──── refused

The file may belong to other clusters and other programs may write to it at any time. So it is
replaced in one step (another file, then a rename), and at the end only what is still ours is taken
out: the entries with our address and our token. YAML comments are not kept while our context is in
the file; if no other program has written to it, they come back with the original content.

What is needed for that is in a journal beside the file, so that the next server puts in order what
one that was killed has left.
"""

import base64
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

import yaml

from kubestow.api.files import parse_document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.kubeconfig_journal import AddedEntry, Journal
from kubestow.cluster.documents import as_object, is_list, is_object, objects_in, value_at
from kubestow.errors import DecodeError, InputError
from kubestow.files.reading import read_file

logger = logging.getLogger(__name__)

_LISTS: Final = ("clusters", "users", "contexts")
# A file without any of these fields is something else.
_KNOWN_FIELDS: Final = frozenset((*_LISTS, "kind", "current-context"))
_PRIVATE: Final = 0o600


class KubeconfigFile:
    """InputError if the path cannot be used; nothing is changed before `add`."""

    def __init__(self, path: Path) -> None:
        # The target of a link is replaced, not the link.
        self.path: Final = path.resolve()
        # Folders that were made for the file, the innermost first.
        self._folders: list[Path] = []
        self._journal: Journal | None = None
        _require_writable(self.path)
        if (content := self._read()) is not None:
            self._parse(content)

    @property
    def is_merged(self) -> bool:
        """Whether there are other entries in the file."""
        return self._journal is not None and self._journal.added.original is not None

    def add(self, config: JsonObject) -> str:
        """Add the entries of a config with one context, and make it the current one.

        Returns the name of the context, which differs from the one given if that is taken.
        """
        self._tidy_up()
        original = self._read()
        before = {} if original is None else self._parse(original)
        name = _free_name(config["current-context"], before)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        merged: JsonObject = {"apiVersion": "v1", "kind": "Config", **before}
        merged["clusters"] = [*_named(before, "clusters"), {"name": name, "cluster": cluster}]
        merged["users"] = [*_named(before, "users"), {"name": name, "user": user}]
        context = {"cluster": name, "user": name}
        merged["contexts"] = [*_named(before, "contexts"), {"name": name, "context": context}]
        merged["current-context"] = name
        added = AddedEntry(
            name=name,
            url=cluster["server"],
            token=user.get("token", ""),
            previous=before.get("current-context") or "",
            original=original,
            mode=_PRIVATE if original is None else stat.S_IMODE(self.path.stat().st_mode),
            written=_dump(merged),
        )
        self._make_folders()
        try:
            journal = Journal.begin(self.path, added)
        except OSError as error:
            raise InputError(f'cannot write beside "{self.path}": {error.strerror}') from error
        try:
            # The token is for this user only, also in a file that others could read.
            self._replace(added.written, _PRIVATE)
        except InputError:
            journal.end()
            raise
        self._journal = journal
        return name

    def remove(self) -> None:
        """Take out what `add` added, unless it is gone. Logs what prevents it."""
        if self._journal is not None:
            self._remove(self._journal)
            self._journal = None

    def _tidy_up(self) -> None:
        """Take out what servers have added that were killed."""
        for journal in Journal.abandoned(self.path):
            if self._remove(journal):
                logger.warning(
                    'the context "%s" of a cluster that was killed is taken out of "%s"',
                    journal.added.name,
                    self.path,
                )

    def _remove(self, journal: Journal) -> bool:
        added = journal.added
        try:
            self._take_out(added)
        except (OSError, InputError) as error:
            logger.warning('the context "%s" stays in "%s": %s', added.name, self.path, error)
            journal.release()
            return False
        journal.end()
        if not self.path.exists():
            self._remove_folders()
        return True

    def _take_out(self, added: AddedEntry) -> None:
        content = self._read()
        if content is None:
            return
        if content == added.written:
            if added.original is None:
                self.path.unlink()
            else:
                self._replace(added.original, added.mode)
            return
        # Another program has written to the file since.
        left = _without(self._parse(content), added)
        if left is None:
            return
        if added.original is None and not any(_named(left, field) for field in _LISTS):
            self.path.unlink()
        else:
            self._replace(_dump(left), added.mode)

    # --- The file -----------------------------------------------------------------------------

    def _remove_folders(self) -> None:
        for folder in self._folders:
            try:
                folder.rmdir()
            except OSError:  # another program has put something into it, or removed it
                return

    def _read(self) -> bytes | None:
        """The content; None if there is no file."""
        try:
            return read_file(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f'cannot read kubeconfig "{self.path}": {error.strerror}') from error

    def _parse(self, content: bytes) -> JsonObject:
        try:
            value = parse_document(content, name=str(self.path))
        except DecodeError as error:
            raise _not_ours(self.path, str(error)) from error
        if value is None:
            return {}
        if not is_object(value):
            raise _not_ours(self.path, "it is not an object")
        if value.get("kind") not in (None, "", "Config") or not value.keys() & _KNOWN_FIELDS:
            raise _not_ours(self.path, 'it is not of kind "Config"')
        for field in _LISTS:
            entries = value.get(field)
            if entries is not None and not (is_list(entries) and all(map(is_object, entries))):
                raise _not_ours(self.path, f'"{field}" is not a list of objects')
        return value

    def _make_folders(self) -> None:
        missing = [parent for parent in self.path.parents if not parent.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._folders = missing or self._folders

    def _replace(self, content: bytes, mode: int) -> None:
        """Write the file in one step; its owner stays the same."""
        descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), mode)
                if self.path.exists():
                    known = self.path.stat()
                    if (known.st_uid, known.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(file.fileno(), known.st_uid, known.st_gid)
            Path(name).replace(self.path)
        except OSError as error:
            Path(name).unlink(missing_ok=True)
            raise InputError(f'cannot write kubeconfig "{self.path}": {error.strerror}') from error


def _require_writable(path: Path) -> None:
    if path.is_dir():
        raise InputError(
            f'kubeconfig "{path}" is a directory; name a file, such as "{path / "kubeconfig"}"'
        )
    if path.exists() and not path.is_file():
        raise InputError(f'kubeconfig "{path}" is not a regular file; name another one')
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f'kubeconfig "{path}" may not be written; name another file')
    folder = next(parent for parent in path.parents if parent.exists())
    try:
        # Also finds what permissions do not show, as a file system without space for new files.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f'kubeconfig "{path}" cannot be written: "{folder}": {error.strerror};'
            " name a file in another directory"
        ) from error


def _not_ours(path: Path, problem: str) -> InputError:
    return InputError(
        f'"{path}" exists and is not a kubeconfig: {problem}; it is not changed, name another file'
    )


def _named(config: JsonObject, field: str) -> list[JsonObject]:
    return objects_in(config.get(field))


def _free_name(wanted: str, config: JsonObject) -> str:
    """The name, with a number if the config has a cluster, user or context of that name."""
    taken = {entry.get("name") for field in _LISTS for entry in _named(config, field)}
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _without(config: JsonObject, entry: AddedEntry) -> JsonObject | None:
    """The config without our entries; None if it has none of them."""

    def is_ours(field: str, one: JsonObject) -> bool:
        if one.get("name") != entry.name:
            return False
        if field == "clusters":
            return value_at(one, "cluster", "server") == entry.url
        if field == "users":
            return value_at(one, "user", "token") == entry.token
        context = as_object(one.get("context"))
        return (context.get("cluster"), context.get("user")) == (entry.name, entry.name)

    if not any(is_ours("clusters", one) for one in _named(config, "clusters")):
        return None
    left = dict(config)
    for field in _LISTS:
        left[field] = [one for one in _named(config, field) if not is_ours(field, one)]
    if left.get("current-context") == entry.name:
        names = {one.get("name") for one in left["contexts"]}
        left["current-context"] = entry.previous if entry.previous in names else ""
    return left


def _dump(config: JsonObject) -> bytes:
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text.encode()


def kubeconfig(
    *, url: str, authority: bytes = b"", token: str = "", name: str = "kubestow"
) -> JsonObject:
    """A kubeconfig with one cluster, one user and one context."""
    cluster: JsonObject = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
