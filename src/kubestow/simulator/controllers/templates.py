"""Comparing pod templates, and a short hash of each."""

import hashlib
from typing import Any, Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import is_list, is_object

# No vowels and no digits that look like them, so that a hash is never a word.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH: Final = 10


def template_hash(template: JsonObject, attempt: int = 0) -> str:
    """A short text that is the same for the same template."""
    raw = msgspec.json.encode([canonical(template), attempt], order="sorted")
    number = int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")
    text = ""
    for _ in range(_HASH_LENGTH):
        number, index = divmod(number, len(_ALPHABET))
        text += _ALPHABET[index]
    return text


def canonical(template: Any) -> Any:  # any JSON value, in and out
    """The template without empty values: clients write `resources: {}` or leave it out."""
    if is_list(template):
        return [canonical(item) for item in template]
    if not is_object(template):
        return template
    # In a volume the key of an empty object is the kind of volume.
    kept = {key: value if key == "volumes" else canonical(value) for key, value in template.items()}
    return {key: value for key, value in kept.items() if value not in (None, "", {}, [])}
