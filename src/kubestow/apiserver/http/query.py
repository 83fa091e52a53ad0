"""The parameters of a request, parsed; 400 for invalid ones."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubestow.apiserver.controllers.garbage_collector import FINALIZERS
from kubestow.apiserver.http.served import ServedResource
from kubestow.apiserver.refusals import bad_request, invalid
from kubestow.apiserver.selectors import Selection, parse_selection

_TRUE: Final = ("1", "t", "T", "true", "True", "TRUE")
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

    def flag(self, name: str) -> bool:
        value = self.text(name)
        if value not in _TRUE + _FALSE:
            raise bad_request(f'parameter "{name}" is "{value}", expected true or false')
        return value in _TRUE

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if not value.isdecimal():
            raise bad_request(f'parameter "{name}" is "{value}", expected a whole number')
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
        if text and not text.isdecimal():
            raise bad_request(f'invalid resource version "{text}": expected a whole number')
        if match not in ("", "Exact", "NotOlderThan"):
            raise bad_request(f'unknown resourceVersionMatch "{match}"')
        version = int(text or 0)
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
        choices = ", ".join(f'"{choice}"' for choice in FINALIZERS)
        detail = (
            f'propagationPolicy: Unsupported value: "{propagation_policy}":'
            f" supported values: {choices}"
        )
        raise invalid("DeleteOptions", "", [detail])
    return FINALIZERS[propagation_policy]
