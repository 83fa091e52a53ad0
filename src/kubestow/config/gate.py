"""What a feature gate is: how far a feature has come, and whether it can be switched."""

from enum import StrEnum
from typing import NamedTuple


class Stage(StrEnum):
    """The values are those of the metrics' label."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Gate(NamedTuple):
    """`needs` are gates that have to be on as well."""

    stage: Stage
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()
