"""Few lines for what keeps many informers from working."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubestow.cluster.failure_log import FailureLog
from kubestow.errors import ApiError, GoneError, NotFoundError, UnreachableError
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

UNAUTHORIZED = ApiError("Unauthorized", code=401, reason="Unauthorized")
REFUSED = UnreachableError("cannot connect to h:1: Connection refused", cause="refused")
KINDS = [f"Kind{index:02}" for index in range(18)]

Body = Callable[[FailureLog], Awaitable[None]]
Logged = Callable[[Body], list[str]]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    caplog.set_level("INFO")

    def run(body: Body) -> list[str]:
        async def main() -> None:
            await body(FailureLog(VirtualClock(asyncio.get_running_loop()), host="h:1"))
            await asyncio.sleep(1)

        run_in_virtual_time(main())
        return caplog.messages

    return run


def forbidden(kind: str) -> ApiError:
    return ApiError(f'User "u" cannot list resource "{kind}"', code=403, reason="Forbidden")


def test_one_kind_has_a_line_of_its_own(logged: Logged) -> None:
    async def body(failures: FailureLog) -> None:
        failures.failed("Pod", "list", ApiError("etcd is slow", code=500), delay_s=1.23)
        failures.failed("Node", "watch", GoneError("too old"), delay_s=0.9, version="41207")

    assert logged(body) == [
        "watch of Node from version 41207 ended: too old; trying again within 0.9 s",
        "list of Pod failed: etcd is slow; trying again within 1.2 s",
    ]


def test_a_server_that_refuses_all_kinds_has_one_line(logged: Logged) -> None:
    async def body(failures: FailureLog) -> None:
        for index, kind in enumerate(KINDS):
            failures.failed(kind, "list", UNAUTHORIZED, delay_s=0.8 + index / 100)
            await asyncio.sleep(0.01)

    assert logged(body) == ["cannot list 18 kinds at h:1: Unauthorized; trying again within 1.0 s"]


def test_each_cause_has_a_line_that_names_few_kinds(logged: Logged) -> None:
    async def body(failures: FailureLog) -> None:
        failures.failed("Pod", "list", forbidden("pods"), delay_s=1.0)
        failures.failed("Node", "list", forbidden("nodes"), delay_s=2.0)
        failures.failed("Service", "list", REFUSED, delay_s=1.0)
        failures.failed("PersistentVolume", "watch", REFUSED, delay_s=1.0)
        failures.failed("CSINode", "watch", REFUSED, delay_s=1.5)

    assert sorted(logged(body)) == [
        'cannot list Node, Pod at h:1: User "u" cannot list resource "nodes"; '
        "trying again within 2.0 s",
        "list of Service failed: cannot connect to h:1: Connection refused; "
        "trying again within 1.0 s",
        "watch of CSINode, PersistentVolume ended: cannot connect to h:1: Connection refused; "
        "trying again within 1.5 s",
    ]


def test_while_it_lasts_it_is_mentioned_once_a_minute(logged: Logged) -> None:
    async def body(failures: FailureLog) -> None:
        for second in range(130):
            for kind in KINDS:
                failures.failed(kind, "list", UNAUTHORIZED, delay_s=second + 1)
            await asyncio.sleep(1)

    assert [line.rpartition(" within ")[2] for line in logged(body)] == [
        "1.0 s",
        "61.0 s",
        "121.0 s",
    ]


def test_another_cause_is_logged_at_once_and_recovery_too(logged: Logged) -> None:
    async def body(failures: FailureLog) -> None:
        failures.failed("Pod", "watch", GoneError("too old"), delay_s=1.0, version="1")
        await asyncio.sleep(1)
        failures.failed("Pod", "list", REFUSED, delay_s=2.0)
        failures.failed("Node", "watch", REFUSED, delay_s=2.0, version="7")
        await asyncio.sleep(2)
        failures.works("Pod")
        failures.works("Node")  # It was not listed again, only watched.
        failures.works("Service")  # It never failed.

    assert [line.partition(":")[0] for line in logged(body)] == [
        "watch of Pod from version 1 ended",
        "watch of Node from version 7 ended",
        "list of Pod failed",
        "listing works now",
    ]


def test_kinds_that_are_not_served_are_mentioned_once(logged: Logged) -> None:
    async def body(failures: FailureLog) -> None:
        for _ in range(10):
            for kind in ("DeviceClass", "ResourceClaim", "ResourceSlice"):
                failures.failed(kind, "discover", NotFoundError("404"), delay_s=300.0)
            await asyncio.sleep(300)
        failures.works("DeviceClass")

    assert logged(body) == [
        "the API server at h:1 does not serve DeviceClass, ResourceClaim, ResourceSlice: going on "
        "as if there were none, looking again every 5 min",
        "listing works now: DeviceClass",
    ]
