"""The status a kubelet writes for a pod: phase, conditions, and the state of each container.

Pure functions of the pod and the time. The status of a start and of an end, which every pod has, is
made twice: as a document, when that is read, and as the typed struct that it converts to.
"""

from typing import Final

import msgspec

from kubestow.api.meta import Condition, JsonObject
from kubestow.api.pod import Container, ContainerStatus, Pod, PodStatus
from kubestow.cluster.documents import objects_in, value_at, whole_seconds_at

# The conditions a kubelet writes; PodScheduled is written with the binding.
_KUBELET_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
)
_MET_WHILE_RUNNING: Final[dict[str, bool]] = dict.fromkeys(_KUBELET_CONDITIONS, True)
_MET_AT_THE_END: Final[dict[str, bool]] = {
    "PodReadyToStartContainers": False,
    "Initialized": True,
    "Ready": False,
    "ContainersReady": False,
}


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
        "conditions": _conditions(pod, _MET_WHILE_RUNNING, now),
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
    phase, reason = _end_of(exit_code)
    return {
        "phase": phase,
        "conditions": _conditions(pod, _MET_AT_THE_END, now, reason),
        "containerStatuses": _statuses(pod, states, is_ready=False),
    }


def running_status(pod: Pod, now_ns: int) -> PodStatus:
    """The status of `running` as a typed struct."""
    return msgspec.structs.replace(
        pod.status,
        phase="Running",
        start_time=pod.status.start_time or whole_seconds_at(now_ns),
        conditions=_typed_conditions(pod, _MET_WHILE_RUNNING, now_ns),
        init_container_statuses=_typed_statuses(pod.spec.init_containers),
        container_statuses=_typed_statuses(pod.spec.containers),
    )


def ended_status(pod: Pod, now_ns: int, exit_code: int) -> PodStatus:
    """The status of `ended` as a typed struct."""
    phase, reason = _end_of(exit_code)
    return msgspec.structs.replace(
        pod.status,
        phase=phase,
        conditions=_typed_conditions(pod, _MET_AT_THE_END, now_ns, reason),
        container_statuses=_typed_statuses(pod.spec.containers),
    )


def _end_of(exit_code: int) -> tuple[str, str]:
    """The phase of a pod that has ended, and the reason of its conditions."""
    return ("Failed", "PodFailed") if exit_code else ("Succeeded", "PodCompleted")


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


def _typed_conditions(
    pod: Pod, is_met: dict[str, bool], now_ns: int, reason: str = ""
) -> tuple[Condition, ...]:
    """`_conditions` as typed structs."""
    conditions = {condition.type: condition for condition in pod.status.conditions}
    now = whole_seconds_at(now_ns)
    for type, met in is_met.items():
        status = "True" if met else "False"
        known = conditions.get(type)
        if known is None or known.status != status:
            conditions[type] = Condition(
                type=type,
                status=status,
                reason="" if met else reason,
                last_transition_time=now,
            )
    return tuple(conditions.values())


def _typed_statuses(containers: tuple[Container, ...]) -> tuple[ContainerStatus, ...]:
    if not containers:
        return ()
    return tuple([ContainerStatus(name=container.name) for container in containers])
