"""Health checks by name, and the text of their results (spec 09 §7).

GET /readyz              ok
GET /readyz?verbose      [+]shutdown ok … readyz check passed
GET /readyz/shutdown     ok, or 500 with the error
"""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from kubestow.logs import level_of
from kubestow.service.metrics.registry import MetricsRegistry

log = logging.getLogger(__name__)

# Returns the error; None if there is none.
Check = Callable[[], str | None]

SHUTTING_DOWN: Final = "process is shutting down"
NOT_SYNCED: Final = "handlers are not fully synchronized"


class NamedCheck(NamedTuple):
    name: str
    check: Check


class HealthAnswer(NamedTuple):
    status: int
    text: str


class HealthEndpoint:
    """The checks of one path, such as `/readyz`."""

    def __init__(self, name: str, checks: Sequence[NamedCheck], slis: "HealthSlis") -> None:
        """`name` is the path without its slash."""
        self.name = name
        self.checks = tuple(checks)
        self._slis = slis

    def answer_all(self, *, is_verbose: bool, excluded: Collection[str] = ()) -> HealthAnswer:
        lines: list[str] = []
        errors: dict[str, str] = {}
        for name, check in self.checks:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
            elif (error := self._run(name, check)) is None:
                lines.append(f"[+]{name} ok\n")
            else:
                # The reason is in the log and at the path of the check, which may need
                # authorization.
                lines.append(f"[-]{name} failed: reason withheld\n")
                errors[name] = error
        unknown = [name for name in excluded if name not in {check.name for check in self.checks}]
        if unknown:
            names = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        text = "".join(lines)
        if errors:
            reasons = "\n".join(f"[-]{name} failed: {why}" for name, why in errors.items())
            log.log(level_of(2), "%s check failed: %s\n%s", ",".join(errors), self.name, reasons)
            return HealthAnswer(500, f"{text}{self.name} check failed\n")
        if not is_verbose:
            return HealthAnswer(200, "ok")
        return HealthAnswer(200, f"{text}{self.name} check passed\n")

    def answer_one(self, name: str) -> HealthAnswer | None:
        """The result of a single check; None if there is none of that name."""
        for check_name, check in self.checks:
            if check_name == name:
                error = self._run(name, check)
                if error is None:
                    return HealthAnswer(200, "ok")
                return HealthAnswer(500, f"internal server error: {error}\n")
        return None

    def _run(self, name: str, check: Check) -> str | None:
        error = check()
        self._slis.note(name, self.name, is_ok=error is None)
        return error


class HealthSlis:
    """How often which check passed; for `/metrics/slis`."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self._state = self.registry.gauge(
            "kubernetes_healthcheck",
            "1 if the check passed when it last ran, 0 if it failed.",
            ("name", "type"),
            stability="STABLE",
        )
        self._total = self.registry.counter(
            "kubernetes_healthchecks_total",
            "Number of times a check ran, by result.",
            ("name", "type", "status"),
            stability="STABLE",
        )

    def note(self, name: str, kind: str, *, is_ok: bool) -> None:
        self._state.labels(name, kind).set(1 if is_ok else 0)
        self._total.labels(name, kind, "success" if is_ok else "error").inc()


def always_ok() -> str | None:
    return None
