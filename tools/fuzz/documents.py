"""Strategies of API documents: valid ones in which some values are replaced by others."""

# pyright: basic
# Inputs are values of any type, on purpose.

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from kubestow.api.meta import JsonObject
from tools.fuzz.texts import json_values

POD: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "5",
        "labels": {"app": "web"},
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
        "finalizers": ["a/b"],
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                "ports": [{"containerPort": 80, "hostPort": 8080}],
            }
        ],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
        "nodeSelector": {"disk": "ssd"},
        "priority": 5,
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
                ]
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
    "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]},
}
NODE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}, "images": [{"names": ["a"]}]},
}
CLAIM: Final[JsonObject] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}],
            "config": [{"opaque": {"driver": "d", "parameters": {"a": [1, None]}}}],
        }
    },
    "status": {"allocation": {"devices": {"results": [{"request": "r"}]}}},
}
DEPLOYMENT: Final[JsonObject] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
    },
}
BUDGET: Final[JsonObject] = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b"},
    "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
}
EXAMPLES: Final = (POD, NODE, CLAIM, DEPLOYMENT, BUDGET)


def changed(*examples: JsonObject) -> st.SearchStrategy[Any]:
    """One of the documents with up to three values replaced, left out or repeated."""
    return st.builds(_change, st.sampled_from(examples), st.lists(_CHANGES, max_size=3))


_Change = tuple[Sequence[float], str, object]
_CHANGES: Final[st.SearchStrategy[_Change]] = st.tuples(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.sampled_from(("replace", "replace", "remove", "wrap", "rename")),
    json_values,
)


def _change(document: Any, changes: Sequence[_Change]) -> Any:
    for places, how, value in changes:
        document = changed_at(document, places, how, value)
    return document


def changed_at(node: Any, places: Sequence[float], how: str, value: object) -> Any:
    """A copy in which the value is changed that the numbers lead to, level by level."""
    if not places or not isinstance(node, dict | list) or not node:
        return [node] if how == "wrap" else value
    keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
    key = keys[min(int(places[0] * len(keys)), len(keys) - 1)]
    copy: Any = node.copy()
    if len(places) == 1 and how == "remove":
        del copy[key]
    elif len(places) == 1 and how == "rename" and isinstance(copy, dict):
        copy[str(value)[:20]] = copy.pop(key)
    else:
        copy[key] = changed_at(copy[key], places[1:], how, value)
    return copy
