"""Leader election (spec 09 §6), by example and with many faults at once.

All of it runs on a loop whose time jumps from timer to timer.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.coordination import Lease, LeaseSpec
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.election import (
    ElectionSettings,
    LeaderElector,
    Observation,
    claim,
    observe,
    process_identity,
)
from kubestow.cluster.resources import LEASES
from kubestow.errors import ApiError, ConfigError, UnreachableError
from kubestow.logs import FIELDS
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

T0 = datetime(2024, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def record(holder: str, *, renewed: float = 0, transitions: int = 3, duration: int = 15):
    return LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=duration,
        acquire_time=at(-100),
        renew_time=at(renewed),
        lease_transitions=transitions,
    )


# --- Decisions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "seen_s", "expected"),
    [
        pytest.param(record("b"), 10.0, None, id="held-by-another"),
        pytest.param(record("b"), 5.1, None, id="still-held"),
        pytest.param(record("b"), 5.0, (at(20), 4), id="expired-to-the-second"),
        pytest.param(record("a"), 10.0, (at(-100), 3), id="mine"),
        pytest.param(record("a"), 0.0, (at(-100), 3), id="mine-though-expired"),
        pytest.param(record(""), 20.0, (at(20), 4), id="released"),
        pytest.param(LeaseSpec(), 20.0, (at(20), 1), id="empty"),
        pytest.param(record("b", duration=0), 19.9, (at(20), 4), id="of-no-duration"),
    ],
)
def test_who_may_claim(spec: LeaseSpec, seen_s: float, expected: tuple[datetime, int] | None):
    found = claim(Observation(spec, seen_s), "a", 15, now_s=20.0, now=at(20))
    if expected is None:
        assert found is None
    else:
        assert found == LeaseSpec(
            holder_identity="a",
            lease_duration_seconds=15,
            acquire_time=expected[0],
            renew_time=at(20),
            lease_transitions=expected[1],
        )


def test_only_a_visible_change_counts_as_one():
    first = observe(None, record("b", renewed=1.0), 5.0)
    assert first.seen_s == 5.0
    assert observe(first, record("b", renewed=1.9), 6.0) is first
    assert observe(first, record("b", renewed=2.0), 6.0).seen_s == 6.0
    assert observe(first, record("c", renewed=1.0), 6.0).seen_s == 6.0


@pytest.mark.parametrize(
    ("durations", "problem"),
    [
        pytest.param((10, 10, 2), "leaseDuration must be greater than renewDeadline", id="lease"),
        pytest.param(
            (15, 2.4, 2), "renewDeadline must be greater than retryPeriod*JitterFactor", id="renew"
        ),
        pytest.param((0, -1, -2), "leaseDuration must be greater than zero", id="lease-zero"),
        pytest.param((1, 0, -2), "renewDeadline must be greater than zero", id="renew-zero"),
        pytest.param((2, 1, 0), "retryPeriod must be greater than zero", id="retry-zero"),
    ],
)
def test_durations_that_cannot_work(durations: tuple[float, float, float], problem: str):
    lease, renew, retry = durations
    bad = ElectionSettings(lease_duration_s=lease, renew_deadline_s=renew, retry_period_s=retry)
    with pytest.raises(ConfigError) as caught:
        bad.check()
    assert str(caught.value) == f"couldn't create leader elector: {problem}"


def test_durations_are_cut_to_whole_seconds():  # example 7
    assert ElectionSettings(lease_duration_s=15.9).lease_seconds == 15


def test_an_identity_names_the_host_and_is_unique():
    rng = np.random.default_rng(0)
    first, second = process_identity("h", rng), process_identity("h", rng)
    assert first.startswith("h_")
    assert first != second


# --- A world to be elected in -----------------------------------------------------------------


class Network(MemoryClient):
    """The connection of one candidate to the server: slow, lossy, or cut."""

    def __init__(self, world: "World", seed: int = 0) -> None:
        super().__init__(world.cluster)
        self.latency_s_max = 0.0
        self.answer_s = 0.0  # how much longer an answer takes than a request
        self.loss = 0.0
        self.is_cut = False
        self.may_watch = True
        self.requests: list[tuple[float, str]] = []
        self._world = world
        self._rng = np.random.default_rng(seed)

    def cut(self) -> None:
        self.is_cut = True

    async def get(self, *args: Any) -> Any:
        return await self._travel("GET", super().get, *args)

    async def create(self, *args: Any) -> Any:
        return await self._travel("POST", super().create, *args)

    async def update(self, *args: Any, **options: Any) -> Any:
        return await self._travel("PUT", super().update, *args, **options)

    async def watch(self, *args: Any, **options: Any) -> Any:
        if not self.may_watch:
            self.requests.append((self._world.now_s, "WATCH"))
            raise ApiError("cannot watch", code=403)
        watch = await self._travel("WATCH", super().watch, *args, **options)
        return LateWatch(watch, self)

    async def delay_events(self) -> None:
        """Events come late, and while the connection is cut not at all."""
        await asyncio.sleep(self._rng.random() * self.latency_s_max)
        while self.is_cut:  # noqa: ASYNC110 - an attribute that tests set
            await asyncio.sleep(1.0)

    async def _travel(self, method: str, request: Any, *args: Any, **options: Any) -> Any:
        self.requests.append((self._world.now_s, method))
        try:
            async with asyncio.timeout(5.0):  # as the client of an elector has it
                await self._hop()
                answer = await request(*args, **options)
                await asyncio.sleep(self.answer_s)
                await self._hop()
                return answer
        except TimeoutError as error:
            raise UnreachableError("no answer") from error

    async def _hop(self) -> None:
        if self.latency_s_max:
            await asyncio.sleep(self._rng.random() * self.latency_s_max)
        if self.is_cut or self._rng.random() < self.loss:
            raise UnreachableError("lost")


class LateWatch:
    def __init__(self, watch: Any, network: Network) -> None:
        self._watch = watch
        self._network = network
        self.close = watch.close

    async def next_batch(self) -> Any:
        batch = await self._watch.next_batch()
        await self._network.delay_events()
        return batch


class World:
    """A lease in a cluster, candidates for it, and a record of the leaders."""

    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.cluster = MemoryCluster(self.clock, admission=False)
        self.periods: list[tuple[str, float, float]] = []
        self.leaders: list[str] = []
        self._ended: list[asyncio.Task[Any]] = []

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def candidate(self, name: str, *, seed: int = 0, **durations: float):
        network = Network(self, seed)
        elector = LeaderElector(
            network,
            self.clock,
            identity=name,
            rng=np.random.default_rng(seed),
            settings=ElectionSettings(**durations),
        )
        return elector, network

    async def lead(self, name: str) -> None:
        started_s = self.now_s
        self.leaders.append(name)
        assert self.leaders == [name], f"{self.leaders} lead at {started_s}"
        try:
            await asyncio.Event().wait()
        finally:
            self.leaders.remove(name)
            self.periods.append((name, started_s, self.now_s))

    def start(self, elector: LeaderElector) -> "asyncio.Task[str]":
        return asyncio.create_task(elector.run(lambda: self.lead(elector.identity)))

    def lease(self) -> Lease:
        typed = self.cluster.get(LEASES, "kube-system", "kube-scheduler").typed
        assert isinstance(typed, Lease)
        return typed


def in_world(body: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await body(World())

    run_in_virtual_time(main())


async def stop(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- Examples of spec 09 §6 -------------------------------------------------------------------


def test_example_1_the_first_leads_at_once():
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(0.1)
        assert elector.is_leading
        assert [method for _, method in network.requests] == ["GET", "POST", "PUT"]
        spec = world.lease().spec
        assert (spec.holder_identity, spec.lease_transitions) == ("a", 0)
        assert spec.lease_duration_seconds == 15
        await asyncio.sleep(5)
        # It renews without reading.
        assert network.requests[3:] == [(2.0, "PUT"), (4.0, "PUT")]
        assert world.lease().spec.acquire_time == spec.acquire_time
        assert elector.statistics().slow_path_count == 0
        await stop(task)

    in_world(body)


def test_example_3_a_leader_that_dies_is_replaced():
    async def body(world: World) -> None:
        first, first_network = world.candidate("a")
        second, second_network = world.candidate("b", seed=1)
        dying = world.start(first)
        await asyncio.sleep(4.5)  # renewed at 2 and 4
        first_network.is_cut = True
        dying.cancel()
        follower = world.start(second)
        await asyncio.sleep(30)
        assert second.is_leading
        # It saw the lease at 4.5 and waits for 15 s, not until one of its readings after that.
        seen_s = second_network.requests[0][0]
        assert seen_s == 4.5
        took_over_s = next(time_s for time_s, method in second_network.requests if method == "PUT")
        assert took_over_s == pytest.approx(seen_s + 15)
        assert world.lease().spec.lease_transitions == 1
        await stop(follower, dying)

    in_world(body)


def test_example_4_a_leader_that_is_cut_off_stops_before_others_can_lead():
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(11)
        network.is_cut = True
        assert await task == "lost"
        tries = sorted({time_s for time_s, _ in network.requests if time_s > 10})
        assert tries == [12, 14, 16, 18, 20, 22]  # the last is the failed release
        assert world.periods == [("a", 0.0, 22.0)]

    in_world(body)


def test_example_5_a_leader_that_stops_releases_the_lease_at_once():
    async def body(world: World) -> None:
        first, _ = world.candidate("a")
        second, network = world.candidate("b", seed=1)
        network.may_watch = False
        leader = world.start(first)
        follower = world.start(second)
        await asyncio.sleep(30)
        assert world.leaders == ["a"]
        await stop(leader)
        spec = world.lease().spec
        assert (spec.holder_identity, spec.lease_duration_seconds) == ("", 1)
        await asyncio.sleep(4.4)
        assert world.leaders == ["b"]
        assert world.lease().spec.lease_transitions == 1
        await stop(follower)

    in_world(body)


@pytest.mark.parametrize("may_watch", [True, False])
def test_a_lease_that_is_watched_is_counted_from_its_renewal(may_watch: bool):
    async def body(world: World) -> None:
        first, first_network = world.candidate("a")
        second, second_network = world.candidate("b", seed=1)
        second_network.may_watch = may_watch
        leader, follower = world.start(first), world.start(second)
        await asyncio.sleep(31)  # renewed at 30
        first_network.is_cut = True
        await asyncio.sleep(30)
        _, started_s, ended_s = world.periods[0]
        assert (started_s, ended_s) == (0.0, 42.0)  # the first try that failed was at 32
        assert world.leaders == ["b"]
        took_over_s = next(time_s for time_s, method in second_network.requests if method == "PUT")
        if may_watch:
            assert took_over_s == pytest.approx(45.0)
        else:
            # It has seen the renewal at its next reading.
            assert 45.1 < took_over_s < 45.0 + 4.4
        await stop(leader, follower)

    in_world(body)


def test_a_released_lease_that_is_watched_is_taken_at_once():
    async def body(world: World) -> None:
        (first, _), (second, _) = world.candidate("a"), world.candidate("b", seed=1)
        leader, follower = world.start(first), world.start(second)
        await asyncio.sleep(30)
        await stop(leader)
        await asyncio.sleep(0.1)
        assert world.leaders == ["b"]
        await stop(follower)

    in_world(body)


def test_a_candidate_that_may_not_watch_asks_rarely():
    async def body(world: World) -> None:
        (first, _), (second, network) = world.candidate("a"), world.candidate("b", seed=1)
        network.may_watch = False
        leader, follower = world.start(first), world.start(second)
        await asyncio.sleep(300)
        methods = [method for _, method in network.requests]
        assert methods.count("WATCH") == 5
        assert methods.count("GET") > 300 / 4.4
        await stop(leader, follower)

    in_world(body)


def test_example_6_of_two_claims_one_wins():
    async def body(world: World) -> None:
        electors = [world.candidate(name, seed=seed) for seed, name in enumerate("ab")]
        for _, network in electors:
            network.latency_s_max = 0.5
        tasks = [world.start(elector) for elector, _ in electors]
        await asyncio.sleep(1.5)
        assert len(world.leaders) == 1
        await stop(*tasks)

    in_world(body)


# --- More than examples -----------------------------------------------------------------------


def test_a_candidate_that_is_stopped_releases_nothing():
    async def body(world: World) -> None:
        first, _ = world.candidate("a")
        second, network = world.candidate("b", seed=1)
        leader = world.start(first)
        await asyncio.sleep(1)
        follower = world.start(second)
        await asyncio.sleep(1)
        await stop(follower)
        assert {method for _, method in network.requests} == {"GET"}
        assert world.lease().spec.holder_identity == "a"
        await stop(leader)

    in_world(body)


def test_work_that_ends_or_fails_ends_the_term():
    async def body(world: World) -> None:
        async def done() -> None:
            await asyncio.sleep(3)

        async def fail() -> None:
            await asyncio.sleep(3)
            raise RuntimeError("out of ideas")

        elector, _ = world.candidate("a")
        changes: list[bool] = []
        elector = LeaderElector(
            MemoryClient(world.cluster),
            world.clock,
            identity="a",
            rng=np.random.default_rng(0),
            on_change=changes.append,
        )
        assert await elector.run(done) == "finished"
        assert changes == [True, False]
        assert world.lease().spec.holder_identity == ""
        with pytest.raises(RuntimeError, match="out of ideas"):
            await elector.run(fail)
        assert world.lease().spec.holder_identity == ""

    in_world(body)


def test_a_lease_taken_away_is_noticed():
    async def body(world: World) -> None:
        elector, _ = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(1)
        lease = world.lease()
        thief = record("thief", renewed=1e6)
        client = MemoryClient(world.cluster)
        await client.update(lease, Lease(metadata=lease.metadata, spec=thief))
        assert await task == "lost"
        # The new holder keeps the lease: only the holder releases it.
        assert world.lease().spec.holder_identity == "thief"
        assert elector.statistics().holder == "thief"

    in_world(body)


def test_a_renewal_whose_answer_was_lost_is_repaired():
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(1)
        update = MemoryClient.update

        async def lose_answer(*args: Any, **options: Any) -> Any:
            network.update = type(network).update.__get__(network)
            await update(network, *args, **options)
            raise UnreachableError("lost")

        network.update = lose_answer
        await asyncio.sleep(4)
        # Its version was outdated, so it had to read the lease.
        assert elector.is_leading
        assert elector.statistics().slow_path_count == 1
        await stop(task)

    in_world(body)


def test_a_last_answer_that_took_long_does_not_lengthen_the_term():
    async def body(world: World) -> None:
        # Claimed at 0, answered at 4.5, and every request fails from then on. The renew deadline
        # would be at 18.5.
        network = Network(world)
        network.answer_s = 4.5
        elector = LeaderElector(
            network,
            world.clock,
            identity="a",
            rng=np.random.default_rng(0),
            settings=ElectionSettings(renew_deadline_s=14.0),
            on_change=lambda _: network.cut(),
        )
        await follow_as_early_as_can_be(world, elector)

    in_world(body)


def test_a_renewal_that_does_not_show_does_not_lengthen_the_term():
    async def body(world: World) -> None:
        # Renewed at 0.8 for the last time, which looks like the claim at 0 to others.
        elector, network = world.candidate("a", retry_period_s=0.4, renew_deadline_s=14.9)
        asyncio.get_running_loop().call_later(0.9, network.cut)
        await follow_as_early_as_can_be(world, elector)

    in_world(body)


async def follow_as_early_as_can_be(world: World, elector: LeaderElector) -> None:
    """The leader must have stopped at the first time at which others may lead."""
    leader = world.start(elector)
    await asyncio.sleep(0)
    follower, _ = world.candidate("b", seed=1, retry_period_s=0.01)
    following = world.start(follower)
    assert await leader == "lost"
    await asyncio.sleep(1)
    assert world.leaders == ["b"]
    ((_, _, ended_s),) = world.periods
    assert ended_s == 15.0
    await stop(following)


def test_release_succeeds_despite_its_own_late_renewal():
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(1)
        get = MemoryClient.get

        async def overtaken(*args: Any) -> Any:
            network.get = type(network).get.__get__(network)
            lease = await get(network, *args)
            renewed = record("a", renewed=1e6)
            await MemoryClient.update(network, lease, Lease(metadata=lease.metadata, spec=renewed))
            return lease

        network.get = overtaken
        await stop(task)
        assert world.lease().spec.holder_identity == ""

    in_world(body)


def test_releasing_does_not_wait_long_for_an_unreachable_server():
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(1)

        async def silence(*_: Any) -> Any:
            await asyncio.Event().wait()

        network.get = silence
        await stop(task)
        assert world.now_s == 11.0
        assert world.lease().spec.holder_identity == "a"

    in_world(body)


LINES = {
    "get": "Error retrieving lease lock",
    "create": "Error initially creating lease lock",
    "update": "Failed to update lease",
}


@pytest.mark.parametrize("request_name", LINES)
def test_a_refused_lease_gives_no_leadership(request_name: str, caplog: pytest.LogCaptureFixture):
    async def refuse(*_: Any) -> Any:
        raise ApiError("no", code=403, reason="Forbidden")

    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        if request_name == "update":
            other, _ = world.candidate("b")
            await stop(world.start(other))
            await other.try_once()
            await asyncio.sleep(20)
            assert not await elector.try_once()  # seen for the first time
            await asyncio.sleep(20)
        setattr(network, request_name, refuse)
        assert not await elector.try_once()

    in_world(body)
    [line] = (one for one in caplog.records if one.levelname == "ERROR")
    assert line.message == LINES[request_name]
    assert vars(line)[FIELDS] == {"err": "no", "lock": "kube-system/kube-scheduler"}


def obstacle(caplog: pytest.LogCaptureFixture) -> object:
    [line] = (one for one in caplog.records if one.message == "Failed to renew lease")
    return vars(line)[FIELDS]


@pytest.mark.parametrize(
    ("is_cut", "reason"),
    [pytest.param(True, "lost", id="unreachable"), pytest.param(False, "held by b", id="taken")],
)
def test_the_line_about_a_lost_lease_has_the_reason(
    is_cut: bool, reason: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)

    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        task = world.start(elector)
        await asyncio.sleep(1)
        if is_cut:
            network.cut()
        else:
            lease = world.lease()
            taken = Lease(metadata=lease.metadata, spec=record("b", renewed=1e6))
            await MemoryClient.update(network, lease, taken)
        assert await task == "lost"

    in_world(body)
    assert obstacle(caplog) == {"lock": "kube-system/kube-scheduler", "err": reason}


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    latency_s_max=st.sampled_from([0.0, 0.1, 1.0, 2.4, 4.0]),
    loss=st.sampled_from([0.0, 0.1, 0.4]),
    retry_period_s=st.sampled_from([0.4, 2.0]),
    renew_deadline_s=st.sampled_from([10.0, 14.5]),
    cuts=st.lists(st.tuples(st.integers(0, 2), st.floats(0, 150), st.floats(1, 60)), max_size=5),
)
def test_two_never_lead_at_once(
    seed: int,
    latency_s_max: float,
    loss: float,
    retry_period_s: float,
    renew_deadline_s: float,
    cuts: list[tuple[int, float, float]],
):
    """Three candidates that start again whenever they lose, on networks that fail in every way.

    The world itself asserts that no candidate starts to lead while another does.
    """

    async def body(world: World) -> None:
        durations = {"retry_period_s": retry_period_s, "renew_deadline_s": renew_deadline_s}
        candidates = [
            world.candidate(name, seed=seed + index, **durations)
            for index, name in enumerate("abc")
        ]
        for _, network in candidates:
            network.latency_s_max, network.loss = latency_s_max, loss

        async def serve(elector: LeaderElector) -> None:
            while True:
                await elector.run(lambda: world.lead(elector.identity))

        async def cut(network: Network, start_s: float, duration_s: float) -> None:
            await asyncio.sleep(start_s)
            network.is_cut = True
            await asyncio.sleep(duration_s)
            network.is_cut = False

        tasks = [asyncio.create_task(serve(elector)) for elector, _ in candidates]
        tasks += [
            asyncio.create_task(cut(candidates[which][1], start_s, duration_s))
            for which, start_s, duration_s in cuts
        ]
        await asyncio.sleep(240)
        for task in tasks:
            if task.done():
                task.result()  # an assertion of the world
        for _, network in candidates:
            network.latency_s_max = network.loss = 0.0
            network.is_cut = False
        # With the faults gone, one of them leads before long.
        await asyncio.sleep(15 + 4.4 + 10)
        assert len(world.leaders) == 1
        await stop(*tasks)

    in_world(body)


def test_a_leader_that_cannot_renew_waits_before_it_binds() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        clock = VirtualClock(loop)
        client = MemoryClient(MemoryCluster(clock))
        elector = LeaderElector(client, clock, identity="a", rng=np.random.default_rng(0))
        waiting = asyncio.create_task(elector.wait_valid())
        await asyncio.sleep(1)
        assert not waiting.done()  # It does not lead yet.
        leading = asyncio.create_task(elector.run(lambda: asyncio.sleep(100)))
        await waiting
        assert elector.is_lease_valid
        # As after a pause of the whole process: time has passed, nothing else has happened.
        loop.advance(20.0)  # type: ignore[attr-defined]
        assert elector.is_leading
        assert not elector.is_lease_valid
        waiting = asyncio.create_task(elector.wait_valid())
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        leading.cancel()
        await asyncio.gather(waiting, leading, return_exceptions=True)

    run_in_virtual_time(go())


def test_bindings_stop_before_the_lease_is_released() -> None:
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        leading = world.start(elector)
        await asyncio.sleep(1)
        assert elector.is_lease_valid
        network.answer_s = 1.0  # The server has the release for a second before the answer is here.
        leading.cancel()
        await asyncio.sleep(1.5)
        assert world.lease().spec.holder_identity == ""
        assert elector.is_leading
        assert not elector.is_lease_valid
        await stop(leading)

    in_world(body)


def test_a_leader_can_give_up_without_its_work() -> None:
    async def body(world: World) -> None:
        elector, network = world.candidate("a")
        may_end = asyncio.Event()

        async def stuck() -> None:
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    continue  # As work on a loop that stands still.

        await elector.give_up()  # Nothing to give up yet.
        leading = asyncio.create_task(elector.run(stuck))
        await asyncio.sleep(5)
        await elector.give_up()
        assert world.lease().spec.holder_identity == ""
        count = len(network.requests)
        await asyncio.sleep(60)
        assert len(network.requests) == count
        assert not leading.done()
        may_end.set()
        assert await leading == "lost"

    in_world(body)
