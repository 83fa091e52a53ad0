"""Which of two pods was decided on first."""

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.simulator.replay.known import Queued
from kubestow.testing import make_pod


def queued(position: int, pod: Pod, *, is_new: bool = True) -> Queued:
    return Queued.now(pod, position, is_new=is_new)


LOW, HIGH = make_pod("low"), make_pod("high", priority=5)


def test_the_first_one_is_decided_on_first_if_its_priority_is_not_lower() -> None:
    assert queued(1, LOW).is_before(queued(2, LOW))
    assert queued(1, HIGH).is_before(queued(2, LOW))
    assert not queued(1, LOW).is_before(queued(2, HIGH))
    assert not queued(2, LOW).is_before(queued(1, LOW))


def test_nothing_is_known_of_pods_that_wait_for_more_than_their_turn() -> None:
    failed = Condition(type="PodScheduled", status="False", reason="SchedulerError")
    gated = Condition(type="PodScheduled", status="False", reason="SchedulingGated")
    tried = make_pod("tried", conditions=[failed])
    claiming = make_pod("claiming", resource_claims=[PodResourceClaim(name="c")])
    for other in (
        queued(1, tried),
        queued(1, claiming),
        queued(1, LOW, is_new=False),
        queued(1, LOW).tried_again(),
    ):
        assert not other.is_before(queued(2, LOW))
        assert not queued(0, LOW).is_before(other)
    assert queued(1, make_pod("gated", conditions=[gated])).is_before(queued(2, LOW))
