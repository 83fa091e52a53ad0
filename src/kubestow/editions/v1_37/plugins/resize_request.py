"""What a deferred resize needs beyond what its node counts for the pod already (spec 12 §11)."""

from kubestow.api.resources import Resources, amount_of
from kubestow.arrays import IntArray
from kubestow.index.nodes import Nodes
from kubestow.plugins.node_resources_fit.shortage import UNRESOLVABLE, Demand, FitRequest


class ResizeRequest(FitRequest):
    """A request of which a part is there.

    A basic resource that the pod requests is compared also if nothing more is needed of it: the
    node may be overcommitted by the resize itself. Of others such a part is left out.
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: FitRequest, counted: Resources) -> None:
        scalars = [_less(demand, counted) for demand in whole.scalars]
        super().__init__(
            [
                None if demand is None else _less(demand, counted).amount
                for demand in whole.basic_demands
            ],
            tuple(demand for demand in scalars if demand.amount),
        )
        self._whole = whole

    def with_unresolvable(self, codes: IntArray, nodes: Nodes) -> IntArray:
        """Mark the nodes that have less than the whole request: evicting pods would not help."""
        for demand in self._whole.demands:
            column = nodes.resource_column(demand.name)
            if column is not None:
                is_beyond = nodes.allocatable(column) < demand.amount
                is_short = codes >> demand.bit & 1 != 0
                codes = codes | (is_beyond & is_short) * UNRESOLVABLE
        return codes


def _less(demand: Demand, counted: Resources) -> Demand:
    return demand._replace(amount=max(0, demand.amount - amount_of(demand.name, counted)))
