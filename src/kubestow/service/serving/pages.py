"""`/flagz` and `/statusz`: flags, version and uptime (spec 09 §7).

Both come as text, and as a document for clients that ask for one by its kind.
"""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from kubestow import __version__
from kubestow.api.meta import JsonObject
from kubestow.clock import NANOSECONDS
from kubestow.redaction import without_secrets

COMPONENT: Final = "kube-scheduler"
API_VERSION: Final = "config.k8s.io/v1beta1"
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)
_SEPARATORS: Final = (":", ": ", "=", " ")


def flagz_text(flags: Mapping[str, str], rng: np.random.Generator) -> str:
    # The separator is random, so that clients do not parse the text.
    separator = _SEPARATORS[int(rng.integers(len(_SEPARATORS)))]
    lines = "".join(f"{name}{separator}{value}\n" for name, value in _shown(flags).items())
    return f"\n{COMPONENT} flagz\n{_WARNING}\n\n{lines}"


def flagz_document(flags: Mapping[str, str]) -> JsonObject:
    return _document("Flagz", flags=_shown(flags))


def _shown(flags: Mapping[str, str]) -> dict[str, str]:
    return {name: without_secrets(flags[name]) for name in sorted(flags)}


class ProcessFacts:
    """The content of `/statusz`."""

    def __init__(
        self,
        *,
        started_ns: int,
        version: str,
        emulated_version: str,
        paths: Iterable[str],
        conditions: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`conditions` are lines about the state of what kube-scheduler does not have."""
        self._conditions = conditions
        self._started_ns = started_ns
        self._version = version.removeprefix("v")
        self._emulated_version = emulated_version
        # First segments only.
        self._paths = sorted({f"/{path.split('/')[1]}" for path in paths})

    def statusz_text(self, now_ns: int) -> str:
        started = self._started().strftime("%a %b %e %H:%M:%S UTC %Y")
        return (
            f"\n{COMPONENT} statusz\n{_WARNING}\n\n"
            f"Started: {started}\n"
            f"Up: {_uptime(self._up_s(now_ns))}\n"
            f"Go version: python{platform.python_version()}\n"
            f"Binary version: {self._version}\n"
            f"Kubestow version: {__version__}\n"
            f"Emulation version: {self._emulated_version}\n"
            f"Paths: {' '.join(self._paths)}\n"
            + "".join(f"Condition: {line}\n" for line in self._conditions())
        )

    def statusz_document(self, now_ns: int) -> JsonObject:
        return _document(
            "Statusz",
            startTime=self._started().strftime("%Y-%m-%dT%H:%M:%SZ"),
            uptimeSeconds=self._up_s(now_ns),
            goVersion=f"python{platform.python_version()}",
            binaryVersion=self._version,
            emulationVersion=self._emulated_version,
            paths=self._paths,
        )

    def _started(self) -> datetime:
        return datetime.fromtimestamp(self._started_ns // NANOSECONDS, UTC)

    def _up_s(self, now_ns: int) -> int:
        return (now_ns - self._started_ns) // NANOSECONDS


def asks_for_document(accept: str, kind: str) -> bool:
    """Whether a client accepts the document of that kind rather than the text."""
    return any(f"as={kind}" in part.replace(" ", "") for part in accept.split(","))


def _document(kind: str, **content: object) -> JsonObject:
    return {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": {"name": COMPONENT},
        **content,
    }


def _uptime(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} hr {minutes:02d} min {seconds:02d} sec"
