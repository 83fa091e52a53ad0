"""Macros: written like calls, but an argument is a name or is evaluated many times.

Each becomes a node of its own in the syntax tree. A call with the name of a macro but another
number of arguments stays an ordinary call, which the checker then refuses.
"""

from collections.abc import Callable
from typing import Final

from kubestow.cel.errors import CompileError
from kubestow.cel.syntax import (
    Bind,
    Call,
    Expr,
    Ident,
    Loop,
    LoopKind,
    OptionalMap,
    Select,
)

# An error at an offset of the source.
ErrorAt = Callable[[int, str], CompileError]

_LOOPS: Final[dict[str, LoopKind]] = {
    "all": LoopKind.ALL,
    "exists": LoopKind.EXISTS,
    "exists_one": LoopKind.EXISTS_ONE,
    "existsOne": LoopKind.EXISTS_ONE,
    "map": LoopKind.MAP,
    "filter": LoopKind.FILTER,
    "sortBy": LoopKind.SORT_BY,
    "transformList": LoopKind.MAP,
    "transformMap": LoopKind.TRANSFORM_MAP,
    "transformMapEntry": LoopKind.TRANSFORM_ENTRIES,
}
# Per macro: how many of its arguments are variables, for each number of arguments it takes.
_VARIABLE_COUNTS: Final[dict[str, dict[int, int]]] = {
    "all": {2: 1, 3: 2},
    "exists": {2: 1, 3: 2},
    "exists_one": {2: 1, 3: 2},
    "existsOne": {2: 1, 3: 2},
    "map": {2: 1, 3: 1},
    "filter": {2: 1},
    "sortBy": {2: 1},
    "transformList": {3: 2, 4: 2},
    "transformMap": {3: 2, 4: 2},
    "transformMapEntry": {3: 2, 4: 2},
}


def expand(call: Call, error_at: ErrorAt) -> Expr:
    """The node of a macro; any other call unchanged."""
    name, target, args = call.function, call.target, call.args
    if target is None:
        if name == "has" and len(args) == 1:
            return _has(call, error_at)
        return call
    if name == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
        return Bind(call.offset, _variable(args[0], error_at), args[1], args[2])
    if name in ("optMap", "optFlatMap") and len(args) == 2:
        variable = _variable(args[0], error_at)
        return OptionalMap(call.offset, target, variable, args[1], is_flat=name == "optFlatMap")
    count = _VARIABLE_COUNTS.get(name, {}).get(len(args))
    if count is None:
        return call
    variables = tuple(_variable(arg, error_at) for arg in args[:count])
    if len(set(variables)) < count:
        raise error_at(call.offset, f"duplicate variable name: {variables[0]}")
    *conditions, body = args[count:]
    return Loop(
        call.offset,
        _LOOPS[name],
        target,
        variables,
        body,
        conditions[0] if conditions else None,
    )


def _has(call: Call, error_at: ErrorAt) -> Expr:
    arg = call.args[0]
    if not isinstance(arg, Select) or arg.is_test:
        raise error_at(call.offset, "invalid argument to has() macro")
    return Select(arg.offset, arg.operand, arg.field, is_test=True)


def _variable(arg: Expr, error_at: ErrorAt) -> str:
    if not isinstance(arg, Ident):
        raise error_at(arg.offset, "argument must be a simple name")
    return arg.name
