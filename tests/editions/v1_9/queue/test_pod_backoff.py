"""Waits between attempts in v1.9 (spec 02 §19.2)."""

from kubestow.editions.v1_9.queue.pod_backoff import PodBackoff


def fail(backoff: PodBackoff, now_s: float) -> float | None:
    backoff.collect(now_s)
    return backoff.begin_wait("ns/p", now_s)


def test_1_waits_double_up_to_a_minute_and_2_start_again_after_it() -> None:
    backoff, now_s = PodBackoff(), 1000.0
    waits: list[float | None] = []
    for _ in range(9):
        wait_s = fail(backoff, now_s)
        waits.append(wait_s)
        backoff.end_wait("ns/p")
        now_s += (wait_s or 0) + 0.5
    assert waits == [1, 2, 4, 8, 16, 32, 60, 1, 2]


def test_6_a_failure_during_a_wait_starts_no_second_wait() -> None:
    backoff = PodBackoff()
    assert fail(backoff, 1.0) == 1
    assert fail(backoff, 1.1) is None
    backoff.end_wait("ns/p")
    assert fail(backoff, 2.0) == 2


def test_an_entry_that_is_exactly_a_minute_old_is_kept() -> None:
    backoff = PodBackoff()
    fail(backoff, 0.0)
    backoff.end_wait("ns/p")
    assert fail(backoff, 60.0) == 2
