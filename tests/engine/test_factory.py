"""What the factory takes from the plugins of a configuration."""

from kubestow.api.pod_info import PodInfo
from kubestow.engine.factory import sort_key_of
from kubestow.framework.plugin import Plugin, QueueEntry
from kubestow.plugins.priority_sort import PrioritySort
from kubestow.queue import QueuedPod
from kubestow.testing import make_handle, make_pod, make_profile


class LowestFirst(PrioritySort):
    def less(self, first: QueueEntry, second: QueueEntry) -> bool:
        return first.pod_info.priority < second.pod_info.priority


def first_of(plugin: Plugin) -> str:
    pods = [make_pod("low", priority=1), make_pod("high", priority=2)]
    key = sort_key_of({"default-scheduler": make_profile(plugin)})
    return min((QueuedPod(PodInfo(pod), timestamp_ns=0) for pod in pods), key=key).pod_info.name


def test_a_plugin_derived_from_priority_sort_orders_by_its_own_comparison() -> None:
    assert first_of(PrioritySort(None, make_handle())) == "high"
    assert first_of(LowestFirst(None, make_handle())) == "low"
