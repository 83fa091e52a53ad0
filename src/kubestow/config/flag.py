"""What a command-line flag is, and the headings of the usage."""

from enum import StrEnum
from typing import NamedTuple

from kubestow.config.flag_kinds import FlagKind, FlagValue


class Section(StrEnum):
    """The headings of the usage, in this order."""

    MISC = "Misc"
    SECURE_SERVING = "Secure serving"
    AUTHENTICATION = "Authentication"
    AUTHORIZATION = "Authorization"
    DEPRECATED = "Deprecated"
    LEADER_ELECTION = "Leader election"
    FEATURE_GATE = "Feature gate"
    METRICS = "Metrics"
    LOGS = "Logs"
    OLDER = "Older schedulers"
    GLOBAL = "Global"


class Flag(NamedTuple):
    section: Section
    name: str
    kind: FlagKind
    default: FlagValue
    help: str
    shorthand: str = ""
