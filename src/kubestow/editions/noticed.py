"""What users notice when one version of Kubernetes is replaced by the next: the types of it.

The data stand beside the edition that brings them (`v1_37/noticed.py`).
"""

from enum import StrEnum
from typing import NamedTuple

from kubestow.editions.edition import Version


class NoticedChange(NamedTuple):
    """One change.

    number      of its row in the table of the specification; `section` has the rules
    is_common   it acts with default gates on ordinary clusters
    unseen      why no objects of a cluster show it; empty if they can
    """

    number: int
    text: str
    section: str
    is_common: bool = False
    unseen: str = ""


class NameKind(StrEnum):
    """What a name that dashboards, alerts and scripts read is."""

    METRIC = "metric"
    LABEL = "label value"
    TEXT = "text"
    CONDITION = "condition"
    API = "API version"
    GATE = "feature gate"


class ChangedName(NamedTuple):
    """A name that one version has and the other has not.

    before, after   regular expressions of a whole name; empty if that version has none
    instead         what stands for it in the newer version; `earlier` in the older one
    number          of the change; 0 if it is none of the table
    """

    kind: NameKind
    before: str
    after: str
    instead: str
    earlier: str
    number: int = 0


class LostApi(NamedTuple):
    """An API version that is gone in the newer version, and the ones that replace it."""

    before: str
    after: tuple[str, ...]
    advice: str


class NoticedChanges(NamedTuple):
    """All that differs between two versions that follow each other."""

    older: Version
    newer: Version
    changes: tuple[NoticedChange, ...]
    names: tuple[ChangedName, ...]
    apis: tuple[LostApi, ...]

    def change(self, number: int) -> NoticedChange | None:
        """The change of this number; None if there is none."""
        return next((each for each in self.changes if each.number == number), None)
