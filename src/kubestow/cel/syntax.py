"""The syntax tree of an expression.

Operators are calls of functions with the names below, so that checker and evaluator need no case of
their own for each. Macros are expanded by the parser: what is left of them is a `Loop` or a `Bind`.

Every node says at which offset of the source it stands, for error messages.
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
    """`operand.field`; with `is_test` the question whether the field is there."""

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
    """What becomes of the elements a loop runs over."""

    ALL = auto()
    EXISTS = auto()
    EXISTS_ONE = auto()
    MAP = auto()  # to a list of what the body gives
    FILTER = auto()  # to a list of those the condition holds for
    TRANSFORM_MAP = auto()  # to a map with the same keys
    TRANSFORM_ENTRIES = auto()  # to a map made of the one-entry maps the body gives
    SORT_BY = auto()  # to the same list, sorted by what the body gives


@dataclass(frozen=True, slots=True)
class Loop:
    """An expanded macro over a list or map.

    One variable stands for the element (of a map: the key), two for index and element (of a map:
    key and value). `condition`, if any, decides which elements the body sees.
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
    """`optMap` and `optFlatMap`: the body sees the value of an optional, if it has one."""

    offset: int
    target: "Expr"
    variable: str
    body: "Expr"
    is_flat: bool


Expr = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Loop | Bind | OptionalMap
