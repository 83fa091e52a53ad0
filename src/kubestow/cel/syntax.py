"""The syntax tree of an expression.

Operators are calls of functions with the names below, so that checker and evaluator need no special
case for each. The parser expands macros to a `Loop`, a `Bind` or an `OptionalMap`.

Every node has its offset in the source, for error messages.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

ADD: Final = "_+_"
SUBTRACT: Final = "_-_"
MULTIPLY: Final = "_*_"
DIVIDE: Final = "_/_"
MODULO: Final = "_%_"
NEGATE: Final = "-_"
NOT: Final = "!_"
EQUALS: Final = "_==_"
NOT_EQUALS: Final = "_!=_"
LESS: Final = "_<_"
LESS_EQUALS: Final = "_<=_"
GREATER: Final = "_>_"
GREATER_EQUALS: Final = "_>=_"
IN: Final = "@in"
AND: Final = "_&&_"
OR: Final = "_||_"
CONDITIONAL: Final = "_?_:_"
INDEX: Final = "_[_]"
OPTIONAL_INDEX: Final = "_[?_]"
OPTIONAL_SELECT: Final = "_?._"


@dataclass(frozen=True, slots=True)
class Literal:
    offset: int
    value: object


@dataclass(frozen=True, slots=True)
class Ident:
    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; with `is_test` whether the field exists."""

    offset: int
    operand: "Expr"
    field: str
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method (with a target) or an operator."""

    offset: int
    function: str
    args: tuple["Expr", ...]
    target: "Expr | None" = None


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`optional` holds the positions of elements written `?x`."""

    offset: int
    elements: tuple["Expr", ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapLiteral:
    offset: int
    keys: tuple["Expr", ...]
    values: tuple["Expr", ...]
    optional: frozenset[int] = frozenset()


class LoopKind(Enum):
    """What a loop makes of its elements."""

    ALL = auto()
    EXISTS = auto()
    EXISTS_ONE = auto()
    MAP = auto()  # a list of the body's values
    FILTER = auto()  # a list of the elements for which the body is true
    TRANSFORM_MAP = auto()  # a map with the same keys
    TRANSFORM_ENTRIES = auto()  # a map joined from the body's one-entry maps
    SORT_BY = auto()  # the same list, sorted by the body's values


@dataclass(frozen=True, slots=True)
class Loop:
    """An expanded macro over a list or map.

    One variable is the element (of a map: the key), two are index and element (of a map: key and
    value). The body is evaluated only for elements where `condition`, if any, is true.
    """

    offset: int
    kind: LoopKind
    range: "Expr"
    variables: tuple[str, ...]
    body: "Expr"
    condition: "Expr | None" = None


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind`: a name for a value inside the body."""

    offset: int
    variable: str
    value: "Expr"
    body: "Expr"


@dataclass(frozen=True, slots=True)
class OptionalMap:
    """`optMap` and `optFlatMap`: the body gets the value of an optional, if it has one."""

    offset: int
    target: "Expr"
    variable: str
    body: "Expr"
    is_flat: bool


Expr = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Loop | Bind | OptionalMap
