"""Defaults, generated selectors and rules for the objects that make pods.

Their controllers count pods by label, so an object whose selector does not match its own template
would make pods without bound: it is refused, in the words of an API server. Works on documents,
because the scheduler needs no types for most of these kinds.

Not here: making the pods (`simulator.controllers`), rules of the pods themselves (`validation`).
"""

import json
from collections.abc import Iterator
from typing import Final

from kubestow.api.decode import convert
from kubestow.api.labels import SelectorError, parse_label_selector
from kubestow.api.meta import JsonObject, LabelSelector
from kubestow.cluster.documents import (
    Path,
    as_object,
    filled_at,
    is_object,
    objects_in,
    replaced_at,
    value_at,
)
from kubestow.errors import DecodeError

Errors = Iterator[str]

_TEMPLATE: Final[Path] = ("spec", "template")
_SELECTING: Final = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"))
WITH_TEMPLATE: Final = _SELECTING | {"ReplicationController", "Job"}

# The labels by which a job selects its pods; the two without a prefix are those of older versions.
JOB_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
CONTROLLER_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")


# --- Defaults ---------------------------------------------------------------------------------


def default_deployment(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("spec", "replicas"), 1)
    document = filled_at(document, ("spec", "revisionHistoryLimit"), 10)
    document = filled_at(document, ("spec", "progressDeadlineSeconds"), 600)
    if not value_at(document, "spec", "strategy", "type"):
        document = replaced_at(document, ("spec", "strategy", "type"), "RollingUpdate")
    if value_at(document, "spec", "strategy", "type") == "RollingUpdate":
        rolling = ("spec", "strategy", "rollingUpdate")
        document = filled_at(document, (*rolling, "maxSurge"), "25%")
        document = filled_at(document, (*rolling, "maxUnavailable"), "25%")
    return document


def default_stateful_set(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("spec", "replicas"), 1)
    document = filled_at(document, ("spec", "revisionHistoryLimit"), 10)
    document = filled_at(document, ("spec", "podManagementPolicy"), "OrderedReady")
    if not value_at(document, "spec", "updateStrategy", "type"):
        document = replaced_at(document, ("spec", "updateStrategy", "type"), "RollingUpdate")
    if value_at(document, "spec", "updateStrategy", "type") == "RollingUpdate":
        partition = ("spec", "updateStrategy", "rollingUpdate", "partition")
        document = filled_at(document, partition, 0)
    return document


def default_daemon_set(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("spec", "revisionHistoryLimit"), 10)
    if not value_at(document, "spec", "updateStrategy", "type"):
        document = replaced_at(document, ("spec", "updateStrategy", "type"), "RollingUpdate")
    if value_at(document, "spec", "updateStrategy", "type") == "RollingUpdate":
        rolling = ("spec", "updateStrategy", "rollingUpdate")
        document = filled_at(document, (*rolling, "maxSurge"), 0)
        document = filled_at(document, (*rolling, "maxUnavailable"), 1)
    return document


def default_job(document: JsonObject) -> JsonObject:
    spec = as_object(document.get("spec"))
    # A job with only a parallelism is a work queue: it ends when one pod succeeds.
    if spec.get("parallelism") is None and spec.get("completions") is None:
        document = replaced_at(document, ("spec", "completions"), 1)
    document = filled_at(document, ("spec", "parallelism"), 1)
    document = filled_at(document, ("spec", "backoffLimit"), 6)
    document = filled_at(document, ("spec", "completionMode"), "NonIndexed")
    return filled_at(document, ("spec", "suspend"), False)


def generate_job_selector(document: JsonObject) -> JsonObject:
    """A job selects its pods by its own UID, unless it has a manual selector."""
    if value_at(document, "spec", "manualSelector"):
        return document
    metadata = as_object(document.get("metadata"))
    own = dict.fromkeys(CONTROLLER_UID_LABELS, metadata.get("uid", ""))
    own |= dict.fromkeys(JOB_NAME_LABELS, metadata.get("name", ""))
    labels = as_object(value_at(document, *_TEMPLATE, "metadata", "labels"))
    document = replaced_at(document, (*_TEMPLATE, "metadata", "labels"), {**labels, **own})
    selector = {CONTROLLER_UID_LABELS[0]: own[CONTROLLER_UID_LABELS[0]]}
    return filled_at(document, ("spec", "selector", "matchLabels"), selector)


def default_service(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("spec", "type"), "ClusterIP")
    document = filled_at(document, ("spec", "sessionAffinity"), "None")
    ports = objects_in(value_at(document, "spec", "ports"))
    filled = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in ports]
    return document if filled == ports else replaced_at(document, ("spec", "ports"), filled)


# --- Rules ------------------------------------------------------------------------------------


def workload_errors(document: JsonObject) -> Errors:
    """The errors of an object that makes pods; none for other kinds."""
    kind: str = document.get("kind", "")
    if kind not in WITH_TEMPLATE:
        return
    for field in ("replicas", "parallelism", "completions", "minReadySeconds"):
        count = value_at(document, "spec", field)
        if isinstance(count, int) and count < 0:
            detail = "must be greater than or equal to 0"
            yield f"spec.{field}: Invalid value: {count}: {detail}"
    yield from _template_errors(document, kind)
    if kind in _SELECTING:
        yield from _selector_errors(document)


def workload_change_errors(old: JsonObject, new: JsonObject) -> Errors:
    """The errors of an update of an object that makes pods."""
    kind: str = new.get("kind", "")
    if kind in _SELECTING or kind == "Job":
        yield from _immutable_errors(old, new, ("spec", "selector"))
    if kind == "Job":
        yield from _immutable_errors(old, new, _TEMPLATE)
        yield from _immutable_errors(old, new, ("spec", "completionMode"))


def _immutable_errors(old: JsonObject, new: JsonObject, path: Path) -> Errors:
    value = value_at(new, *path)
    if value != value_at(old, *path):
        yield f"{'.'.join(path)}: Invalid value: {_shown(value)}: field is immutable"


def _template_errors(document: JsonObject, kind: str) -> Errors:
    if not value_at(document, *_TEMPLATE, "spec", "containers"):
        yield "spec.template.spec.containers: Required value"
    policy = value_at(document, *_TEMPLATE, "spec", "restartPolicy") or "Always"
    allowed = ("OnFailure", "Never") if kind == "Job" else ("Always",)
    if policy not in allowed:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        where = "spec.template.spec.restartPolicy"
        yield f'{where}: Unsupported value: "{policy}": supported values: {choices}'


def _selector_errors(document: JsonObject) -> Errors:
    selector = value_at(document, "spec", "selector")
    if not is_object(selector) or not selector:
        yield "spec.selector: Required value"
        return
    labels = as_object(value_at(document, *_TEMPLATE, "metadata", "labels"))
    try:
        is_match = parse_label_selector(convert(LabelSelector, selector)).matches(labels)
    except SelectorError as error:
        yield from (f"spec.selector.{text}" for text in error.errors)
    except DecodeError as error:
        yield f"spec.selector: Invalid value: {_shown(selector)}: {error}"
    else:
        if not is_match:
            detail = "`selector` does not match template `labels`"
            where = "spec.template.metadata.labels"
            yield f"{where}: Invalid value: {_shown(labels)}: {detail}"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
