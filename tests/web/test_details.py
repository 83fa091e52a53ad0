"""What the page shows of one pod."""

from tests.web.followed_cluster import FollowedCluster

from kubestow.explain.history import AttemptHistory
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.web.details import NOT_KEPT, PodDetail, find_pod, pod_detail


async def _opened(*, is_listening: bool) -> PodDetail:
    """A waiting pod whose only attempt was made before the page was opened."""
    cluster = FollowedCluster(make_node("a", cpu="4"), make_pod("big", cpu="9"))
    history = AttemptHistory(cluster.clock)
    if is_listening:
        cluster.embedded.listeners.append(history.decided)
    async with cluster.embedded.running():
        await cluster.settle()
        await cluster.follower.start()
        found = find_pod(cluster.follower, history, "default", "big")
        assert found is not None
        return pod_detail(found)


def test_an_attempt_before_the_page_was_opened_is_explained_with_its_evidence() -> None:
    detail = run_in_virtual_time(_opened(is_listening=True))
    assert detail.explanation is not None
    assert detail.note == ""
    (reason,) = detail.explanation.reasons
    assert "needs 9" in str(reason.evidence)
    assert [miss.node for miss in detail.explanation.nearest] == ["a"]


def test_without_a_kept_attempt_that_is_said() -> None:
    detail = run_in_virtual_time(_opened(is_listening=False))
    assert detail.explanation is None
    assert detail.note == NOT_KEPT
