"""The parts of a recorded decision that are compared, as the command line names them.

Apart from `conformance`: the help of the command lists them without loading a scheduler.
"""

from typing import Final

PODS: Final = "pods"
CLUSTER: Final = "cluster"  # node order, plugin lists, contents of nodes, requests of the pod
PRE_FILTER: Final = "prefilter"
VERDICTS: Final = "verdicts"  # per node: of all filters together, and of each filter on its own
SCORES: Final = "scores"
CHOICES: Final = "choices"
RESERVE: Final = "reserve"
POST_FILTER: Final = "postfilter"
MESSAGES: Final = "messages"
DEVICES: Final = "devices"
QUEUE: Final = "queue"  # whole runs: which pod is tried, and where all others are afterwards
WRITES: Final = "writes"  # whole runs: what is written to the API
EVENTS: Final = "events"
PARTS: Final = (
    CLUSTER,
    PRE_FILTER,
    VERDICTS,
    SCORES,
    CHOICES,
    RESERVE,
    POST_FILTER,
    MESSAGES,
    DEVICES,
    QUEUE,
    WRITES,
    EVENTS,
)
