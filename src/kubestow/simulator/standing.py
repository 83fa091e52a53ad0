"""Objects that are as they were read from a server; controllers can be made to leave them alone."""

from collections.abc import Set
from typing import Final

from kubestow.api.meta import ApiObject


class StandingObjects:
    """Objects by UID, as of a version of the store. One that was written since does not stand."""

    def __init__(self, uids: Set[str] = frozenset(), version: int = 0) -> None:
        self.uids = uids
        self._version = version

    def __contains__(self, api_object: ApiObject) -> bool:
        metadata = api_object.metadata
        return metadata.uid in self.uids and int(metadata.resource_version) <= self._version


NOTHING_STANDS: Final = StandingObjects()
