"""Files that are written for keeping.

They show a cluster, so only their owner can read them. None replaces another file without being
asked to (`force`), and none is written through a link: a link is refused or replaced as a file is.
Devices and pipes are written as they are.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from kubestow.errors import InputError

MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def require_new(path: Path, option: str, *, force: bool) -> None:
    """InputError unless the file can be created. Called before the work whose result it gets."""
    if os.path.isdir(path):
        raise InputError(f'{option}: cannot write "{path}": it is a folder')
    if not os.path.isdir(path.parent):
        raise InputError(f'{option}: cannot write "{path}": there is no folder "{path.parent}"')
    if is_device(path):
        return
    if os.path.lexists(path) and not force:
        raise InputError(exists_text(path, option))
    if not os.access(path.parent, os.W_OK):
        raise InputError(f'{option}: cannot write "{path}": the folder is read-only')


def exists_text(path: Path, option: str) -> str:
    what = "is a link" if os.path.islink(path) else "exists"
    return f'{option}: "{path}" {what} and is not overwritten; name another file, or add --force'


def create(path: Path, *, force: bool = False, mode: int = MODE) -> BinaryIO:
    """A new file; FileExistsError if there is one and `force` is not given."""
    if is_device(path):
        return path.open("wb")
    if force:
        path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, _NEW, mode), "wb")


def write(path: Path, content: str | bytes, *, force: bool = False, mode: int = MODE) -> None:
    """Write a new file, all of it or none; OSError as `create`. With `force` see `replace`."""
    if force and not is_device(path):
        replace(path, content, mode=mode)
        return
    file = create(path, mode=mode)
    try:
        with file:
            file.write(content.encode() if isinstance(content, str) else content)
    except BaseException:  # The disk is full, or the user ends it.
        if not is_device(path):
            path.unlink(missing_ok=True)
        raise


def replace(path: Path, content: str | bytes, *, mode: int = MODE) -> None:
    """Write a file in one step, in place of one that may exist, which is kept at an OSError."""
    if is_device(path):
        write(path, content)
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    aside.unlink(missing_ok=True)
    try:
        write(aside, content, mode=mode)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def is_device(path: Path) -> bool:
    """Whether there is something that no file can be lost by writing to, such as /dev/stdout."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
