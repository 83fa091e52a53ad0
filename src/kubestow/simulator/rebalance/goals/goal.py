"""What every goal has: a figure, which follows each pod that is taken off a node or put on one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final

from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.ground import Ground

# Figures that differ by less are equal: sums of decimal fractions are not exact.
TOLERANCE: Final = 1e-9


class Goal(ABC):
    """A figure over all pods and nodes. `start` counts what is there; then it follows.

    text            as the user writes it
    unit            what the figure counts, for people
    is_more_better  whether a larger figure is better
    clears_nodes    whether taking all pods off a node is what makes it better
    closes_nodes    whether nodes without pods are to stay so, and are closed to others
    """

    text: str
    unit: str
    is_more_better: ClassVar[bool] = False
    clears_nodes: bool = False
    closes_nodes: bool = False

    @abstractmethod
    def start(self, ground: Ground) -> None:
        """Count the cluster as it is; raises InputError if the goal makes no sense there."""

    @abstractmethod
    def take(self, pod: PodInfo, row: int) -> None:
        """The pod is no longer on the node of this row."""

    @abstractmethod
    def put(self, pod: PodInfo, row: int) -> None:
        """The pod is on the node of this row; the exact inverse of `take`."""

    @abstractmethod
    def figure(self) -> float:
        """The figure of the cluster as it is now."""

    def cost(self) -> float:
        """The figure as a number that gets smaller as it gets better."""
        return -self.figure() if self.is_more_better else self.figure()

    def tendency(self) -> float:
        """Among equal figures: smaller where a better figure is nearer."""
        return 0.0

    def hinders(self, pod: PodInfo) -> bool:
        """Whether a pod keeps its node from being cleared."""
        return False

    @abstractmethod
    def pressure(self, pod: PodInfo, row: int) -> float:
        """How much evicting a pod may help; 0 or less if it hardly can."""

    @abstractmethod
    def rows(self) -> Iterator[int]:
        """Nodes whose pods should be tried, the most promising first."""
