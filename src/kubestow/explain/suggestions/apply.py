"""Makes a suggestion in manifests: the documents as they are with its patches applied."""

from collections.abc import Sequence

from msgspec import UNSET

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.writes.json_patch import json_patch
from kubestow.cluster.documents import namespace_of, value_at
from kubestow.errors import ApiError, InputError
from kubestow.explain.explanation import ObjectPatch, Suggestion
from kubestow.explain.many_explanation import SharedRemedy


def applied(documents: Sequence[Document], suggestion: Suggestion | SharedRemedy) -> list[Document]:
    """The documents with the suggested changes; those not concerned stay as they are.

    New objects come last. InputError names an object that is not in the documents, and a patch that
    does not apply.
    """
    result = list(documents)
    own = suggestion.pod_patch if isinstance(suggestion, Suggestion) else UNSET
    if isinstance(own, ObjectPatch) and any(_is_named(each.raw, own) for each in result):
        # The pod is there as it was made: it is changed like the template.
        patches = (*suggestion.patches, own)
    else:
        patches = suggestion.patches
    for patch in patches:
        index = next((at for at, each in enumerate(result) if _is_named(each.raw, patch)), None)
        operations = list(patch.patch)
        if operations[0]["path"] == "":
            if operations[0]["op"] == "add":
                result.append(Document(operations[0]["value"], f"suggestion {suggestion.kind}"))
            elif index is not None:
                del result[index]
            else:
                raise _not_found(patch)
        elif index is not None:
            result[index] = _patched(result[index], operations)
        else:
            raise _not_found(patch)
    return result


def _patched(document: Document, operations: list[JsonObject]) -> Document:
    try:
        return Document(json_patch(document.raw, operations), document.source)
    except ApiError as error:
        raise InputError(f"{document.source}: the patch does not apply: {error}") from error


def _is_named(raw: JsonObject, patch: ObjectPatch) -> bool:
    if raw.get("kind") != patch.kind or value_at(raw, "metadata", "name") != patch.name:
        return False
    return not patch.namespace or patch.namespace == namespace_of(raw)


def _not_found(patch: ObjectPatch) -> InputError:
    name = f"{patch.namespace}/{patch.name}" if patch.namespace else patch.name
    return InputError(
        f'the {patch.kind} "{name}" is not in the documents, so it cannot be changed; give the '
        "files that it was read from"
    )
