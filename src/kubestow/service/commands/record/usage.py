"""Keeps what nodes and pods use beside a recording: `kubestow record --usage FILE`."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kubestow.cache.objects import ClusterObjects
from kubestow.errors import InputError, KubestowError
from kubestow.files import keeping
from kubestow.service.measuring.reader import Source
from kubestow.service.output import stderr
from kubestow.usage.file_format import UsageWriter
from kubestow.usage.measurement import Measurement

# As often as metrics-server measures by default.
EVERY_S: Final = 60.0


class UsageFollower:
    """Writes new measurements of a source to a file; a source that fails is read again later."""

    def __init__(self, source: Source, path: Path, objects: ClusterObjects, *, force: bool) -> None:
        """InputError if the file cannot be written."""
        self._source = source
        self._objects = objects
        try:
            self._writer = UsageWriter(path, force=force)
        except OSError as error:
            raise InputError(f'--usage: cannot write "{path}": {error.strerror}') from error
        # When each node and pod was measured last; those that are gone are dropped.
        self._times_ns: dict[tuple[str, str, str], int] = {}
        self._problem = ""
        self.count = 0

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self.read_once()
            await asyncio.sleep(EVERY_S)

    async def read_once(self) -> None:
        """Write what was measured since the last call."""
        times_ns: dict[tuple[str, str, str], int] = {}
        problem = ""
        try:
            async for batch in self._source.read():
                self._write(batch.measurements, times_ns)
        except (KubestowError, OSError) as error:
            problem = str(error)
            times_ns = {**self._times_ns, **times_ns}
        self._times_ns = times_ns
        if problem and problem != self._problem:
            text = f"cannot read usage from {self._source.name}: {problem}; trying again"
            stderr().print(text, markup=False)
        self._problem = problem
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _write(
        self, measurements: Iterable[Measurement], times_ns: dict[tuple[str, str, str], int]
    ) -> None:
        fresh: list[Measurement] = []
        for measurement in measurements:
            key = measurement.node, measurement.namespace, measurement.pod
            times_ns[key] = measurement.time_ns
            if measurement.time_ns > self._times_ns.get(key, -1):
                fresh.append(self._with_node(measurement))
        self._writer.write(fresh)
        self.count += len(fresh)

    def _with_node(self, measurement: Measurement) -> Measurement:
        """A measurement of a pod with its node, which the source does not have."""
        if not measurement.pod:
            return measurement
        pod = self._objects.pods.get(measurement.namespace, measurement.pod)
        return measurement if pod is None else measurement._replace(node=pod.spec.node_name)


def check_usage_file(path: Path, *, force: bool) -> None:
    """InputError if there is a file already."""
    keeping.require_new(path, "--usage", force=force)
