"""The garbage collector is set for what stays, and back again."""

import gc

import pytest

from kubestow import collector


def test_settled_is_for_a_while() -> None:
    before = gc.get_threshold()
    with collector.settled():
        assert gc.get_threshold() == collector.GC_THRESHOLDS
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_neither_what_was_there_nor_what_stays_is_gone_over() -> None:
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            collected.append(gc.get_count()[0])

    with collector.paused():
        made = [[] for _ in range(10_000)]
        gc.callbacks.append(note)
        try:
            with collector.settled((2_000_000, 20, 50)):
                gc.enable()
                assert gc.get_count()[0] < 1_000  # the lists made before do not count
                made += [[] for _ in range(10_000)]
            more = [[] for _ in range(50)]  # less than the threshold outside
        finally:
            gc.callbacks.remove(note)
    # Both were asked for: at the beginning and at the end, when nothing was young.
    assert len(collected) == 2, (collected, len(made), len(more))


def test_paused_is_for_a_while_and_leaves_a_collector_off_that_was() -> None:
    with collector.paused():
        assert not gc.isenabled()
        with collector.paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("counts", "collected"),
    [
        pytest.param((50_000, 99, 99), [], id="too-young"),
        pytest.param((50_001, 20, 50), [0], id="young"),
        pytest.param((50_001, 21, 50), [1], id="middle"),
        pytest.param((50_001, 0, 51), [2], id="old"),
    ],
)
def test_a_generation_is_collected_when_that_is_due(
    counts: tuple[int, int, int], collected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(gc, "get_count", lambda: counts)
    monkeypatch.setattr(gc, "collect", asked.append)
    collector.collect_if_due()
    assert asked == collected


def test_after_settle_nothing_is_collected_before_it_is_called() -> None:
    before, started = gc.get_threshold(), []
    gc.callbacks.append(lambda phase, info: started.append(phase))
    try:
        collector.settle()
        started.clear()
        made = [[] for _ in range(collector.GC_THRESHOLDS[0] + 10)]
        assert not started
        collector.collect_if_due()
        assert started == ["start", "stop"]
        assert made
    finally:
        gc.callbacks.pop()
        gc.unfreeze()
        gc.set_threshold(*before)
