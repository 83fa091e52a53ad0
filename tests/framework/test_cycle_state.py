"""What plugins remember during one attempt (spec 04 §2.3)."""

import pytest

from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.testing import make_pod


class Counter:
    def __init__(self, count: int = 0) -> None:
        self.count = count

    def clone(self) -> "Counter":
        return Counter(self.count)


def test_what_is_written_can_be_read_until_it_is_deleted() -> None:
    state = CycleState()
    state.write("key", 7)
    assert state.read("key") == state.get("key") == 7
    state.delete("key")
    state.delete("key")
    assert state.get("key") is None
    with pytest.raises(PluginError, match=r"^not found$"):
        state.read("key")


def test_a_clone_has_values_of_its_own_where_they_can_be_copied() -> None:
    state = CycleState()
    shared: list[int] = []
    state.write("counter", Counter(1))
    state.write("list", shared)
    copy = state.clone()
    copy.read("counter").count = 5
    copy.write("new", True)
    assert state.read("counter").count == 1
    assert state.get("new") is None
    assert copy.read("list") is shared


def test_a_clone_has_the_same_sets_and_flags_and_shares_pods_to_activate() -> None:
    state = CycleState()
    state.skip_post_filter = True
    state.skip_filter, state.skip_score = frozenset("A"), frozenset("B")
    state.skip_pre_bind, state.parallel_pre_bind = frozenset("C"), frozenset("D")
    copy = state.clone()
    copy.pods_to_activate["ns/p"] = make_pod()
    assert (copy.skip_filter, copy.skip_score) == ({"A"}, {"B"})
    assert (copy.skip_pre_bind, copy.parallel_pre_bind) == ({"C"}, {"D"})
    assert list(state.pods_to_activate) == ["ns/p"]
    assert copy.skip_post_filter
