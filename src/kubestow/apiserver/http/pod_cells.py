"""The cells of a pod in a table: how many containers are ready, and its status in one word.

The status is chosen by precedence: a pod that is being deleted is Terminating; then an init
container that is not done, then a container's reason to wait, then the pod's phase.
"""

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.ages import age
from kubestow.cluster.documents import as_object, condition_of, objects_in, value_at

NONE = "<none>"


def ready(pod: JsonObject, _now_ns: int) -> str:
    """`1/2`: containers that are ready, of all that keep running."""
    statuses = objects_in(value_at(pod, "status", "containerStatuses"))
    sidecars = _sidecar_names(pod)
    if sidecars:
        initial = objects_in(value_at(pod, "status", "initContainerStatuses"))
        statuses += [status for status in initial if status.get("name") in sidecars]
    ready_count = sum(
        bool(status.get("ready")) and value_at(status, "state", "running") is not None
        for status in statuses
    )
    total = len(objects_in(value_at(pod, "spec", "containers"))) + len(sidecars)
    return f"{ready_count}/{total}"


def status(pod: JsonObject, _now_ns: int) -> str:
    """The STATUS column."""
    reason: str = value_at(pod, "status", "reason") or value_at(pod, "status", "phase") or "Unknown"
    if condition_of(pod, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    reason = _init_status(pod) or _container_status(pod, reason)
    if "deletionTimestamp" in as_object(pod.get("metadata")):
        return "Unknown" if value_at(pod, "status", "reason") == "NodeLost" else "Terminating"
    return reason


def restarts(pod: JsonObject, now_ns: int) -> str:
    """`0`, or `3 (5m ago)`."""
    statuses = objects_in(value_at(pod, "status", "containerStatuses"))
    count = sum(status.get("restartCount") or 0 for status in statuses)
    ended = [
        text
        for status in statuses
        if (text := value_at(status, "lastState", "terminated", "finishedAt"))
    ]
    return f"{count} ({age(max(ended), now_ns)} ago)" if count and ended else str(count)


def readiness_gates(pod: JsonObject, _now_ns: int) -> str:
    gates = objects_in(value_at(pod, "spec", "readinessGates"))
    if not gates:
        return NONE
    types = [gate.get("conditionType", "") for gate in gates]
    passed = sum(condition_of(pod, type).get("status") == "True" for type in types)
    return f"{passed}/{len(gates)}"


def _sidecar_names(pod: JsonObject) -> set[str]:
    return {
        container.get("name", "")
        for container in objects_in(value_at(pod, "spec", "initContainers"))
        if container.get("restartPolicy") == "Always"
    }


def _init_status(pod: JsonObject) -> str:
    """The status of the first init container that is not done; empty when all are."""
    statuses = objects_in(value_at(pod, "status", "initContainerStatuses"))
    if not statuses:
        return ""
    total = len(objects_in(value_at(pod, "spec", "initContainers")))
    sidecars = _sidecar_names(pod)
    for index, status in enumerate(statuses):
        state = as_object(status.get("state"))
        terminated = state.get("terminated")
        if terminated is not None and not as_object(terminated).get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_terminated_status(as_object(terminated))}"
        waiting: str = value_at(state, "waiting", "reason") or ""
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{total}"
    return ""


def _container_status(pod: JsonObject, reason: str) -> str:
    has_running = False
    # The first container takes precedence, so it comes last.
    for status in reversed(objects_in(value_at(pod, "status", "containerStatuses"))):
        state = as_object(status.get("state"))
        if waiting := value_at(state, "waiting", "reason"):
            reason = waiting
        elif state.get("terminated") is not None:
            reason = _terminated_status(as_object(state["terminated"]))
        elif status.get("ready") and state.get("running") is not None:
            has_running = True
    if reason == "Completed" and has_running:
        return "Running" if condition_of(pod, "Ready").get("status") == "True" else "NotReady"
    return reason


def _terminated_status(terminated: JsonObject) -> str:
    if reason := terminated.get("reason"):
        return reason
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"
