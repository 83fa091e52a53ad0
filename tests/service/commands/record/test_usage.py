"""What a recording keeps of use: what is new, with the node of each pod."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubestow.cache.objects import ClusterObjects
from kubestow.errors import ApiError, InputError
from kubestow.service.commands.record.usage import UsageFollower
from kubestow.service.measuring.reader import MeasurementBatch
from kubestow.testing import make_pod
from kubestow.usage.file_format import read_usage
from kubestow.usage.measurement import Amounts, Measurement


class GivenSource:
    """Has the batches that a test sets; an error is raised after them."""

    name = "given"

    def __init__(self) -> None:
        self.measurements: list[Measurement] = []
        self.error: Exception | None = None

    async def read(self) -> AsyncIterator[MeasurementBatch]:
        yield MeasurementBatch(self.measurements)
        if self.error is not None:
            raise self.error


def test_each_measurement_is_kept_once_with_the_node_of_its_pod(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, objects, path = GivenSource(), ClusterObjects(), tmp_path / "usage.jsonl"
    objects.pods.put(make_pod("web", namespace="shop", node="n1"))
    follower = UsageFollower(source, path, objects, force=False)
    node = Measurement(10**9, Amounts(1500, 1 << 30), node="n1", window_ns=10**9)
    pod = Measurement(10**9, Amounts(250, 1 << 20), namespace="shop", pod="web")
    source.measurements = [node, pod]
    asyncio.run(follower.read_once())
    source.error = ApiError("gone")
    asyncio.run(follower.read_once())
    asyncio.run(follower.read_once())
    source.measurements = [node._replace(time_ns=2 * 10**9), pod]
    source.error = None
    asyncio.run(follower.read_once())
    follower.close()
    assert list(read_usage(path)) == [
        node,
        pod._replace(node="n1"),
        node._replace(time_ns=2 * 10**9),
    ]
    assert follower.count == 3
    # One line for a failure that lasts.
    assert capsys.readouterr().err.count("cannot read usage from given") == 1


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    path.write_text("kept")
    with pytest.raises(InputError, match="--usage: cannot write"):
        UsageFollower(GivenSource(), path, ClusterObjects(), force=False)
    assert path.read_text() == "kept"
