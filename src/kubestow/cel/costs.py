"""What calls cost, by upstream's rules for the actual cost (spec 08 B8).

A rule gets the arguments of a call, before the call: what is too expensive is not computed. A call
without a rule costs 1. Texts are charged by their length, ten characters for 1.

Upstream chooses some rules by the static types of the arguments. Here the types are those of the
values, so that `dyn(a) + dyn(b)`, `dyn(a) < dyn(b)` and `x in dyn(list)`, which cost 1 upstream,
cost as much as without `dyn`.
"""

import math
from collections.abc import Callable
from typing import Final

from kubestow.cel import syntax
from kubestow.cel.library.formats import Format
from kubestow.cel.library.net import Network
from kubestow.cel.meter import CostMeter
from kubestow.cel.values import OptionalValue, Value, is_list, is_map

LIST_COST: Final = 10
MAP_COST: Final = 30
_CALL_COST: Final = 1
_TEXT_FACTOR: Final = 0.1
_PATTERN_FACTOR: Final = 0.25
_COMPARISON_FACTOR: Final = 2.0

Rule = Callable[..., int]

_SIZED: Final = frozenset((str, bytes, tuple, dict))
_TEXTS: Final = frozenset((str, bytes))


def size_of(value: Value) -> int:
    if isinstance(value, str | bytes | tuple | dict):
        return len(value)  # pyright: ignore[reportUnknownArgumentType] -- of any elements
    if isinstance(value, OptionalValue) and value.has_value:
        return size_of(value.value)
    return 1


def comparison_cost(_meter: CostMeter, first: Value, second: Value) -> int:
    """The cost of `==` and `!=`."""
    if type(first) in _SIZED or type(first) is OptionalValue:
        return math.ceil(min(size_of(first), size_of(second)) * _TEXT_FACTOR)
    return 1 if size_of(second) else 0


def order_cost(_meter: CostMeter, first: Value, second: Value) -> int:
    """The cost of `<` and the like: texts cost as in `==`."""
    if isinstance(first, str | bytes) and isinstance(second, str | bytes):
        return math.ceil(min(len(first), len(second)) * _TEXT_FACTOR)
    return 1


def addition_cost(_meter: CostMeter, first: Value, second: Value) -> int:
    if isinstance(first, str | bytes) and isinstance(second, str | bytes):
        return math.ceil((len(first) + len(second)) * _TEXT_FACTOR)
    return 1


def membership_cost(_meter: CostMeter, _element: Value, container: Value) -> int:
    return len(container) if is_list(container) else 1


def call_rule(name: str) -> Rule:
    """The cost of a call of the function or method."""
    return _RULES.get(name, _one)


def _one(meter: CostMeter, *args: Value) -> int:
    # What costs the same for every size must not take long for a large one.
    for arg in args:
        if type(arg) in _TEXTS:
            meter.work(2 * size_of(arg))
    return 1


def _constant(_meter: CostMeter, *_args: Value) -> int:
    return 1


def _read(times: int) -> Rule:
    """The rule for reading the first argument as a text this many times."""

    def rule(_meter: CostMeter, first: Value, *_: Value) -> int:
        return math.ceil(size_of(first) * times * _TEXT_FACTOR)

    return rule


def _read_if(kind: type) -> Rule:
    def rule(meter: CostMeter, first: Value, *rest: Value) -> int:
        if type(first) is kind:
            return math.ceil(size_of(first) * _TEXT_FACTOR)
        return _one(meter, first, *rest)

    return rule


def _contains_text(_meter: CostMeter, text: Value, part: Value) -> int:
    return math.ceil(size_of(text) * _TEXT_FACTOR) * math.ceil(size_of(part) * _TEXT_FACTOR)


def _pattern_cost(text_size: int, pattern_size: int) -> int:
    """The cost of matching a pattern; an empty text costs as much as one character."""
    text_cost = math.ceil((1.0 + text_size) * _TEXT_FACTOR)
    return text_cost * math.ceil(pattern_size * _PATTERN_FACTOR)


def _search(_meter: CostMeter, text: Value, pattern: Value, *_: Value) -> int:
    return _pattern_cost(size_of(text), size_of(pattern))


def _traversal(meter: CostMeter, value: Value, *_: Value) -> int:
    """A list with everything in it."""
    if type(value) in _TEXTS:
        return int(size_of(value) * _TEXT_FACTOR)
    if is_list(value):
        meter.work(len(value))
        return sum(_traversal(meter, element) for element in value)
    if is_map(value):
        meter.work(len(value))
        return sum(_traversal(meter, key) + _traversal(meter, value[key]) for key in value)
    return 1


def _join(_meter: CostMeter, texts: Value, separator: Value = "") -> int:
    if not is_list(texts) or not texts:
        return 0
    size = sum(map(size_of, texts)) + size_of(separator) * (len(texts) - 1)
    return math.ceil(size * 2 * _TEXT_FACTOR)


def _contains_address(_meter: CostMeter, network: Value, address: Value) -> int:
    size = _prefix_size(network)
    parsed = math.ceil(len(address) * _TEXT_FACTOR) if isinstance(address, str) else 0
    return math.ceil(2 * size * _TEXT_FACTOR) + parsed


def _contains_network(meter: CostMeter, network: Value, other: Value) -> int:
    masked = math.ceil(_prefix_size(network) * _TEXT_FACTOR) + 1
    return _contains_address(meter, network, other) + masked


def _prefix_size(network: Value) -> int:
    return math.ceil(network.prefix_length / 8) if isinstance(network, Network) else 1


def _validate(_meter: CostMeter, named_format: Value, text: Value) -> int:
    if isinstance(named_format, Format):
        return _pattern_cost(size_of(text), named_format.pattern_size)
    return 1


# --- Lists ------------------------------------------------------------------------------------


def _new_list(size: float) -> int:
    return int(size) + _CALL_COST + LIST_COST


def _same_size(_meter: CostMeter, elements: Value) -> int:
    return _new_list(size_of(elements))


def _range(_meter: CostMeter, count: Value) -> int:
    return _new_list(max(0, count) if isinstance(count, int) else 0)


def _slice(_meter: CostMeter, elements: Value, start: Value, end: Value) -> int:
    if isinstance(start, int) and isinstance(end, int):
        return _new_list(min(max(0, end - start), size_of(elements)))
    return _new_list(0)


def _flatten(_meter: CostMeter, elements: Value, depth: Value = 1) -> int:
    return _new_list(size_of(elements) * max(0, depth) if isinstance(depth, int) else 0)


def each_with_each(_meter: CostMeter, elements: Value) -> int:
    """Every element is compared with every other."""
    if not is_list(elements) or not elements:
        return _new_list(0)
    factor = _COMPARISON_FACTOR + (_TEXT_FACTOR if type(elements[0]) in _TEXTS else 0)
    return _new_list(len(elements) ** 2 * factor)


def _sets(factor: int) -> Rule:
    def rule(_meter: CostMeter, first: Value, second: Value) -> int:
        return _CALL_COST + size_of(first) * size_of(second) * factor

    return rule


def _replace(meter: CostMeter, text: Value, old: Value, new: Value, *_: Value) -> int:
    cost = math.ceil(size_of(text) * 2 * _TEXT_FACTOR)
    if isinstance(text, str) and isinstance(old, str):
        meter.charge(cost)  # counting is no longer than replacing
        meter.make(len(text) + text.count(old) * size_of(new))
        return 0
    return cost


_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("startsWith", "endsWith", "strings.quote", "format"), _read(1)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read(1)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "url"), _read(1)),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _read(1)),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("matches", "find", "findAll"), _search),
    **dict.fromkeys(("size", "type", "dyn", "charAt"), _constant),
    **dict.fromkeys(("first", "last", "or", "orValue", "optional.of"), _constant),
    "bytes": _read_if(str),
    "string": _read_if(bytes),
    "ip": _read_if(str),
    "ip.isCanonical": _read(2),
    "contains": _contains_text,
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _validate,
    "split": _read(2),
    "replace": _replace,
    "join": _join,
    "slice": _slice,
    "reverse": _same_size,
    "flatten": _flatten,
    "lists.range": _range,
    "distinct": each_with_each,
    "sort": each_with_each,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}
OPERATOR_RULES: Final[dict[str, Rule]] = {
    syntax.ADD: addition_cost,
    syntax.EQUALS: comparison_cost,
    syntax.NOT_EQUALS: comparison_cost,
    syntax.LESS: order_cost,
    syntax.LESS_EQUALS: order_cost,
    syntax.GREATER: order_cost,
    syntax.GREATER_EQUALS: order_cost,
    syntax.IN: membership_cost,
}
