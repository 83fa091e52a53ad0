"""The scheduler as an environment: one step places one pod.

    pods arrive → the filters of the profile say where the next one fits → the action names the node
                                      └─ nowhere: the pod is refused, and the next one is asked for

A node fits if the scheduler itself says so: filters, scores and the choice between equal scores are
those of the configured profile, on a cluster that stands still between two steps.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kubestow import FrozenDecision, LoadedCluster, load_cluster
from kubestow.engine.select_host import PreorderSelector
from learning.observation import NODE_COLUMNS, POD_COLUMNS, node_columns, pod_columns
from learning.workload import MIB, Amounts, Arrival, Episode, Workload, share, total

Observation = dict[str, npt.NDArray[np.float64]]


class Step(NamedTuple):
    """What one action led to.

    placed     the pod, if it was placed
    refused    pods that fit nowhere, up to the next one that fits
    capacity   what all nodes offer together
    """

    placed: Arrival | None
    refused: tuple[Arrival, ...]
    capacity: Amounts


Reward = Callable[[Step], float]


def reward_utilisation(step: Step) -> float:
    """The share of the cluster that the pod takes."""
    return share(step.placed.requests, step.capacity) if step.placed else 0.0


def reward_placed(step: Step) -> float:
    """One for each pod, of any size."""
    return float(step.placed is not None)


def reward_refused(step: Step) -> float:
    """Minus the share of the cluster that refused pods asked for."""
    return -sum(share(arrival.requests, step.capacity) for arrival in step.refused)


REWARDS: Mapping[str, Reward] = {
    "utilisation": reward_utilisation,
    "placed": reward_placed,
    "refused": reward_refused,
}


class SchedulingEnv(gymnasium.Env[Observation, Any]):
    """Places the pods of one episode after the other; the seed of `reset` makes the episode.

    action "node"     the row of the node. If the pod does not fit there, it is left out without a
                      reward: `info["action_mask"]` says where it fits
    action "scores"   a score from 0 to 1 for each node: the scheduler takes the best on which the
                      pod fits, and of equal ones that which it would take of equal totals

    The observation has the columns of each node and those of the next pod (`observation`). `info`
    also has `choice`, the row that the profile itself chooses, -1 at the end.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - the type of the base class

    def __init__(
        self,
        *,
        workload: Workload | None = None,
        action: Literal["node", "scores"] = "node",
        reward: str | Reward = "utilisation",
        config: str | Path | None = None,
    ) -> None:
        """`config` is a file with a KubeSchedulerConfiguration, as `kubestow simulate` takes it."""
        self.workload = workload or Workload()
        self._reward = REWARDS[reward] if isinstance(reward, str) else reward
        self._config = config
        self._takes_scores = action == "scores"
        self._selector = PreorderSelector()
        count = self.workload.node_count
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(0.0, 1.0, (count, len(NODE_COLUMNS)), np.float64),
                "pod": spaces.Box(0.0, 1.0, (len(POD_COLUMNS),), np.float64),
            }
        )
        self.action_space = (
            spaces.Box(0.0, 1.0, (count,), np.float64)
            if self._takes_scores
            else spaces.Discrete(count)
        )

    # --- Gymnasium ---

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.episode: Episode = self.workload.episode(self.np_random)
        self._cluster: LoadedCluster = load_cluster(*self.episode.manifests(), config=self._config)
        self._names = self._cluster.nodes
        self._capacity = total(self.episode.nodes)
        self._waiting = list(reversed(self.episode.arrivals))
        self.placements: dict[str, str] = {}
        self._find_next()
        return self.observation, self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        assert self.next_pod is not None, "the episode has ended; call reset"
        row = self._row_of_scores(action) if self._takes_scores else int(action)
        arrival = self.next_pod
        placed = arrival if self._mask[row] else None
        if placed:
            self._cluster.assign(arrival.name, self._names[row])
            self.placements[arrival.name] = self._names[row]
        refused = self._find_next()
        reward = self._reward(Step(placed, refused, self._capacity))
        return self.observation, reward, self.next_pod is None, False, self._info()

    # --- the next pod ---

    def _find_next(self) -> tuple[Arrival, ...]:
        """Go on to the next pod that fits somewhere; returns those before it."""
        refused: list[Arrival] = []
        self.next_pod: Arrival | None = None
        self._decision: FrozenDecision | None = None
        self._mask = np.zeros(len(self._names), np.int8)
        while self._waiting:
            arrival = self._waiting.pop()
            decision = self._cluster.decide(arrival.name)
            if decision.node:
                self.next_pod, self._decision = arrival, decision
                self._mask[decision.feasible.rows] = 1
                break
            refused.append(arrival)
        return tuple(refused)

    def _row_of_scores(self, scores: npt.NDArray[np.float64]) -> int:
        """The engine's choice among the feasible nodes, in the order in which it found them."""
        assert self._decision is not None
        rows = self._decision.feasible.rows
        _, totals = np.unique(scores[rows], return_inverse=True)
        return int(rows[self._selector.select(totals.astype(np.int64))])

    # --- what is seen ---

    @property
    def observation(self) -> Observation:
        requests = self.next_pod.requests if self.next_pod else Amounts(0, 0)
        return {
            "nodes": node_columns(self._cluster.columns),
            "pod": pod_columns(requests.cpu_milli, requests.memory_mib * MIB),
        }

    def _info(self) -> dict[str, Any]:
        choice = self._names.index(self._decision.node) if self._decision else -1
        return {"action_mask": self._mask, "choice": choice}
