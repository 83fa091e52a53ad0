"""The file of a recording: blocks that can be read one by one.

    kubestow recording\\n
    block, block, …      length and CRC-32 (4 bytes each, little-endian), then a zlib stream: of
                         the first block the header, of all others a list of records

A process that is killed leaves a file whose last block is cut off; all before it is whole. A block
whose checksum is wrong makes the rest unusable, because later records build on earlier ones.

A file is not trusted: no block is unpacked further than the limits of input allow.
"""

import logging
import os
import struct
import threading
import zlib
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from kubestow.api.decode import UNREADABLE
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.files.reading import DamagedError, Unpacker
from kubestow.recording.format import FORMAT_VERSION, Header, Record

log = logging.getLogger(__name__)

MAGIC: Final = b"kubestow recording\n"
_FRAME: Final = struct.Struct("<II")
# Records that take more than this are written as several blocks.
BLOCK_BYTES: Final = 8 << 20
# A block that claims to be larger is damaged.
BLOCK_BYTES_MAX: Final = 64 << 20
# Blocks that wait for a slow disk; with more of them the recording ends.
WAITING_BLOCKS_MAX: Final = 64
# How a list of one begins in MessagePack.
_ONE_RECORD: Final = b"\x91"
# Fast rather than small: the scheduler's thread shares its core with this one.
_LEVEL: Final = 1


class RecordingWriter:
    """Appends records to a new file. A thread of its own encodes, compresses and writes them.

    If the file cannot be written, the recording ends with a log line and the scheduler goes on.
    """

    def __init__(self, path: Path, header: Header, *, force: bool = False) -> None:
        """InputError if the file cannot be created; one that exists is replaced if forced."""
        self.path = path
        self.bytes_written = 0
        self.is_ended = False
        self._encoder = msgspec.msgpack.Encoder()
        self._lock = threading.Lock()  # extenders answer in a thread of their own, which may flush
        # What waits to be written; `flush` takes it.
        self.records: list[Record] = []
        self._blocks: list[Future[None]] = []
        try:
            self._file: BinaryIO = keeping.create(path, force=force)
        except FileExistsError as error:
            raise InputError(keeping.exists_text(path, "--record")) from error
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot write the recording {path}: {reason}") from error
        self._thread = ThreadPoolExecutor(1, "recording")
        self._file.write(MAGIC)
        self._blocks.append(self._thread.submit(self._write_block, msgspec.json.encode(header)))

    def flush(self) -> None:
        """Hand the records so far to the thread."""
        # No lock is needed to add a record: in any thread, it is added before or after this.
        with self._lock:
            count = len(self.records)
            taken = self.records[:count]
            del self.records[:count]
            if taken and not self.is_ended:
                self._submit(taken)

    def _submit(self, records: list[Record]) -> None:
        self._blocks = [block for block in self._blocks if not self._has_ended(block)]
        if len(self._blocks) >= WAITING_BLOCKS_MAX:
            self.end(f"{self.path} is written too slowly")
        else:
            self._blocks.append(self._thread.submit(self._write_records, records))

    def close(self) -> None:
        """Write the rest and wait for it. What comes later is not recorded."""
        self.flush()
        for block in self._blocks:
            block.exception()  # Waits; what went wrong is logged below.
            self._has_ended(block)
        self.is_ended = True
        self._blocks = []
        self._thread.shutdown(wait=True)
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

    def _write_records(self, records: list[Record]) -> None:
        content = self._encoder.encode(records)
        if len(content) > BLOCK_BYTES and len(records) > 1:
            half = len(records) // 2
            self._write_records(records[:half])
            self._write_records(records[half:])
        else:
            self._write_block(content)

    def _write_block(self, content: bytes) -> None:
        payload = zlib.compress(content, _LEVEL)
        self._file.write(_FRAME.pack(len(payload), zlib.crc32(payload)))
        self._file.write(payload)
        self._file.flush()
        self.bytes_written += _FRAME.size + len(payload)


class RecordingReader:
    """Reads a file, one block at a time, as often as it is iterated over.

    header       what was recorded
    cut_at       after reading: where a block begins that is not complete, as after a kill; None if
                 all are
    share_read   how much of the file has been read, from 0 to 1
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError if this is no recording, or one of a later version."""
        self.path = path
        self.cut_at: int | None = None
        self.share_read = 0.0
        self._decoder = msgspec.msgpack.Decoder(list[Record])
        blocks = self._blocks()
        first = next(blocks, None)
        blocks.close()
        if first is None:
            raise InputError(f"{path} ends before its first block: nothing was recorded")
        try:
            self.header = msgspec.json.decode(first.content, type=Header)
        except UNREADABLE as error:
            raise self._damaged(first.start, str(error)) from error
        if self.header.format > FORMAT_VERSION:
            raise InputError(
                f"{path} was made by kubestow {self.header.program}, whose recordings this "
                "version does not know; use a newer version"
            )

    def __iter__(self) -> Iterator[Record]:
        """The records after the header; raises InputError at a damaged place."""
        blocks = self._blocks()
        next(blocks)
        for block in blocks:
            # So are blocks written, and many small records take much more memory than their text.
            if len(block.content) > BLOCK_BYTES and not block.content.startswith(_ONE_RECORD):
                raise self._damaged(block.start, "it has too many records")
            try:
                records = self._decoder.decode(block.content)
            except UNREADABLE as error:
                raise self._damaged(block.start, str(error)) from error
            yield from records

    def _blocks(self) -> Generator["_Block", None, None]:
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if file.read(len(MAGIC)) != MAGIC:
                    raise InputError(
                        f"{self.path} is no recording: make one with `kubestow run --record`, "
                        "`kubestow simulate --record` or `kubestow record`"
                    )
                unpacker = Unpacker(str(self.path))
                while (block := self._next_block(file, unpacker)) is not None:
                    self.share_read = file.tell() / size
                    yield block
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot read the recording {self.path}: {reason}") from error

    def _next_block(self, file: BinaryIO, unpacker: Unpacker) -> "_Block | None":
        start = file.tell()
        frame = file.read(_FRAME.size)
        if len(frame) < _FRAME.size:
            if frame:
                self.cut_at = start
            return None
        length, checksum = _FRAME.unpack(frame)
        if length > BLOCK_BYTES_MAX:
            raise self._damaged(start, "its length is not possible")
        payload = file.read(length)
        if len(payload) < length:
            self.cut_at = start
            return None
        if zlib.crc32(payload) != checksum:
            raise self._damaged(start, "its checksum is wrong")
        try:
            return _Block(start, unpacker.unpack(payload, read_bytes=file.tell()))
        except DamagedError as error:
            raise self._damaged(start, str(error)) from error

    def _damaged(self, offset: int, reason: str) -> InputError:
        return InputError(f"{self.path} is damaged: the block at byte {offset}: {reason}")


class _Block(NamedTuple):
    """Where a block begins in the file, and what it holds."""

    start: int
    content: bytes
