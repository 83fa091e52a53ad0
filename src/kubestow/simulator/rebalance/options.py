"""What a plan may do, and for how long it is looked for."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kubestow.api.labels import Selector

DEFAULT_MOVES: Final = 20
TIME_LIMIT_S: Final = 60.0
# How long a pod takes to start, if its status does not show it.
START_S: Final = 10.0
# Pods of at least this priority stay: those that the system needs.
SYSTEM_PRIORITY: Final = 2_000_000_000


class RebalanceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan may do. By default pods with local volumes and pods of Jobs stay.

    surges             bring up a replacement first where a pod cannot be spared
    excluded_…         pods that stay: by namespace, by labels
    node_selector      only pods on these nodes are moved
    exhaustive_trials  up to this many trials all sequences of steps are tried
    """

    max_moves: int = DEFAULT_MOVES
    time_limit_s: float = TIME_LIMIT_S
    min_gain: float = 0.0
    start_s: float = START_S
    also_local_volumes: bool = False
    also_jobs: bool = False
    surges: bool = False
    max_priority: int = SYSTEM_PRIORITY - 1
    excluded_namespaces: Sequence[str] = ()
    excluded_selectors: Sequence[Selector] = ()
    node_selector: Selector | None = None
    exhaustive_trials: int = 4_000
