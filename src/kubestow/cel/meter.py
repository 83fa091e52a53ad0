"""What an evaluation may spend.

Upstream limits the cost of an evaluation, which it counts by rules (`costs`). By these rules some
operations are cheap that take long for large values: joining two lists, comparing nested ones.
There upstream's limit of time ends the evaluation, if anything does. Here such operations are
charged as work too, and not by a clock: the same expression gives the same answer everywhere.
"""

from typing import Final

from kubestow.cel.errors import CelError

COST_MAX: Final = 1_000_000
COST_ERROR: Final = "operation cancelled: actual cost limit exceeded"
WORK_MAX: Final = 2_000_000  # units of a few hundred nanoseconds each
# Characters or bytes of one value: as many as concatenation can make within the limit of the cost.
VALUE_SIZE_MAX: Final = 10_000_000


class CostError(CelError):
    """The evaluation is over: unlike other errors, no operator ignores this one."""


class CostMeter:
    """The cost and the work that are left."""

    __slots__ = ("cost_left", "work_left")

    def __init__(self) -> None:
        self.cost_left = COST_MAX
        self.work_left = WORK_MAX

    def limit(self, share: float) -> None:
        """Leave this share of both."""
        self.cost_left = int(self.cost_left * share)
        self.work_left = int(self.work_left * share)

    def charge(self, cost: int) -> None:
        self.cost_left -= cost
        if self.cost_left < 0:
            raise CostError(COST_ERROR)

    def work(self, units: int) -> None:
        self.work_left -= units
        if self.work_left < 0:
            raise CostError(COST_ERROR)

    def make(self, size: int) -> None:
        """Before a text of this size is made."""
        if size > VALUE_SIZE_MAX:
            raise CostError(COST_ERROR)
        self.work(size >> 6)
