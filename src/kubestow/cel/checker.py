"""Checks the types in an expression and finds the type of its value, before it runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubestow.cel import syntax
from kubestow.cel.errors import CompileError, located
from kubestow.cel.functions import Function, FunctionTable
from kubestow.cel.static_types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    LIST,
    MAP,
    NULL,
    OPTIONAL,
    STRING,
    TYPE,
    UINT,
    Type,
    accepts,
    joined,
    list_of,
    map_of,
    optional_of,
)
from kubestow.cel.syntax import (
    Bind,
    Call,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    Loop,
    LoopKind,
    MapLiteral,
    OptionalMap,
    Select,
)
from kubestow.cel.values import UInt

# The fields of each kind of object.
Objects = Mapping[Type, Mapping[str, Type]]

TYPE_NAMES: Final = frozenset(
    ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
)
_LITERALS: Final[dict[type, Type]] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
}
_CONTAINER: Final = "(in container '')"
# The only function that takes a list of mixed types.
_FORMAT: Final = "format"


class Checker:
    """Finds the type of one expression."""

    def __init__(
        self, source: str, table: FunctionTable, variables: Mapping[str, Type], objects: Objects
    ) -> None:
        self._source = source
        self._table = table
        self._scope = dict(variables)
        self._objects = objects

    def check(self, expr: Expr) -> Type:
        """The type of the expression; raises CompileError."""
        match expr:
            case Literal():
                return _LITERALS[type(expr.value)]
            case Ident():
                return self._ident(expr)
            case Select():
                selected = self._select(expr.offset, self.check(expr.operand), expr.field)
                return BOOL if expr.is_test else selected
            case Call():
                return self._call(expr)
            case ListLiteral():
                return list_of(self._common(expr.elements, expr.optional))
            case MapLiteral():
                keys = self._common(expr.keys, ())
                return map_of(keys, self._common(expr.values, expr.optional))
            case Loop():
                return self._loop(expr)
            case Bind():
                return self._inside({expr.variable: self.check(expr.value)}, expr.body)
            case OptionalMap():
                return self._optional_map(expr)

    def _error(self, offset: int, message: str) -> CompileError:
        return located(self._source, offset, message)

    def _inside(self, variables: Mapping[str, Type], body: Expr) -> Type:
        outer = self._scope
        self._scope = {**outer, **variables}
        result = self.check(body)
        self._scope = outer
        return result

    # --- names and fields ---

    def _ident(self, expr: Ident) -> Type:
        found = self._scope.get(expr.name)
        if found is not None:
            return found
        if expr.name in TYPE_NAMES:
            return TYPE
        raise self._error(expr.offset, f"undeclared reference to '{expr.name}' {_CONTAINER}")

    def _select(self, offset: int, operand: Type, field: str) -> Type:
        if operand == DYN:
            return DYN
        if operand.name == MAP:
            return operand.params[1]
        if operand.name == OPTIONAL:
            inner = self._select(offset, operand.params[0], field)
            return inner if inner.name == OPTIONAL else optional_of(inner)
        fields = self._objects.get(operand)
        if fields is None:
            raise self._error(offset, f"type '{operand}' does not support field selection")
        if field not in fields:
            raise self._error(offset, f"undefined field '{field}'")
        return fields[field]

    # --- calls ---

    def _call(self, call: Call) -> Type:
        if call.function == syntax.OPTIONAL_SELECT:
            return self._optional_select(call)
        args = [self._argument(call, arg) for arg in call.args]
        match call.function:
            case syntax.AND | syntax.OR | syntax.NOT:
                return self._logic(call, args)
            case syntax.CONDITIONAL:
                return self._conditional(call, args)
            case _ if call.target is None:
                entry = self._table.functions.get(call.function)
                shown = f"({_listed(args)})"
            case _:
                target = self.check(call.target)
                entry = self._table.methods.get(call.function)
                shown = f"{target}.({_listed(args)})"
                args = [target, *args]
        return self._resolve(call, entry, args, shown)

    def _argument(self, call: Call, arg: Expr) -> Type:
        if call.function == _FORMAT and isinstance(arg, ListLiteral):
            for element in arg.elements:
                self.check(element)
            return list_of(DYN)
        return self.check(arg)

    def _resolve(
        self, call: Call, entry: Function | None, args: Sequence[Type], shown: str
    ) -> Type:
        if entry is None:
            message = f"undeclared reference to '{call.function}' {_CONTAINER}"
            raise self._error(call.offset, message)
        result = entry.result_type(args)
        if result is None:
            raise self._no_match(call, shown)
        return result

    def _no_match(self, call: Call, shown: str) -> CompileError:
        return self._error(
            call.offset, f"found no matching overload for '{call.function}' applied to '{shown}'"
        )

    def _logic(self, call: Call, args: Sequence[Type]) -> Type:
        if all(arg in (BOOL, DYN) for arg in args):
            return BOOL
        raise self._no_match(call, f"({_listed(args)})")

    def _conditional(self, call: Call, args: Sequence[Type]) -> Type:
        condition, first, second = args
        if condition not in (BOOL, DYN) or not accepts(first, second, {}):
            raise self._no_match(call, f"({_listed(args)})")
        return joined(first, second)

    def _optional_select(self, call: Call) -> Type:
        operand, field = call.args
        assert isinstance(field, Literal)
        result = self._select(call.offset, self.check(operand), str(field.value))
        return result if result.name == OPTIONAL else optional_of(result)

    # --- literals and loops ---

    def _common(self, elements: Sequence[Expr], optional: Iterable[int]) -> Type:
        """The type that all elements have: lists and maps do not mix types."""
        common: Type | None = None
        for position, element in enumerate(elements):
            kind = self.check(element)
            if position in optional:
                if kind != DYN and kind.name != OPTIONAL:
                    message = f"expected type 'optional_type' but found '{kind}'"
                    raise self._error(element.offset, message)
                kind = kind.params[0] if kind.params else DYN
            if common is not None and not accepts(common, kind, {}):
                message = f"expected type '{common}' but found '{kind}'"
                raise self._error(element.offset, message)
            common = kind if common is None else joined(common, kind)
        return DYN if common is None else common

    def _loop(self, loop: Loop) -> Type:
        kind = self.check(loop.range)
        variables = self._loop_variables(loop, kind)
        scope = dict(zip(loop.variables, variables, strict=True))
        if loop.condition is not None:
            self._require_bool(loop.condition, self._inside(scope, loop.condition))
        body = self._inside(scope, loop.body)
        match loop.kind:
            case LoopKind.ALL | LoopKind.EXISTS | LoopKind.EXISTS_ONE:
                self._require_bool(loop.body, body)
                return BOOL
            case LoopKind.FILTER:
                self._require_bool(loop.body, body)
                return list_of(variables[0])
            case LoopKind.MAP:
                return list_of(body)
            case LoopKind.TRANSFORM_MAP:
                return map_of(variables[0], body)
            case LoopKind.TRANSFORM_ENTRIES:
                return body if body.name == MAP else map_of(DYN, DYN)
            case LoopKind.SORT_BY:
                return list_of(variables[0])

    def _loop_variables(self, loop: Loop, kind: Type) -> tuple[Type, ...]:
        if kind.name == LIST:
            found = (kind.params[0],) if len(loop.variables) == 1 else (INT, kind.params[0])
        elif kind.name == MAP:
            found = kind.params[: len(loop.variables)]
        elif kind == DYN:
            found = (DYN,) * len(loop.variables)
        else:
            message = (
                f"expression of type '{kind}' cannot be range of a comprehension "
                "(must be list, map, or dynamic)"
            )
            raise self._error(loop.range.offset, message)
        return found

    def _require_bool(self, expr: Expr, kind: Type) -> None:
        if kind not in (BOOL, DYN):
            raise self._error(expr.offset, f"expected type 'bool' but found '{kind}'")

    def _optional_map(self, expr: OptionalMap) -> Type:
        target = self.check(expr.target)
        if target.name != OPTIONAL and target != DYN:
            message = f"expected type 'optional_type' but found '{target}'"
            raise self._error(expr.offset, message)
        inner = target.params[0] if target.params else DYN
        body = self._inside({expr.variable: inner}, expr.body)
        return body if expr.is_flat else optional_of(body)


def _listed(args: Iterable[Type]) -> str:
    return ", ".join(map(str, args))
