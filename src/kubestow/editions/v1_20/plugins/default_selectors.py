"""The selector of the services and controllers whose selectors match a pod's labels.

Up to v1.20 a pod's ReplicationControllers, ReplicaSets and StatefulSets were found by their
selectors, today by the pod's owner reference (spec 06 §6.6.5).
"""

from collections.abc import Iterator
from typing import Final

from kubestow.api.labels import Selector, SelectorError, parse_label_selector, selector_from_map
from kubestow.api.meta import LabelSelector
from kubestow.api.owners import services_of
from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects

# Selectors of this many kinds of pods are kept; beyond, all are dropped.
SELECTORS_KEPT_MAX: Final = 4096


class SelectorsByLabel:
    """Kept until a service or controller changes."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        self._versions: tuple[int, ...] = ()
        self._kept: dict[tuple[str, frozenset[tuple[str, str]]], Selector] = {}

    def of(self, pod: Pod) -> Selector:
        """Empty (`is_empty`) if nothing selects the pod."""
        objects = self._objects
        versions = (
            objects.services.version,
            objects.replication_controllers.version,
            objects.replica_sets.version,
            objects.stateful_sets.version,
        )
        if versions != self._versions or len(self._kept) >= SELECTORS_KEPT_MAX:
            self._versions = versions
            self._kept.clear()
        key = pod.metadata.namespace, frozenset(pod.metadata.labels.items())
        selector = self._kept.get(key)
        if selector is None:
            selector = self._kept[key] = self._look_up(pod)
        return selector

    def _look_up(self, pod: Pod) -> Selector:
        objects, namespace = self._objects, pod.metadata.namespace
        required: dict[str, str] = {}
        for service in services_of(pod, objects.services.list_namespace(namespace)):
            required |= service.spec.selector or {}
        labels = pod.metadata.labels
        if not labels:
            return selector_from_map(required)  # Controllers do not select pods without labels.
        for controller in objects.replication_controllers.list_namespace(namespace):
            selector = selector_from_map(controller.spec.selector)
            if not selector.is_empty and selector.matches(labels):
                required |= controller.spec.selector
        merged = selector_from_map(required)
        for selector in self._set_selectors(namespace):
            if not selector.is_empty and selector.matches(labels):
                merged = merged.narrowed(selector.requirements)
        return merged

    def _set_selectors(self, namespace: str) -> Iterator[Selector]:
        objects = self._objects
        selectors: list[LabelSelector | None] = [
            *(found.spec.selector for found in objects.replica_sets.list_namespace(namespace)),
            *(found.spec.selector for found in objects.stateful_sets.list_namespace(namespace)),
        ]
        for selector in selectors:
            try:
                yield parse_label_selector(selector)
            except SelectorError:
                continue  # Its owner cannot select pods.
