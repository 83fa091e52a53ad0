"""The learned policy as a Score plugin: `learning.plugin:LearnedScore` in a configuration."""

from typing import ClassVar

from kubestow.plugin import (
    CycleState,
    Handle,
    IntArray,
    Nodes,
    PluginArgs,
    PluginError,
    PodInfo,
)
from kubestow.plugin.fast import PodReads, Reads, Reuse
from learning.observation import node_columns, pod_columns
from learning.policy import load_weights, ranked, scores_of


class LearnedScoreArgs(PluginArgs, frozen=True, kw_only=True):
    """`weights` is a file that `learning.train` wrote."""

    weights: str


class LearnedScore:
    """Of the nodes that fit, the one that the policy scores best gets 100, the next 99, …"""

    name: ClassVar[str] = "LearnedScore"
    args_type: ClassVar[type[PluginArgs]] = LearnedScoreArgs
    reuse: ClassVar[Reuse] = Reuse(score=Reads.NUMBERS, pod=PodReads.REQUESTS)

    def __init__(self, args: LearnedScoreArgs, handle: Handle) -> None:
        try:
            self._weights = load_weights(args.weights)
        except (OSError, ValueError) as error:
            raise PluginError(f"cannot load the weights: {error}") from error

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        requested = pod.accounted.requested
        pod_seen = pod_columns(requested.milli_cpu, requested.memory)
        return scores_of(self._weights, node_columns(nodes), pod_seen)

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return ranked(scores)
