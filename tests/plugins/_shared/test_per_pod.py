"""What is derived from waiting pods is worked out once, for the pods asked about last."""

import pytest

from kubestow.api.pod import Pod
from kubestow.plugins._shared import per_pod
from kubestow.plugins._shared.per_pod import PerPod
from kubestow.testing import make_pod


def test_values_are_computed_once_per_object_and_the_oldest_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(per_pod, "KEPT_MAX", 2)
    computed: list[str] = []

    def compute(pod: Pod) -> str:
        computed.append(pod.metadata.name)
        return pod.metadata.name

    values = PerPod(compute)
    first, second, third = (make_pod(name) for name in "abc")
    assert [values(pod) for pod in (first, first, second, first, third)] == list("aabac")
    assert computed == ["a", "b", "c"]
    assert [values(pod) for pod in (third, second, first)] == list("cba")
    assert computed == ["a", "b", "c", "a"]
    # A new version of a pod is a new object.
    assert values(make_pod("a")) == "a"
    assert computed == ["a", "b", "c", "a", "a"]
