"""What a client sends, read field by field: `fieldValidation` says what unknown fields cause.

    Ignore   nothing
    Warn     a warning in the answer (the default)
    Strict   a refusal

In each case they are not stored. Values of the wrong type are always refused.
"""

import json
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import bad_request, invalid
from kubestow.apiserver.schema.reading import ReadDocument, TypeMismatchError, path_text, read
from kubestow.apiserver.served import ServedResource
from kubestow.cluster.documents import as_object
from kubestow.errors import ApiError

_DIRECTIVES: Final = ("", "Ignore", "Strict", "Warn")


class FieldValidation:
    """The fields of one request, and the warnings they cause."""

    def __init__(self, directive: str, served: ServedResource, options: str) -> None:
        """`options` is the kind of the options that have the directive: `CreateOptions`."""
        if directive not in _DIRECTIVES:
            choices = ", ".join(f'"{choice}"' for choice in _DIRECTIVES)
            detail = (
                f'fieldValidation: Unsupported value: "{directive}": supported values: {choices}'
            )
            raise invalid(f"{options}.meta.k8s.io", "", [detail])
        self.directive: Final = directive or "Warn"
        self.warnings: list[str] = []
        self._served = served

    def body(self, document: JsonObject, duplicates: list[str]) -> JsonObject:
        """A whole object that a client sent."""
        found = self._served.read(document)
        if problems := self._strict_errors(found, duplicates):
            text = f"strict decoding error: {', '.join(problems)}"
            raise self._served.unreadable(document, text)
        return found.document

    def patched(self, document: JsonObject, duplicates: list[str], shown: str) -> JsonObject:
        """An object after a patch of a client, which refusals show as `shown`."""
        try:
            found = read(document, self._served.schema)
        except TypeMismatchError as error:
            raise _invalid_patch(shown, str(error)) from error
        if problems := self._strict_errors(found, duplicates):
            raise _invalid_patch(shown, f"strict decoding error: {', '.join(problems)}")
        return found.document

    def applied(self, document: JsonObject, duplicates: list[str]) -> JsonObject:
        """An object that is applied: every field must exist, also without `Strict`."""
        metadata = as_object(document.get("metadata"))
        resource = self._served.resource
        subject = (
            f"failed to create typed patch object ({metadata.get('namespace', '')}/"
            f"{metadata.get('name', '')}; {resource.api_version}, Kind={resource.kind})"
        )
        try:
            found = read(document, self._served.schema)
        except TypeMismatchError as error:
            where = f".{path_text(error.path)}"
            raise bad_request(f"{subject}: {where}: {error.problem}") from error
        if found.unknown:
            problems = [f".{path}: field not declared in schema" for path in found.unknown]
            text = problems[0] if len(problems) == 1 else "\n  ".join(("errors:", *problems))
            raise bad_request(f"{subject}: {text}")
        if problems := self._strict_errors(found, duplicates):
            raise bad_request(f"error strict decoding YAML: {', '.join(problems)}")
        return found.document

    def _strict_errors(self, found: ReadDocument, duplicates: list[str]) -> list[str]:
        """What refuses the request; under other directives nothing, perhaps with warnings."""
        problems = [f'unknown field "{path}"' for path in found.unknown]
        problems += duplicates
        if self.directive == "Strict":
            return problems
        if self.directive == "Warn":
            self.warnings += problems
        return []


def _invalid_patch(shown: str, problem: str) -> ApiError:
    quoted = json.dumps(shown, ensure_ascii=False)
    return invalid("", "", [f"patch: Invalid value: {quoted}: {problem}"])


def warning_header(text: str) -> str:
    """The value of a `Warning` header; control characters cannot be part of one."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
