"""The result of a look at an upgrade: the data of `-o json`, and of every other form of it."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

UPGRADE_FORMAT: Final = "kubestow.dev/upgrade/v1"


class Effect(StrEnum):
    """What becomes of a pod or a file. Those of BROKEN need work before an upgrade."""

    REFUSED = "refused"  # a gate, a configuration or an object that is not accepted any more
    WAITS = "waits now"
    PLACED = "placed now"
    MOVED = "other node"
    EVICTS = "other victims"
    TEXT = "other text"
    WOKEN = "woken by other events"
    SCORES = "other scores, same node"
    DEVICES = "other devices, same node"  # or another configuration of them
    COMPLETED = "other defaults"
    RETRIED = "tried again at once"
    RENAMED = "other name"
    NOTE = "to know"  # nothing of the cluster is known to change


BROKEN: Final = frozenset((Effect.REFUSED, Effect.WAITS))


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class UpgradeExample(_Part, frozen=True, kw_only=True):
    """One pod: its node or the text of its condition under each version.

    plugins   whose verdicts, scores or registrations differ
    why       of each version what decided between the nodes; empty if no node differs
    """

    pod: str
    effect: Effect
    before: str
    after: str
    plugins: tuple[str, ...] = ()
    why: str = ""


class UpgradeCause(_Part, frozen=True, kw_only=True):
    """Pods that one change concerns.

    change    number of the change, None if none explains the difference
    section   of chapter 12 of the specification
    effects   how many pods each effect has; `pods` is their sum
    examples  the first of them
    """

    change: int | None
    text: str
    section: str
    pods: int
    effects: dict[str, int]
    examples: tuple[UpgradeExample, ...]


class UpgradeFinding(_Part, frozen=True, kw_only=True):
    """Something in a configuration, an object or a file.

    where   the option, the object, or file and line
    """

    effect: Effect
    where: str
    text: str
    change: int | None = None


class UnseenChange(_Part, frozen=True, kw_only=True):
    """A change that no objects show, and why."""

    change: int
    text: str
    section: str
    why: str


class UpgradeReport(_Part, frozen=True, kw_only=True):
    """What is different.

    is_back         the version to go to is the older one: the changes are undone
    is_recording    decisions of a recording were compared, else waiting pods
    compared        how many were decided under both versions; `differing` those with a difference
    left_out        why other waiting pods were not compared
    configuration   gates and configuration; `objects` of the cluster; `files` that were searched
    searched        how many files were
    unseen          changes that are not looked for
    """

    format: str = UPGRADE_FORMAT
    before: str
    after: str
    is_back: bool = False
    is_recording: bool = False
    compared: int
    differing: int
    left_out: tuple[str, ...] = ()
    causes: tuple[UpgradeCause, ...] = ()
    configuration: tuple[UpgradeFinding, ...] = ()
    objects: tuple[UpgradeFinding, ...] = ()
    searched: int = 0
    files: tuple[UpgradeFinding, ...] = ()
    unseen: tuple[UnseenChange, ...] = ()

    def findings(self) -> Iterator[UpgradeFinding]:
        yield from self.configuration
        yield from self.objects
        yield from self.files

    @property
    def is_changed(self) -> bool:
        """Whether anything differs on this cluster."""
        return bool(self.causes) or any(each.effect != Effect.NOTE for each in self.findings())

    @property
    def is_broken(self) -> bool:
        """Whether something is refused, or a pod waits that would be placed before."""
        return any(each.effect in BROKEN for each in self.findings()) or any(
            effect in BROKEN for cause in self.causes for effect in cause.effects
        )
