"""Objects as YAML, with the fields that the scheduler keeps of them.

Environment variables, commands and data are not among these. Annotations are left out as well:
some hold whole manifests with all of that.
"""

from typing import Final

import yaml

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.cluster.resources import default_resources

# Characters of one text; a hostile object has megabytes.
TEXT_LENGTH_MAX: Final = 200_000

_LEFT_OUT: Final = ("annotations", "managedFields")
_RESOURCES: Final = default_resources()


def manifest_text(api_object: ApiObject) -> str:
    """The object as YAML, the usual fields first."""
    resource = _RESOURCES.of_type(type(api_object))
    document = to_document(api_object)
    metadata: JsonObject = document.get("metadata", {})
    shown: JsonObject = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {key: value for key, value in metadata.items() if key not in _LEFT_OUT},
        **{
            key: value
            for key, value in document.items()
            if key not in ("apiVersion", "kind", "metadata")
        },
    }
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=1_000)
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    return f"{text[:TEXT_LENGTH_MAX]}\n# and {len(text) - TEXT_LENGTH_MAX} characters more\n"
