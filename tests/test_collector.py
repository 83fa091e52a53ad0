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


def test_paused_is_for_a_while_and_leaves_a_collector_off_that_was() -> None:
    with collector.paused():
        assert not gc.isenabled()
        with collector.paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
