"""The file of a recording: blocks that can be read one by one.

    kubestow recording\\n
    block, block, …      length and CRC-32 (4 bytes each, little-endian), then a zlib stream: of
                         the first block the header, of all others a list of records

A process that is killed leaves a file whose last block is cut off; all before it is whole. A block
whose checksum is wrong makes the rest unusable, because later records build on earlier ones.
"""

import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from kubestow.errors import InputError
from kubestow.recording.format import FORMAT_VERSION, Header, Record

log = logging.getLogger(__name__)

MAGIC: Final = b"kubestow recording\n"
_FRAME: Final = struct.Struct("<II")
# A block is written when its records take this much, or when `flush` is called.
BLOCK_BYTES: Final = 256 << 10
# A block that claims to be larger is damaged.
BLOCK_BYTES_MAX: Final = 64 << 20
# Blocks that wait for a slow disk; with more of them the recording ends.
WAITING_BLOCKS_MAX: Final = 64
# Fast rather than small: the scheduler's thread shares its core with this one.
_LEVEL: Final = 1


class RecordingWriter:
    """Appends records to a new file. Compressing and writing happen in a thread of its own.

    If the file cannot be written, the recording ends with a log line and the scheduler goes on.
    """

    def __init__(self, path: Path, header: Header) -> None:
        """Raises InputError if the file cannot be created; one that exists is replaced."""
        self.path = path
        self.bytes_written = 0
        self.is_ended = False
        self._encoder = msgspec.msgpack.Encoder()
        self._lock = threading.Lock()  # extenders answer in a thread of their own
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._blocks: list[Future[None]] = []
        try:
            self._file: BinaryIO = path.open("wb")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot write the recording {path}: {reason}") from error
        self._thread = ThreadPoolExecutor(1, "recording")
        self._file.write(MAGIC)
        self._submit(msgspec.json.encode(header))

    def write(self, record: Record) -> None:
        if self.is_ended:
            return
        with self._lock:
            encoded = self._encoder.encode(record)
            self._waiting.append(encoded)
            self._waiting_bytes += len(encoded)
            if self._waiting_bytes >= BLOCK_BYTES:
                self._flush()

    def flush(self) -> None:
        """Hand what was written so far to the thread."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting or self.is_ended:
            return
        self._blocks = [block for block in self._blocks if not self._has_ended(block)]
        if len(self._blocks) >= WAITING_BLOCKS_MAX:
            self.end(f"{self.path} is written too slowly")
            return
        records, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._submit(array_of(records))

    def _submit(self, content: bytes) -> None:
        self._blocks.append(self._thread.submit(self._write_block, content))

    def close(self) -> None:
        """Write the rest and wait for it."""
        self.flush()
        self._thread.shutdown(wait=True)
        for block in self._blocks:
            self._has_ended(block)
        self._file.close()

    def _has_ended(self, block: Future[None]) -> bool:
        if not block.done():
            return False
        error = block.exception()
        if isinstance(error, OSError):
            self.end(f"{self.path} cannot be written: {error.strerror or error}")
        elif error is not None:
            raise error
        return True

    def end(self, reason: str) -> None:
        """Record no more."""
        if not self.is_ended:
            log.error("The recording has ended: %s", reason)
        self.is_ended = True
        self._waiting = []

    def _write_block(self, content: bytes) -> None:
        payload = zlib.compress(content, _LEVEL)
        self._file.write(_FRAME.pack(len(payload), zlib.crc32(payload)))
        self._file.write(payload)
        self._file.flush()
        self.bytes_written += _FRAME.size + len(payload)


def array_of(encoded: list[bytes]) -> bytes:
    """A MessagePack array of values that are encoded already."""
    return b"".join((b"\xdd", struct.pack(">I", len(encoded)), *encoded))


class RecordingReader:
    """Reads a file from its start, one block at a time.

    header   what was recorded
    cut_at   where a block begins that is not complete, as after a kill; None if all are
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError if this is no recording, or one of a later version."""
        self.path = path
        self.cut_at: int | None = None
        self._decoder = msgspec.msgpack.Decoder(list[Record])
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot read the recording {path}: {reason}") from error
        self._size = os.fstat(self._file.fileno()).st_size
        if self._file.read(len(MAGIC)) != MAGIC:
            raise InputError(
                f"{path} is no recording: make one with `kubestow run --record`, "
                "`kubestow simulate --record` or `kubestow record`"
            )
        self.header = self._header()
        if self.header.format > FORMAT_VERSION:
            raise InputError(
                f"{path} was made by kubestow {self.header.program}, whose recordings this "
                "version does not know; use a newer version"
            )

    def __iter__(self) -> Iterator[Record]:
        """The records after the header; raises InputError at a damaged place."""
        while (block := self._next_block()) is not None:
            start, content = block
            try:
                yield from self._decoder.decode(content)
            except msgspec.DecodeError as error:
                raise self._damaged(start, str(error)) from error

    @property
    def share_read(self) -> float:
        return self._file.tell() / self._size

    def close(self) -> None:
        self._file.close()

    def _header(self) -> Header:
        block = self._next_block()
        if block is None:
            raise InputError(f"{self.path} ends before its first block: nothing was recorded")
        try:
            return msgspec.json.decode(block[1], type=Header)
        except msgspec.DecodeError as error:
            raise self._damaged(block[0], str(error)) from error

    def _next_block(self) -> tuple[int, bytes] | None:
        """Where it begins, and what it holds; None at the end."""
        start = self._file.tell()
        frame = self._file.read(_FRAME.size)
        if len(frame) < _FRAME.size:
            if frame:
                self.cut_at = start
            return None
        length, checksum = _FRAME.unpack(frame)
        if length > BLOCK_BYTES_MAX:
            raise self._damaged(start, "its length is not possible")
        payload = self._file.read(length)
        if len(payload) < length:
            self.cut_at = start
            return None
        if zlib.crc32(payload) != checksum:
            raise self._damaged(start, "its checksum is wrong")
        try:
            return start, zlib.decompress(payload)
        except zlib.error as error:
            raise self._damaged(start, str(error)) from error

    def _damaged(self, offset: int, reason: str) -> InputError:
        return InputError(f"{self.path} is damaged: the block at byte {offset}: {reason}")
