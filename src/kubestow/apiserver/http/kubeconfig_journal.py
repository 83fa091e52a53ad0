"""What a kubeconfig was like before a context was added, on disk for as long as the context is.

A process that is killed cannot put the file in order. The next one that adds a context to it does:
it finds the journals beside the file whose processes are gone.

    .NAME.kubestow-XXXXXXXX    locked by its process, and unlocked at any end of it
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from kubestow.api.decode import UNREADABLE
from kubestow.files import keeping

_SUFFIX_BYTES: Final = 8


class AddedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A context that was added, and the file without it.

    original     the content before; None if there was no file
    mode         its permissions
    written      the content with the context
    previous     the context that was current before
    """

    name: str
    url: str
    token: str
    previous: str
    original: bytes | None
    mode: int
    written: bytes


class Journal:
    """Notes how one context was added to one file, until it is removed again."""

    def __init__(self, path: Path, descriptor: int, added: AddedEntry) -> None:
        self._path = path
        # Not an object that a collector closes: the lock is the process's.
        self._descriptor = descriptor
        self.added: Final = added

    @classmethod
    def begin(cls, kubeconfig: Path, added: AddedEntry) -> Self:
        """Note what is about to be added; OSError if that cannot be written."""
        name = f"{_prefix(kubeconfig)}{secrets.token_hex(_SUFFIX_BYTES)}"
        path = kubeconfig.with_name(name)
        # Locked and complete before it has the name by which others find it.
        aside = path.with_name(f"{name}.new")
        keeping.write(aside, msgspec.json.encode(added))
        try:
            descriptor = os.open(aside, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            aside.rename(path)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        return cls(path, descriptor, added)

    @classmethod
    def abandoned(cls, kubeconfig: Path) -> Iterator[Self]:
        """The journals of processes that are gone, the last one first."""
        found: list[tuple[int, Path]] = []
        with suppress(OSError), os.scandir(kubeconfig.parent) as entries:
            for entry in entries:
                if not entry.name.startswith(_prefix(kubeconfig)):
                    continue
                # A user's own: the content of the kubeconfig is made of it.
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    found.append((status.st_mtime_ns, Path(entry.path)))
        for _, path in sorted(found, reverse=True):
            journal = cls._taken_over(path)
            if journal is not None:
                yield journal

    @classmethod
    def _taken_over(cls, path: Path) -> Self | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            added = msgspec.json.decode(path.read_bytes(), type=AddedEntry)
        except (OSError, *UNREADABLE):  # in use, or no journal
            os.close(descriptor)
            return None
        return cls(path, descriptor, added)

    def end(self) -> None:
        """The file is in order again."""
        self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Leave it to the next process."""
        os.close(self._descriptor)


def _prefix(kubeconfig: Path) -> str:
    return f".{kubeconfig.name}.kubestow-"
