"""Annotations that hold a whole object.

Tools keep what they applied last in an annotation: a copy of the manifest, with the environment
variables and arguments that no scheduler reads. Such annotations are left out of what is written
for keeping.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# By the tools that write them; some compress the copy, so that it does not show.
_COPIES: Final = frozenset(
    (
        LAST_APPLIED,
        "banzaicloud.com/last-applied",
        "kapp.k14s.io/original",
        "kapp.k14s.io/original-diff",
        "objectset.rio.cattle.io/applied",
    )
)
_COPY_SUFFIX: Final = "/last-applied-configuration"


class _Head(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


_DECODER: Final = msgspec.json.Decoder(_Head)


def without_copies(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The annotations that hold no object; the same mapping if that is all of them."""
    if not any(map(_is_copy, annotations, annotations.values())):
        return annotations
    return {key: value for key, value in annotations.items() if not _is_copy(key, value)}


def _is_copy(key: str, value: object) -> bool:
    if key in _COPIES or key.endswith(_COPY_SUFFIX):
        return True
    return isinstance(value, str) and '"apiVersion"' in value and _is_object(value)


def _is_object(text: str) -> bool:
    """Whether it is the JSON of an object, and not of something that refers to one."""
    try:
        _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False
    return True
