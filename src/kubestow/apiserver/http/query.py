"""The parameters of a request, parsed; 400 for invalid ones."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kubestow.apiserver.controllers.garbage_collector import FINALIZERS
from kubestow.apiserver.refusals import bad_request, invalid
from kubestow.apiserver.selectors import Selection, parse_selection
from kubestow.apiserver.served import ServedResource
from kubestow.apiserver.store import parse_version

_TRUE: Final = ("1", "t", "T", "true", "True", "TRUE")
_INTEGER: Final = re.compile("-?[0-9]+")
_INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 20  # more are out of range
_FALSE: Final = ("0", "f", "F", "false", "False", "FALSE", "")


class RequestedVersion(NamedTuple):
    """The state of the cluster that a list or watch requests."""

    version: int
    is_exact: bool
    # Whether a version was given: a watch from "0" may begin at any version, one from "" must not.
    is_given: bool


class Query:
    """Parameters by name; unknown ones are ignored, as by a real server."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters

    def text(self, name: str) -> str:
        return self._parameters.get(name, "")

    def texts(self, name: str) -> list[str]:
        """The values of a parameter that may be given several times, or with commas."""
        return self.text(name).split(",") if self.has(name) else []

    def has(self, name: str) -> bool:
        return name in self._parameters

    def flag(self, name: str) -> bool:
        value = self.text(name)
        if value not in _TRUE + _FALSE:
            raise bad_request(f'parameter "{name}" is "{value}", expected true or false')
        return value in _TRUE

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if not _INTEGER.fullmatch(value):
            raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax')
        if len(value) > _DIGITS_MAX or abs(int(value)) > _INT64_MAX:
            raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
        return int(value)

    @property
    def is_dry_run(self) -> bool:
        value = self.text("dryRun")
        if value not in ("", "All"):
            detail = f'dryRun: Unsupported value: "{value}": supported values: "All"'
            raise invalid("Options", "", [detail])
        return value == "All"

    def requested_version(self) -> RequestedVersion:
        text, match = self.text("resourceVersion"), self.text("resourceVersionMatch")
        if match not in ("", "Exact", "NotOlderThan"):
            choices = 'supported values: "Exact", "NotOlderThan", ""'
            detail = f'resourceVersionMatch: Unsupported value: "{match}": {choices}'
            raise invalid("ListOptions.meta.k8s.io", "", [detail])
        version = parse_version(text)
        is_exact = match == "Exact" and version > 0
        return RequestedVersion(version, is_exact=is_exact, is_given=bool(text))

    def selection(self, served: ServedResource, namespace: str) -> Selection:
        return parse_selection(
            served.stored,
            namespace=namespace,
            field_selector=served.stored_fields(self.text("fieldSelector")),
            label_selector=self.text("labelSelector"),
        )


def finalizer_of(propagation_policy: str) -> str:
    """The finalizer a delete request adds to an object by its policy; empty for none."""
    if not propagation_policy:
        return ""
    if propagation_policy not in FINALIZERS:
        detail = (
            f'propagationPolicy: Unsupported value: "{propagation_policy}":'
            ' supported values: "Foreground", "Background", "Orphan", "nil"'
        )
        raise invalid("DeleteOptions.meta.k8s.io", "", [detail])
    return FINALIZERS[propagation_policy]
