"""A sweep on a Dask cluster gives the same bytes as one in processes of this machine."""

import socket
import warnings
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kubestow.errors import InputError
from kubestow.simulator.comparison import dask_cluster
from kubestow.simulator.comparison.comparison import compare
from kubestow.simulator.comparison.dask_cluster import DaskRunner
from kubestow.simulator.comparison.pool import Runner
from kubestow.simulator.comparison.sweep import Sweep
from kubestow.simulator.comparison.task import Material, SchedulerVariant

distributed: Any = pytest.importorskip("distributed")
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler and a worker, in threads of this process but with real connections."""
    with warnings.catch_warnings():
        # Of the libraries, when they are imported and when they close their sockets.
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster:
            yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_the_bytes_are_those_of_local_runs(
    address: str,
    material: Material,
    base: SchedulerVariant,
    packed: SchedulerVariant,
    in_process: type,
) -> None:
    variants = [base, packed, SchedulerVariant(name="no", plugins=("no_such_module:X",))]

    def result_of(runner: Runner) -> bytes:
        sweep = Sweep(runner, variants, SEEDS).run()
        return msgspec.json.encode(compare("test", variants, SEEDS, sweep))

    encoded = msgspec.json.encode(material)
    with DaskRunner(address, encoded) as runner:
        on_dask = result_of(runner)
    assert on_dask == result_of(in_process(material))
    found = msgspec.json.decode(on_dask)
    assert found["variants"][1]["moved"]["count"]["mean"] == 2
    assert [failure["variant"] for failure in found["failures"]] == ["no"]


def test_workers_need_the_same_version(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "worker_version", _other_version)
    with pytest.raises(InputError, match=r"has kubestow 0.0.1, this is .*install the same version"):
        DaskRunner(address, b"{}")


def _other_version() -> str:
    return "0.0.1"


def test_a_cluster_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 0.2)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(InputError, match=r"cannot connect to the Dask scheduler at dask://"):
            DaskRunner(f"dask://127.0.0.1:{port}", b"{}")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "dask://", "spark://x"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InputError, match="expected dask://HOST:PORT"):
        DaskRunner(address, b"{}")
