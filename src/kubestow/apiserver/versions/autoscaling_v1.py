"""HorizontalPodAutoscalers as `autoscaling/v1` shows them; they are stored as `autoscaling/v2`.

The older version has one target, the use of the CPU. Further metrics, the behavior and the
conditions are kept in annotations, as by a real server, so that translating back loses nothing.
"""

import json
from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, objects_in, removed_at, replaced_at, value_at

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
# Part of the stored object → name of its annotation.
_ANNOTATIONS: Final[dict[tuple[str, str], str]] = {
    ("spec", "metrics"): f"{_PREFIX}metrics",
    ("spec", "behavior"): f"{_PREFIX}behavior",
    ("status", "currentMetrics"): f"{_PREFIX}current-metrics",
    ("status", "conditions"): f"{_PREFIX}conditions",
}
_TARGET: Final = ("spec", "targetCPUUtilizationPercentage")
_CURRENT: Final = ("status", "currentCPUUtilizationPercentage")


def to_v1(document: JsonObject) -> JsonObject:
    """The autoscaler as `autoscaling/v1` shows it."""
    v1 = {**document, "apiVersion": "autoscaling/v1"}
    metrics = objects_in(value_at(v1, "spec", "metrics"))
    found = objects_in(value_at(v1, "status", "currentMetrics"))
    cpu = next((metric for metric in metrics if _cpu_use(metric, "target") is not None), None)
    current = next((metric for metric in found if _cpu_use(metric, "current") is not None), None)
    if cpu is not None:
        v1 = replaced_at(v1, _TARGET, _cpu_use(cpu, "target"))
        v1 = _without_element(v1, ("spec", "metrics"), metrics, cpu)
    if current is not None:
        v1 = replaced_at(v1, _CURRENT, _cpu_use(current, "current"))
        v1 = _without_element(v1, ("status", "currentMetrics"), found, current)
    for path, annotation in _ANNOTATIONS.items():
        if value := value_at(v1, *path):
            v1 = replaced_at(v1, ("metadata", "annotations", annotation), json.dumps(value))
        v1 = removed_at(v1, path)
    return v1


def from_v1(document: JsonObject) -> JsonObject:
    """The autoscaler as it is stored."""
    v2 = {**document, "apiVersion": "autoscaling/v2"}
    annotations = as_object(value_at(v2, "metadata", "annotations"))
    for path, annotation in _ANNOTATIONS.items():
        if annotation in annotations:
            v2 = replaced_at(v2, path, _decoded(annotations[annotation]))
    kept = {key: text for key, text in annotations.items() if key not in _ANNOTATIONS.values()}
    if len(kept) < len(annotations):
        v2 = replaced_at(v2, ("metadata", "annotations"), kept)
    target, current = value_at(v2, *_TARGET), value_at(v2, *_CURRENT)
    if target is not None:
        v2 = _with_metric(v2, ("spec", "metrics"), "target", {"type": "Utilization"}, target)
    if current is not None:
        v2 = _with_metric(v2, ("status", "currentMetrics"), "current", {}, current)
    return removed_at(removed_at(v2, _TARGET), _CURRENT)


def _cpu_use(metric: JsonObject, part: str) -> int | None:
    if metric.get("type") != "Resource" or value_at(metric, "resource", "name") != "cpu":
        return None
    return value_at(metric, "resource", part, "averageUtilization")


def _without_element(
    document: JsonObject, path: tuple[str, str], items: list[JsonObject], gone: JsonObject
) -> JsonObject:
    return replaced_at(document, path, [item for item in items if item is not gone])


def _with_metric(
    document: JsonObject, path: tuple[str, str], part: str, given: JsonObject, percent: int
) -> JsonObject:
    value = {**given, "averageUtilization": percent}
    metric: JsonObject = {"type": "Resource", "resource": {"name": "cpu", part: value}}
    return replaced_at(document, path, [metric, *objects_in(value_at(document, *path))])


def _decoded(text: Any) -> Any:  # an annotation, and any JSON value
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None
