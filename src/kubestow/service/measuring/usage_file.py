"""Measurements of a file, which is read again when it has changed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from kubestow.errors import InputError
from kubestow.files.reading import read_file, unpacked
from kubestow.service.measuring.reader import MeasurementBatch
from kubestow.usage.file_format import BadLine, read_lines
from kubestow.usage.measurement import Measurement

_LINES_EACH = 500


class UsageFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return str(self._path)

    async def read(self) -> AsyncIterator[MeasurementBatch]:
        try:
            status = self._path.stat()
            stamp = status.st_mtime_ns, status.st_size
            if stamp == self._stamp:
                return
            content = await asyncio.to_thread(read_file, self._path)
        except OSError as error:
            raise InputError(f'cannot read "{self._path}": {error.strerror}') from error
        measurements: list[Measurement] = []
        bad_count = 0
        for found in read_lines(unpacked(content, str(self._path))):
            if isinstance(found, BadLine):
                bad_count += 1
            else:
                measurements.append(found)
            if len(measurements) + bad_count >= _LINES_EACH:
                yield MeasurementBatch(measurements, bad_count)
                measurements, bad_count = [], 0
        yield MeasurementBatch(measurements, bad_count)
        self._stamp = stamp
