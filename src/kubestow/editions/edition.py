"""What an edition is: a version of Kubernetes as data.

Plain values only. `config` makes gates and profiles of them; `editions.rules` has what an edition
computes in another way.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec


class Version(StrEnum):
    """The versions of Kubernetes that have an edition, as users name them; newest first."""

    V1_36 = "v1.36"
    V1_20 = "v1.20"
    V1_17 = "v1.17"
    V1_9 = "v1.9"


class Stage(StrEnum):
    """How far a feature has come. The values are those of the metrics' label."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Gate(NamedTuple):
    """A feature gate. `needs` are gates that have to be on as well."""

    stage: Stage
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()


# Plugin → its weight, 0 if it does not score; in the order of execution.
Weights = Mapping[str, int]


class Edition(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a version of Kubernetes has. There is one object of each.

    gates           the feature gates that a scheduler reads
    other_gates     those of other components, which are accepted and have no effect
    plugins         the default ones, at each extension point that they have
    gated_plugins   gate → default plugins that it adds, after the others
    filters, scores the default plugins where extension points were listed one by one
    metric_names    metric → its name in this edition; empty if the edition does not have it
    has_plugins     False for a scheduler that is another one altogether
    """

    version: Version
    gates: Mapping[str, Gate]
    other_gates: Mapping[str, Gate] = {}
    plugins: Weights = {}
    gated_plugins: Mapping[str, Weights] = {}
    filters: tuple[str, ...] = ()
    scores: Weights = {}
    metric_names: Mapping[str, str] = {}
    has_plugins: bool = True

    @property
    def is_modern(self) -> bool:
        """Whether its gates, profiles and flags are read as those of the core. Others have few
        gates, a Policy and flags of their own; the core runs with its defaults under them."""
        return bool(self.plugins)
