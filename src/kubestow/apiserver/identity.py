"""Identifiers an API server generates: object UIDs and the suffixes of generated names.

They look random but are not: the same seed gives the same sequence, so a simulated run can be
repeated exactly.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

SUFFIX_LENGTH: Final = 5
NAME_LENGTH_MAX: Final = 63
# No vowels and no digits that look like them, so that a generated name is never a word.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


class IdentitySource:
    """A sequence of identifiers, fixed by its seed; one source never repeats a UID."""

    def __init__(self, seed: int = 0) -> None:
        key = seed.to_bytes(16, "little", signed=True)
        self._empty = hashlib.blake2b(key=key, digest_size=16)
        self._count = 0
        self._taken: set[str] = set()

    def take(self, uids: Iterable[str]) -> None:
        """These UIDs are of objects that came with them: another source made them, perhaps of the
        same seed."""
        self._taken.update(uids)

    def next_uid(self) -> str:
        """A version-4 UUID that is not taken."""
        while (uid := self._next_uid()) in self._taken:
            pass
        return uid

    def _next_uid(self) -> str:
        digits = self._next_digest().hex()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"

    def next_name(self, prefix: str) -> str:
        """A name that begins with `generateName`; the caller calls again if it is taken."""
        number = int.from_bytes(self._next_digest()[:8], "little")
        suffix = ""
        for _ in range(SUFFIX_LENGTH):
            number, index = divmod(number, len(_ALPHABET))
            suffix += _ALPHABET[index]
        return prefix[: NAME_LENGTH_MAX - SUFFIX_LENGTH] + suffix

    def _next_digest(self) -> bytes:
        self._count += 1
        hasher = self._empty.copy()
        hasher.update(self._count.to_bytes(8, "little"))
        return hasher.digest()
