"""How long the simulated containers of a pod run, and their exit code.

A pod with restart policy Always runs until it is deleted. Others end by themselves: after the given
time, or after a few seconds.

    kubestow.io/run-seconds: "20"      an annotation of the pod
    kubestow.io/exit-code: "1"         another one
    command: [sleep, "20"]             or the command, if it is as simple as this
    command: [sh, -c, "sleep 5; exit 3"]
"""

import re
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_list, as_object

RUN_SECONDS: Final = "kubestow.io/run-seconds"
EXIT_CODE: Final = "kubestow.io/exit-code"
DEFAULT_S: Final = 5.0

_SLEEP: Final = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?)\b")
_EXIT: Final = re.compile(r"\bexit\s+(\d+)\b")


class Run(NamedTuple):
    seconds: float
    exit_code: int


def run_of(pod: JsonObject) -> Run | None:
    """How the pod's containers end; None if they run until the pod is deleted."""
    annotations = as_object(as_object(pod.get("metadata")).get("annotations"))
    seconds, exit_code = _number(annotations.get(RUN_SECONDS)), _number(annotations.get(EXIT_CODE))
    spec = as_object(pod.get("spec"))
    is_endless = spec.get("restartPolicy") in (None, "", "Always")
    if is_endless and seconds is None and exit_code is None:
        return None
    command = _command(spec)
    if seconds is None:
        seconds = _found(_SLEEP, command)
    if seconds is None:
        seconds = 0.0 if command in ("true", "false") else DEFAULT_S
    if exit_code is None:
        exit_code = 1.0 if command == "false" else _found(_EXIT, command)
    return Run(seconds, int(exit_code or 0))


def shortest_command(container: JsonObject) -> list[str]:
    """A command that takes as long and ends alike, without anything else that the container's has;
    empty if that is what a container without a command does."""
    line = _line(container)
    if line in ("true", "false"):
        return [line]
    found = [match[0] for pattern in (_SLEEP, _EXIT) if (match := pattern.search(line))]
    return ["sh", "-c", "; ".join(found)] if found else []


def _command(spec: JsonObject) -> str:
    """Command and arguments of the first container, as one line."""
    containers = as_list(spec.get("containers"))
    first = as_object(containers[0]) if containers else {}
    # Most have none, and every pod that starts comes by here.
    return _line(first) if first.get("command") or first.get("args") else ""


def _line(container: JsonObject) -> str:
    parts = [*as_list(container.get("command")), *as_list(container.get("args"))]
    return " ".join(str(part) for part in parts)


def _found(pattern: re.Pattern[str], command: str) -> float | None:
    found = pattern.search(command) if command else None
    return None if found is None else float(found[1])


def _number(text: object) -> float | None:
    try:
        return float(text) if isinstance(text, str) else None
    except ValueError:
        return None
