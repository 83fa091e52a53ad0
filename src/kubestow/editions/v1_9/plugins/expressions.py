"""Node selector expressions as v1.9 parsed them, with its error texts.

Unlike v1.36 (`api.node_selector`), the first error ends the parsing, texts have no path, terms have
no `matchFields`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from kubestow.api.labels import (
    Operator,
    Requirement,
    SelectorError,
    equality,
    label_value_errors,
    parse_int64,
    qualified_name_errors,
)
from kubestow.api.pod import NodeSelectorRequirement

Requirements = tuple[Requirement, ...]

_CACHED_MAX: Final = 4_096


@lru_cache(_CACHED_MAX)
def parse_expressions(expressions: tuple[NodeSelectorRequirement, ...]) -> Requirements | None:
    """The requirements of a term; None for a term without any, which matches no node.

    Raises SelectorError at the first error.
    """
    if not expressions:
        return None
    return tuple(_requirement(expression) for expression in expressions)


def node_selector_requirements(node_selector: Mapping[str, str] | None) -> Requirements:
    """The requirements of `spec.nodeSelector`.

    Spec 05 §17.2: one with a key or value that is no legal label matches every node.
    """
    pairs = tuple(sorted((node_selector or {}).items()))
    if any(qualified_name_errors(key) or label_value_errors(value) for key, value in pairs):
        return ()
    return tuple(equality(key, value) for key, value in pairs)


def _requirement(expression: NodeSelectorRequirement) -> Requirement:
    key, operator, values = expression.key, expression.operator, expression.values or ()
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
        raise SelectorError(f'"{operator}" is not a valid node selector operator')
    if errors := qualified_name_errors(key):
        raise SelectorError(f'invalid label key "{key}": {"; ".join(errors)}')
    threshold = _checked_threshold(operator, values)
    for value in values:
        if errors := label_value_errors(value):
            raise SelectorError(f'invalid label value: "{value}": {"; ".join(errors)}')
    return Requirement(key, operator, frozenset(values), threshold)


def _checked_threshold(operator: Operator, values: Sequence[str]) -> int:
    """The number Gt and Lt compare with; raises for a wrong number of values."""
    match operator:
        case "In" | "NotIn":
            if not values:
                raise SelectorError("for 'in', 'notin' operators, values set can't be empty")
        case "Exists" | "DoesNotExist":
            if values:
                raise SelectorError("values set must be empty for exists and does not exist")
        case "Gt" | "Lt":
            if len(values) != 1:
                raise SelectorError("for 'Gt', 'Lt' operators, exactly one value is required")
            number = parse_int64(values[0])
            if number is None:
                raise SelectorError("for 'Gt', 'Lt' operators, the value must be an integer")
            return number
    return 0
