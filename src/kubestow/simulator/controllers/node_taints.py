"""The taints that follow from a node's conditions. Pure functions of documents."""

from collections.abc import Iterable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import condition_of, objects_in, replaced_at, value_at

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
# By type and status of a condition.
_KEYS: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OWN_KEYS: Final = frozenset((*_KEYS.values(), _UNSCHEDULABLE))


def ready_status(node: JsonObject) -> str:
    """The status of the condition Ready; empty if there is none."""
    return condition_of(node, "Ready").get("status") or ""


def eviction_key(node: JsonObject) -> str:
    """The key of the NoExecute taint the node should have; empty if none."""
    return _KEYS.get(("Ready", ready_status(node)), "")


def with_scheduling_taints(node: JsonObject, *, now: str) -> JsonObject:
    """The node with the NoSchedule taints of its conditions, and no others of these."""
    wanted = [
        key
        for condition in objects_in(value_at(node, "status", "conditions"))
        if (key := _KEYS.get((condition.get("type", ""), condition.get("status", ""))))
    ]
    if value_at(node, "spec", "unschedulable"):
        wanted.append(_UNSCHEDULABLE)
    return _with_taints(node, "NoSchedule", wanted, _OWN_KEYS, now)


def with_eviction_taint(node: JsonObject, key: str, *, now: str) -> JsonObject:
    """The node with this one of the two NoExecute taints; with neither if the key is empty."""
    return _with_taints(node, "NoExecute", [key] if key else [], (NOT_READY, UNREACHABLE), now)


def has_eviction_taint(node: JsonObject, *keys: str) -> bool:
    return any(
        taint.get("effect") == "NoExecute" and taint.get("key") in keys
        for taint in objects_in(value_at(node, "spec", "taints"))
    )


def _with_taints(
    node: JsonObject, effect: str, wanted: list[str], own_keys: Iterable[str], now: str
) -> JsonObject:
    """The node whose taints of some keys and one effect are these; others stay as they are."""
    taints = objects_in(value_at(node, "spec", "taints"))
    unwanted = frozenset(own_keys).difference(wanted)
    kept = [
        taint
        for taint in taints
        if taint.get("effect") != effect or taint.get("key") not in unwanted
    ]
    present = {taint.get("key") for taint in kept if taint.get("effect") == effect}
    added = [
        {"key": key, "effect": effect, "timeAdded": now} for key in wanted if key not in present
    ]
    if not added and len(kept) == len(taints):
        return node
    return replaced_at(node, ("spec", "taints"), [*kept, *added])
