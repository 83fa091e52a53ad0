"""Every place where one operator, constant, result or statement can be changed.

Left out is what tests are not meant to notice: docstrings, annotations, log entries, assertions
and their conditions, `strict` of zip, which is one, the arguments of decorators and of class
statements, and imports for types.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PACKAGE: Final = "src/kubestow"

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[bytes, bytes]]] = {
    ast.Lt: (rb"<", b"<="),
    ast.LtE: (rb"<=", b"<"),
    ast.Gt: (rb">", b">="),
    ast.GtE: (rb">=", b">"),
    ast.Eq: (rb"==", b"!="),
    ast.NotEq: (rb"!=", b"=="),
    ast.Is: (rb"\bis\b", b"is not"),
    ast.IsNot: (rb"\bis\s+not\b", b"is"),
    ast.In: (rb"\bin\b", b"not in"),
    ast.NotIn: (rb"\bnot\s+in\b", b"in"),
}
_OPERATORS: Final[dict[type[ast.operator], tuple[bytes, bytes]]] = {
    ast.Add: (rb"\+", b"-"),
    ast.Sub: (rb"-", b"+"),
    ast.Mult: (rb"\*", b"+"),
    ast.FloorDiv: (rb"//", b"*"),
    ast.Div: (rb"/", b"*"),
    ast.Mod: (rb"%", b"+"),
    ast.BitAnd: (rb"&", b"|"),
    ast.BitOr: (rb"\|", b"&"),
}
_LOGGERS: Final = {"_LOG", "_log", "LOG", "log", "logger", "_logger"}


class Site(NamedTuple):
    """One change of a source file: these bytes become others."""

    path: str  # relative to the repository
    line: int  # of the statement that is changed: what runs it may notice
    kind: str
    start: int
    end: int
    replacement: bytes

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.replacement + source[self.end :]


def sites_of(root: Path, packages: tuple[str, ...]) -> list[Site]:
    """All sites of these packages, in a fixed order. Some of their changes may not compile."""
    found: list[Site] = []
    for package in packages:
        for path in sorted((root / PACKAGE / package).rglob("*.py")):
            found += sites_in(path.relative_to(root).as_posix(), path.read_bytes())
    return found


def sites_in(path: str, source: bytes) -> list[Site]:
    """The sites of one file."""
    return list(_Finder(path, source).found())


def compiles(source: bytes) -> bool:
    try:
        compile(source, "<mutated>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._source = source
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._line = 0
        self._function = ""

    def found(self) -> Iterator[Site]:
        yield from self._in_body(ast.parse(self._source).body)

    # --- statements ------------------------------------------------------------------------------

    def _in_body(self, body: list[ast.stmt]) -> Iterator[Site]:
        for statement in body:
            self._line = statement.lineno
            if not _is_left_out(statement):
                outer = self._function
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._function = statement.name
                yield from self._removed(statement)
                yield from self._in_statement(statement)
                self._function = outer

    def _in_statement(self, statement: ast.stmt) -> Iterator[Site]:
        match statement:
            # None and False are the same to most callers, and constants are changed below.
            case ast.Return(value=None | ast.Constant()):
                pass
            case ast.Return(value=ast.expr() as value):
                yield self._site("return", *self._span(value), b"None")
            case _:
                pass
        for name, value in ast.iter_fields(statement):
            if name in ("annotation", "returns", "decorator_list", "keywords", "bases"):
                continue
            for child in _listed(value):
                if isinstance(child, ast.expr):
                    self._line = statement.lineno
                    yield from self._in_expression(child)
                elif isinstance(child, ast.arguments):
                    for default in (*child.defaults, *child.kw_defaults):
                        if default is not None:
                            yield from self._in_expression(default)
                elif isinstance(child, ast.withitem):
                    yield from self._in_expression(child.context_expr)
                elif isinstance(child, ast.ExceptHandler):
                    yield from self._in_body(child.body)
                elif isinstance(child, ast.match_case):
                    if child.guard is not None:
                        yield from self._in_expression(child.guard)
                    yield from self._in_body(child.body)
            if name in ("body", "orelse", "finalbody"):
                yield from self._in_body(value)

    def _removed(self, statement: ast.stmt) -> Iterator[Site]:
        """A call, a store outside the function or a jump is left out. A plain name is not, nor is
        an attribute in a constructor: without its assignment little can run at all."""
        match statement:
            case (
                ast.Expr(value=ast.Call() | ast.Await())
                | ast.AugAssign()
                | ast.Continue()
                | ast.Break()
                | ast.Delete()
            ):
                pass
            case ast.Assign(targets=[ast.Subscript()]):
                pass
            case ast.Assign(targets=[ast.Attribute()]) if self._function != "__init__":
                pass
            case _:
                return
        yield self._site("removed", *self._span(statement), b"pass")

    # --- expressions -----------------------------------------------------------------------------

    def _in_expression(self, expression: ast.expr) -> Iterator[Site]:
        for node in _walk(expression):
            match node:
                case ast.Compare():
                    operands = [node.left, *node.comparators]
                    for index, operator in enumerate(node.ops):
                        yield from self._between(
                            "comparison", operands[index : index + 2], _COMPARISONS[type(operator)]
                        )
                case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
                    yield from self._between(
                        "arithmetic", [node.left, node.right], _OPERATORS[type(operator)]
                    )
                case ast.BoolOp():
                    change = (rb"\band\b", b"or")
                    if isinstance(node.op, ast.Or):
                        change = (rb"\bor\b", b"and")
                    for index in range(len(node.values) - 1):
                        yield from self._between("and-or", node.values[index : index + 2], change)
                case ast.UnaryOp(op=ast.Not()):
                    start, _ = self._span(node)
                    operand, _ = self._span(node.operand)
                    # A parenthesis between the two belongs to the operand.
                    kept = self._source[start + 3 : operand].lstrip()
                    yield self._site("not", start, operand, kept)
                case ast.Constant(value=bool() as value):
                    yield self._site("constant", *self._span(node), b"%r" % (not value))
                case ast.Constant(value=int() as value):
                    for other in (value + 1, value - 1):
                        yield self._site("constant", *self._span(node), b"(%d)" % other)
                case _:
                    pass

    def _between(
        self, kind: str, operands: list[ast.expr], change: tuple[bytes, bytes]
    ) -> Iterator[Site]:
        _, left_end = self._span(operands[0])
        right_start, _ = self._span(operands[1])
        pattern, replacement = change
        match = re.search(pattern, self._source[left_end:right_start])
        if match:
            start, end = left_end + match.start(), left_end + match.end()
            yield self._site(kind, start, end, replacement)

    def _site(self, kind: str, start: int, end: int, replacement: bytes) -> Site:
        return Site(self._path, self._line, kind, start, end, replacement)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        return start, self._line_starts[node.end_lineno - 1] + node.end_col_offset


def _is_left_out(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__") or _names_a_type(name)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
        case _:
            return False


def _walk(expression: ast.AST) -> Iterator[ast.AST]:
    yield expression
    for child in ast.iter_child_nodes(expression):
        if not (isinstance(child, ast.keyword) and child.arg == "strict"):
            yield from _walk(child)


def _names_a_type(name: str) -> bool:
    return name[0].isupper() and not name.isupper()


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]  # pyright: ignore
