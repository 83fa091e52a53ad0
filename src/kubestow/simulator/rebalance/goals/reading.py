"""The goal that a text names.

spread   balance   balance=used   empty-nodes   violations
defragment=nvidia.com/gpu            pods like the largest there is
defragment=nvidia.com/gpu:4          pods with 4 of it
defragment=nvidia.com/gpu:1,cpu:8    pods with both
2 * spread + 0.5 * balance           a sum with weights
"""

import math
import re
from collections.abc import Mapping
from typing import Final

from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import amount
from kubestow.close_names import close_hint
from kubestow.errors import InputError
from kubestow.simulator.rebalance.goals.balance import Balance
from kubestow.simulator.rebalance.goals.defragment import Defragment
from kubestow.simulator.rebalance.goals.empty_nodes import EmptyNodes
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.goals.spread import Spread
from kubestow.simulator.rebalance.goals.violations import Violations
from kubestow.simulator.rebalance.goals.weighted import Weighted, WeightedGoal

NAMES: Final = (
    "spread",
    "balance",
    "balance=used",
    "empty-nodes",
    "defragment=RESOURCE",
    "violations",
)
_WEIGHTED: Final = re.compile(r"\s*(?:(?P<weight>[^\s*]+)\s*\*\s*)?(?P<name>\S+)\s*")


def read_goal(
    text: str, prices: Mapping[str, float] | None = None, *, of_used: bool = False
) -> Goal:
    """InputError if the text names no goal; `of_used`: `balance` is of what pods use."""
    parts = [_part(piece, text, prices or {}, of_used) for piece in text.split("+")]
    if len(parts) == 1 and parts[0].weight == 1.0:
        return parts[0].goal
    return Weighted(parts, " + ".join(f"{part.weight:g} * {part.goal.text}" for part in parts))


def _part(piece: str, text: str, prices: Mapping[str, float], of_used: bool) -> WeightedGoal:
    found = _WEIGHTED.fullmatch(piece)
    if found is None:
        raise InputError(
            f'goal "{text}": "{piece.strip()}" is not NAME or WEIGHT * NAME; names are '
            f"{', '.join(NAMES)}"
        )
    return WeightedGoal(_weight(found["weight"], text), _named(found["name"], prices, of_used))


def _weight(text: str | None, goal: str) -> float:
    if text is None:
        return 1.0
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise InputError(f'goal "{goal}": the weight is "{text}", expected a number above 0')
    return weight


def _named(name: str, prices: Mapping[str, float], of_used: bool) -> Goal:
    kind, _, value = name.partition("=")
    match kind, value:
        case "spread", "":
            return Spread()
        case "balance", "":
            return Balance(of_used=of_used)
        case "balance", "requested":
            return Balance()
        case "balance", "used":
            return Balance(of_used=True)
        case "empty-nodes", "":
            return EmptyNodes(prices)
        case "violations", "":
            return Violations()
        case "defragment", _ if value:
            return Defragment(_shape(value), name)
        case "defragment", _:
            raise InputError(
                "goal defragment needs a resource, for example defragment=nvidia.com/gpu"
            )
        case _:
            hint = close_hint(kind, [each.partition("=")[0] for each in NAMES])
            raise InputError(f'there is no goal "{name}"; goals are {", ".join(NAMES)}{hint}')


def _shape(text: str) -> dict[str, int | None]:
    shape: dict[str, int | None] = {}
    for piece in text.split(","):
        name, colon, number = piece.strip().partition(":")
        if not name:
            raise InputError(f'goal "defragment={text}": a resource has no name')
        shape[name] = _amount(name, number, text) if colon else None
    return shape


def _amount(name: str, number: str, text: str) -> int:
    try:
        found = amount(name, parse_quantity(number))
    except ValueError:
        found = 0
    if found <= 0:
        raise InputError(
            f'goal "defragment={text}": the amount of {name} is "{number}", expected a quantity '
            "above 0, such as 4 or 8Gi"
        )
    return found
