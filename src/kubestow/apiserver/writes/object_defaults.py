"""Defaults of kinds that the scheduler does not read: roles, policies, autoscalers, secrets.

Only what other programs rely on finding: a missing field of these kinds often means the same as its
default.
"""

import base64
from collections.abc import Callable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import (
    as_object,
    filled_at,
    objects_in,
    removed_at,
    replaced_at,
    value_at,
)

_RBAC: Final = "rbac.authorization.k8s.io"
_CPU_TARGET: Final[JsonObject] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_WEBHOOK: Final[JsonObject] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}


def default_secret(document: JsonObject) -> JsonObject:
    """Texts become part of the data; they are never read back."""
    document = filled_at(document, ("type",), "Opaque")
    texts = as_object(document.get("stringData"))
    encoded = {
        key: base64.b64encode(text.encode()).decode()
        for key, text in texts.items()
        if isinstance(text, str)
    }
    if encoded:
        document = replaced_at(document, ("data",), {**as_object(document.get("data")), **encoded})
    return removed_at(document, ("stringData",))


def default_cron_job(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("spec", "concurrencyPolicy"), "Allow")
    document = filled_at(document, ("spec", "suspend"), False)
    document = filled_at(document, ("spec", "successfulJobsHistoryLimit"), 3)
    return filled_at(document, ("spec", "failedJobsHistoryLimit"), 1)


def default_autoscaler(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("spec", "minReplicas"), 1)
    if not value_at(document, "spec", "metrics"):
        document = replaced_at(document, ("spec", "metrics"), [_CPU_TARGET])
    return document


def default_network_policy(document: JsonObject) -> JsonObject:
    if value_at(document, "spec", "policyTypes"):
        return document
    has_egress = bool(value_at(document, "spec", "egress"))
    types = ["Ingress", "Egress"] if has_egress else ["Ingress"]
    return replaced_at(document, ("spec", "policyTypes"), types)


def default_role_binding(document: JsonObject) -> JsonObject:
    document = filled_at(document, ("roleRef", "apiGroup"), _RBAC)
    return _map_objects(
        document,
        ("subjects",),
        lambda subject: (
            subject if subject.get("kind") == "ServiceAccount" else {"apiGroup": _RBAC, **subject}
        ),
    )


def default_webhooks(document: JsonObject) -> JsonObject:
    return _map_objects(document, ("webhooks",), lambda webhook: {**_WEBHOOK, **webhook})


def default_endpoint_slice(document: JsonObject) -> JsonObject:
    return _map_objects(document, ("ports",), lambda port: {"name": "", "protocol": "TCP", **port})


def _map_objects(
    document: JsonObject, path: tuple[str, ...], change: Callable[[JsonObject], JsonObject]
) -> JsonObject:
    found = objects_in(value_at(document, *path))
    changed = [change(one) for one in found]
    return document if changed == found else replaced_at(document, path, changed)


OBJECT_DEFAULTS: Final[dict[str, tuple[Callable[[JsonObject], JsonObject], ...]]] = {
    "Secret": (default_secret,),
    "CronJob": (default_cron_job,),
    "HorizontalPodAutoscaler": (default_autoscaler,),
    "NetworkPolicy": (default_network_policy,),
    "RoleBinding": (default_role_binding,),
    "ClusterRoleBinding": (default_role_binding,),
    "ValidatingWebhookConfiguration": (default_webhooks,),
    "MutatingWebhookConfiguration": (default_webhooks,),
    "EndpointSlice": (default_endpoint_slice,),
}
