"""What is derived from waiting pods is worked out once, for the pods asked about last."""

import pytest

from kubestow.api.pod import Pod
from kubestow.plugins._shared import per_pod
from kubestow.plugins._shared.per_pod import PerPod
from kubestow.testing import make_pod


class _Counted(PerPod[str]):
    def __init__(self) -> None:
        self.computed: list[str] = []
        super().__init__(self._name, lambda pod: len(pod.metadata.name))

    def _name(self, pod: Pod) -> str:
        self.computed.append(pod.metadata.name)
        return pod.metadata.name


def test_values_are_computed_once_per_object_and_the_oldest_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(per_pod, "KEPT_MAX", 2)
    values = _Counted()
    first, second, third = (make_pod(name) for name in "abc")
    assert [values(pod) for pod in (first, first, second, first, third)] == list("aabac")
    assert values.computed == ["a", "b", "c"]
    assert [values(pod) for pod in (third, second, first)] == list("cba")
    assert values.computed == ["a", "b", "c", "a"]
    # A new version of a pod is a new object.
    assert values(make_pod("a")) == "a"
    assert values.computed == ["a", "b", "c", "a", "a"]


def test_large_values_make_room_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_pod, "PARTS_KEPT_MAX", 5)
    values = _Counted()
    large, small, larger, too_large = (make_pod(name) for name in ("abc", "x", "abcd", "abcdef"))
    assert [values(pod) for pod in (large, small, large)] == ["abc", "x", "abc"]
    values(larger)
    assert values.computed == ["abc", "x", "abcd"]
    assert [values(pod) for pod in (small, larger)] == ["x", "abcd"]
    assert values.computed == ["abc", "x", "abcd"]
    assert [values(pod) for pod in (too_large, too_large)] == ["abcdef", "abcdef"]
    assert values.computed == ["abc", "x", "abcd", "abcdef", "abcdef"]
