"""The garbage collector is set for what stays, and back again."""

import gc

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
