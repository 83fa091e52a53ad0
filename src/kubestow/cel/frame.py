"""One evaluation of a compiled expression."""

from collections.abc import Callable, Mapping

from kubestow.cel.meter import CostMeter
from kubestow.cel.operators import no_overload
from kubestow.cel.values import OptionalValue, Value


class Frame(CostMeter):
    """The values of the variables, and what the evaluation may still spend."""

    __slots__ = ("variables",)

    def __init__(self, variables: Mapping[str, Value]) -> None:
        super().__init__()
        self.variables = dict(variables)


Run = Callable[[Frame], Value]


def as_bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    raise no_overload()


def unwrapped(value: Value) -> OptionalValue:
    if isinstance(value, OptionalValue):
        return value
    raise no_overload()
