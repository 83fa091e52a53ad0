"""The content of files, up to a limit: a file is not trusted, and a small one may unpack to much.

    size     no content is larger than the limit, packed or not, nor are all manifests together;
             `--max-input` sets it
    ratio    without `--max-input`, what unpacks to more than `FREE_BYTES` may be `RATIO` times
             as large as its file; manifests and recordings have a fourth of that

Nothing is read or unpacked beyond the limit, so that memory stays below a small multiple of it.
"""

import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final, Protocol, TextIO

from kubestow.errors import InputError

INPUT_BYTES: Final = 1 << 30  # without `--max-input`
FREE_BYTES: Final = 16 << 20
RATIO: Final = 100
FLAG: Final = "--max-input"
# Processes that are started, such as workers, have the limit from here.
VARIABLE: Final = "KUBESTOW_MAX_INPUT"

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # of zlib or gzip
_CHUNK_BYTES: Final = 1 << 20
# What comes after the end of a stream is copied: files of many short ones take small steps.
_FIRST_CHUNK_BYTES: Final = 1 << 12
_UNITS: Final = {"": 1, "k": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_UNITS.update({"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40})
_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)(Ki|Mi|Gi|Ti|k|M|G|T|)B?")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class InputTooLargeError(InputError):
    """Content beyond the limit."""


class DamagedError(InputError):
    """A packed file cannot be unpacked; the message is the reason alone."""


# --- The limit --------------------------------------------------------------------------------


def limit_input(size: str) -> None:
    """Set the limit of this process and those that it starts; InputError if it is no size."""
    os.environ[VARIABLE] = str(_bytes_of(size, FLAG))


def input_bytes_max() -> int:
    given = os.environ.get(VARIABLE, "")
    return _bytes_of(given, VARIABLE) if given else INPUT_BYTES


def unpacked_bytes_max(packed_bytes: int) -> int:
    """What a file of this size may unpack to."""
    if os.environ.get(VARIABLE):
        return input_bytes_max()
    return min(INPUT_BYTES, max(FREE_BYTES, packed_bytes * RATIO))


def _bytes_of(size: str, name: str) -> int:
    found = _SIZE.fullmatch(size.strip())
    count = int(float(found[1]) * _UNITS[found[2]]) if found is not None else 0
    if count <= 0:
        raise InputError(f'{name} is "{size}", expected a size such as 512Mi or 4Gi')
    return count


# --- Reading ----------------------------------------------------------------------------------


def read_file(path: str | Path) -> bytes:
    """The content of a file as it is; OSError, or InputTooLargeError."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return read_stream(file, str(path))
        check_size(str(path), status.st_size)
        # One byte more: a file that grows meanwhile is read as a stream.
        content = file.read(status.st_size + 1)
        return content if len(content) <= status.st_size else _rest(file, str(path), content)


def _refuse(error: OSError) -> None:
    raise InputError(f'cannot read "{error.filename}": {error.strerror}') from error


def files_below(
    folder: Path,
    *,
    skipped: Collection[str] = (),
    unreadable: Callable[[OSError], None] = _refuse,
) -> Iterator[Path]:
    """All files in this folder and below; InputError for a folder that cannot be read.

    Folders with a name of `skipped` are left out, and those that cannot be read if `unreadable`
    returns. Links to folders are not followed.
    """
    for path, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(set(folders).difference(skipped))
        yield from (Path(path, name) for name in sorted(files))


def open_text(path: str | Path) -> TextIO:
    """A file of lines in UTF-8, read one by one; OSError, or InputTooLargeError."""
    if os.path.isfile(path):
        check_size(str(path), os.path.getsize(path))
        return open(path, newline="", encoding="utf-8-sig")
    # The lines of a pipe or a device may have no end.
    content = io.BytesIO(read_file(path))
    return io.TextIOWrapper(content, newline="", encoding="utf-8-sig")


def read_stream(stream: _Readable, name: str) -> bytes:
    """All of a stream, such as standard input; raises InputTooLargeError."""
    return _rest(stream, name, b"")


def check_size(name: str, size: int) -> None:
    """Raise InputTooLargeError for a file of this size."""
    limit = input_bytes_max()
    if size > limit:
        raise InputTooLargeError(
            f"{name} has {_shown(size)}, more than the limit of {_shown(limit)}; {FLAG} sets it"
        )


def _rest(stream: _Readable, name: str, begun: bytes) -> bytes:
    limit = input_bytes_max()
    content = bytearray(begun)
    while chunk := stream.read(_CHUNK_BYTES):
        content += chunk
        if len(content) > limit:
            raise InputTooLargeError(
                f"{name} has more than the limit of {_shown(limit)}; {FLAG} sets it"
            )
    return bytes(content)


# --- Unpacking --------------------------------------------------------------------------------


def is_packed(content: bytes) -> bool:
    return content.startswith(_GZIP_MAGIC)


def unpacked(content: bytes, name: str) -> bytes:
    """The content of a gzip file, of one stream or several; as it is, if it is no such file."""
    if not is_packed(content):
        return content
    return unpack(content, name, unpacked_bytes_max(len(content)))


def unpack(packed: bytes, name: str, bytes_max: int) -> bytes:
    """Streams of gzip or zlib as one text; DamagedError, or InputTooLargeError that has `name`."""
    parts: list[bytes] = []
    left = bytes_max
    position = 0
    view = memoryview(packed)
    while position < len(packed):
        stream = zlib.decompressobj(_ANY_HEADER)
        size = _FIRST_CHUNK_BYTES
        while not stream.eof:
            chunk = view[position : position + size]
            if not chunk:
                raise DamagedError("it ends in the middle")
            try:
                part = stream.decompress(chunk, left + 1)
            except zlib.error as error:
                raise DamagedError(str(error)) from error
            left -= len(part)
            if left < 0:
                raise _too_large(name, len(packed), bytes_max)
            parts.append(part)
            position += len(chunk) - len(stream.unused_data)
            size = min(size * 2, _CHUNK_BYTES)
        # gzip ignores zeros after a stream.
        while position < len(packed) and not packed[position]:
            position += 1
    return b"".join(parts)


class TotalSize:
    """Limits the size of all files that are kept together."""

    def __init__(self) -> None:
        self._bytes = 0

    def counted(self, content: bytes) -> bytes:
        """The content; InputTooLargeError if it is too large with those before."""
        self._bytes += len(content)
        limit = input_bytes_max()
        if self._bytes > limit:
            raise InputTooLargeError(
                f"the files have more than the limit of {_shown(limit)} together; {FLAG} sets it"
            )
        return content


class Unpacker:
    """Unpacks a file piece by piece, of which none is kept: each may have as many bytes as an
    input, and all together as many as the ratio allows."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._unpacked_bytes = 0

    def unpack(self, piece: bytes, *, read_bytes: int) -> bytes:
        """`read_bytes` are those of the file up to the end of this piece. Raises as `unpack`."""
        limit = input_bytes_max()
        if not os.environ.get(VARIABLE):
            limit = min(limit, max(FREE_BYTES, read_bytes * RATIO) - self._unpacked_bytes)
        content = unpack(piece, self._name, max(limit, 0))
        self._unpacked_bytes += len(content)
        return content


def _too_large(name: str, packed_bytes: int, bytes_max: int) -> InputTooLargeError:
    return InputTooLargeError(
        f"{name} has {_shown(packed_bytes)} and unpacks to more than the limit of "
        f"{_shown(bytes_max)}; if you trust it, {FLAG} sets the limit"
    )


def _shown(size: int) -> str:
    for unit in ("Gi", "Mi", "Ki"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.4g} {unit}B"
    return "1 byte" if size == 1 else f"{size} bytes"
