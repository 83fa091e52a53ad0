"""The status a kubelet writes for a pod: phase, conditions, and the state of each container.

Pure functions of the pod and the time.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import objects_in, value_at

# The conditions a kubelet writes; PodScheduled is written with the binding.
_KUBELET_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
)


def running(pod: JsonObject, *, now: str, pod_ip: str, host_ip: str, restarts: int) -> JsonObject:
    """The status of a pod whose containers run."""
    states = {"running": {"startedAt": now}}
    return {
        "phase": "Running",
        "startTime": value_at(pod, "status", "startTime") or now,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "conditions": _conditions(pod, dict.fromkeys(_KUBELET_CONDITIONS, True), now),
        "initContainerStatuses": [
            _init_status(container, now)
            for container in objects_in(value_at(pod, "spec", "initContainers"))
        ]
        or None,
        "containerStatuses": [
            _container_status(container, states, is_ready=True, restarts=restarts)
            for container in objects_in(value_at(pod, "spec", "containers"))
        ],
    }


def ended(pod: JsonObject, *, now: str, exit_code: int) -> JsonObject:
    """The status of a pod whose containers have ended for good."""
    states = {"terminated": _terminated(pod, now, exit_code)}
    is_met = {
        "PodReadyToStartContainers": False,
        "Initialized": True,
        "Ready": False,
        "ContainersReady": False,
    }
    reason = "PodFailed" if exit_code else "PodCompleted"
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": _conditions(pod, is_met, now, reason),
        "containerStatuses": _statuses(pod, states, is_ready=False),
    }


def waiting_for_restart(pod: JsonObject, *, now: str, exit_code: int) -> JsonObject:
    """The status of a pod whose containers failed and will be started again."""
    waiting: JsonObject = {"reason": "CrashLoopBackOff", "message": "back-off restarting"}
    statuses = _statuses(pod, {"waiting": waiting}, is_ready=False)
    for status in statuses:
        status["lastState"] = {"terminated": _terminated(pod, now, exit_code)}
    is_met = {"Ready": False, "ContainersReady": False}
    return {
        "conditions": _conditions(pod, is_met, now, "ContainersNotReady"),
        "containerStatuses": statuses,
    }


def ready_again(pod: JsonObject, *, now: str) -> JsonObject | None:
    """The status of a running pod that was marked as not ready while its kubelet was lost.

    None if there is nothing to correct.
    """
    containers = objects_in(value_at(pod, "status", "containerStatuses"))
    if not containers or not all(container.get("ready") for container in containers):
        return None
    before = objects_in(value_at(pod, "status", "conditions"))
    conditions = _conditions(pod, {"Ready": True}, now)
    return None if conditions == before else {"conditions": conditions}


def _statuses(pod: JsonObject, states: JsonObject, *, is_ready: bool) -> list[JsonObject]:
    restarts = restart_count(pod)
    return [
        _container_status(container, states, is_ready=is_ready, restarts=restarts)
        for container in objects_in(value_at(pod, "spec", "containers"))
    ]


def restart_count(pod: JsonObject) -> int:
    statuses = objects_in(value_at(pod, "status", "containerStatuses"))
    return max((status.get("restartCount") or 0 for status in statuses), default=0)


def _terminated(pod: JsonObject, now: str, exit_code: int) -> JsonObject:
    statuses = objects_in(value_at(pod, "status", "containerStatuses"))
    started = value_at(statuses[0], "state", "running", "startedAt") if statuses else None
    return {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": started or now,
        "finishedAt": now,
    }


def _container_status(
    container: JsonObject, state: JsonObject, *, is_ready: bool, restarts: int
) -> JsonObject:
    image: str = container.get("image") or ""
    return {
        "name": container.get("name", ""),
        "image": image,
        "imageID": "",
        "ready": is_ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    }


def _init_status(container: JsonObject, now: str) -> JsonObject:
    if container.get("restartPolicy") == "Always":
        state: JsonObject = {"running": {"startedAt": now}}
        return _container_status(container, state, is_ready=True, restarts=0)
    terminated = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    return _container_status(container, {"terminated": terminated}, is_ready=True, restarts=0)


def _conditions(
    pod: JsonObject, is_met: dict[str, bool], now: str, reason: str = ""
) -> list[JsonObject]:
    """The pod's conditions with some of them replaced; times change with the status only."""
    before = {
        condition.get("type", ""): condition
        for condition in objects_in(value_at(pod, "status", "conditions"))
    }
    conditions = dict(before)
    for type, met in is_met.items():
        status = "True" if met else "False"
        known = before.get(type)
        if known is not None and known.get("status") == status:
            continue
        condition: JsonObject = {
            "type": type,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": now,
        }
        if reason and not met:
            condition["reason"] = reason
        conditions[type] = condition
    return list(conditions.values())
