"""Tokens to a syntax tree, by recursive descent: one method per level of precedence."""

from collections.abc import Collection
from typing import Final

from kubestow.cel import syntax
from kubestow.cel.errors import CompileError, located
from kubestow.cel.lexer import Token, TokenKind, tokenize
from kubestow.cel.macros import expand
from kubestow.cel.syntax import (
    Call,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
)

DEPTH_MAX: Final = 250

_RELATIONS: Final = {
    "==": syntax.EQUALS,
    "!=": syntax.NOT_EQUALS,
    "<": syntax.LESS,
    "<=": syntax.LESS_EQUALS,
    ">": syntax.GREATER,
    ">=": syntax.GREATER_EQUALS,
}
_SUMS: Final = {"+": syntax.ADD, "-": syntax.SUBTRACT}
_PRODUCTS: Final = {"*": syntax.MULTIPLY, "/": syntax.DIVIDE, "%": syntax.MODULO}
_RESERVED: Final = frozenset(
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
        "loop", "namespace", "package", "return", "var", "void", "while",
    )
)  # fmt: skip


def parse(source: str, namespaced: Collection[str] = ()) -> Expr:
    """The tree of an expression; raises CompileError.

    `namespaced` are functions with a dot in their name, which look like methods of a variable.
    """
    parser = _Parser(source, namespaced)
    tree = parser.expression()
    parser.expect_end()
    return tree


class _Parser:
    def __init__(self, source: str, namespaced: Collection[str]) -> None:
        self._source = source
        self._namespaced = namespaced
        self._tokens = list(tokenize(source))
        self._position = 0
        self._depth = 0

    # --- tokens ---

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    def _is_symbol(self, text: str) -> bool:
        token = self._token
        return token.kind is TokenKind.SYMBOL and token.text == text

    def _accept(self, text: str) -> bool:
        if self._is_symbol(text):
            self._position += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f"'{text}'")

    def expect_end(self) -> None:
        if self._token.kind is not TokenKind.END:
            raise self._unexpected("<EOF>")

    def _unexpected(self, expected: str) -> CompileError:
        token = self._token
        message = f"Syntax error: mismatched input '{token.text}' expecting {expected}"
        return self._error_at(token.offset, message)

    def _error_at(self, offset: int, message: str) -> CompileError:
        return located(self._source, offset, message)

    # --- operators, loosest first ---

    def expression(self) -> Expr:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error_at(
                self._token.offset, f"expression recursion limit exceeded: {DEPTH_MAX}"
            )
        condition = self._or()
        offset = self._token.offset
        if self._accept("?"):
            then = self._or()
            self._expect(":")
            condition = Call(offset, syntax.CONDITIONAL, (condition, then, self.expression()))
        self._depth -= 1
        return condition

    # A chain of && or || is one call with many arguments: a tree of pairs would be as deep as the
    # chain is long.

    def _or(self) -> Expr:
        offset, args = self._token.offset, [self._and()]
        while self._accept("||"):
            args.append(self._and())
        return args[0] if len(args) == 1 else Call(offset, syntax.OR, tuple(args))

    def _and(self) -> Expr:
        offset, args = self._token.offset, [self._relation()]
        while self._accept("&&"):
            args.append(self._relation())
        return args[0] if len(args) == 1 else Call(offset, syntax.AND, tuple(args))

    def _relation(self) -> Expr:
        left = self._sum()
        while True:
            token = self._token
            if token.kind is TokenKind.SYMBOL and token.text in _RELATIONS:
                function = _RELATIONS[token.text]
            elif token.kind is TokenKind.IDENT and token.text == "in":
                function = syntax.IN
            else:
                return left
            self._position += 1
            left = Call(token.offset, function, (left, self._sum()))

    def _sum(self) -> Expr:
        left = self._product()
        while self._token.kind is TokenKind.SYMBOL and self._token.text in _SUMS:
            token = self._next()
            left = Call(token.offset, _SUMS[token.text], (left, self._product()))
        return left

    def _product(self) -> Expr:
        left = self._unary()
        while self._token.kind is TokenKind.SYMBOL and self._token.text in _PRODUCTS:
            token = self._next()
            left = Call(token.offset, _PRODUCTS[token.text], (left, self._unary()))
        return left

    def _unary(self) -> Expr:
        if self._is_symbol("!"):
            offset = self._next().offset
            return Call(offset, syntax.NOT, (self._unary_of("!"),))
        if self._is_symbol("-"):
            offset = self._next().offset
            value = self._token.value
            if type(value) in (int, float):  # a negative literal, not a negation
                return self._members(Literal(offset, -self._next_number()))
            return Call(offset, syntax.NEGATE, (self._unary_of("-"),))
        return self._members(self._primary())

    def _unary_of(self, symbol: str) -> Expr:
        """The operand of a run of equal signs; signs are not mixed."""
        if self._is_symbol(symbol):
            return self._unary()
        return self._members(self._primary())

    def _next(self) -> Token:
        token = self._token
        self._position += 1
        return token

    def _next_number(self) -> int | float:
        value = self._next().value
        assert isinstance(value, int | float)
        return value

    # --- members ---

    def _members(self, operand: Expr) -> Expr:
        while True:
            offset = self._token.offset
            if self._accept("."):
                operand = self._member(operand, offset)
            elif self._accept("["):
                is_optional = self._accept("?")
                index = self.expression()
                self._expect("]")
                function = syntax.OPTIONAL_INDEX if is_optional else syntax.INDEX
                operand = Call(offset, function, (operand, index))
            else:
                return operand

    def _member(self, operand: Expr, offset: int) -> Expr:
        if self._accept("?"):
            field = self._identifier()
            return Call(offset, syntax.OPTIONAL_SELECT, (operand, Literal(offset, field)))
        field = self._identifier()
        if not self._is_symbol("("):
            return Select(offset, operand, field)
        args = self._arguments()
        name = f"{operand.name}.{field}" if isinstance(operand, Ident) else ""
        if name in self._namespaced:
            return Call(offset, name, args)
        return expand(Call(offset, field, args, operand), self._error_at)

    def _identifier(self) -> str:
        token = self._token
        if token.kind is not TokenKind.IDENT:
            raise self._unexpected("IDENTIFIER")
        self._position += 1
        return token.text

    def _arguments(self) -> tuple[Expr, ...]:
        self._expect("(")
        args: list[Expr] = []
        while not self._is_symbol(")"):
            args.append(self.expression())
            if not self._accept(","):
                break
        self._expect(")")
        return tuple(args)

    # --- primaries ---

    def _primary(self) -> Expr:
        token = self._token
        if token.kind is TokenKind.LITERAL:
            return self._literal()
        if self._accept("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._accept("["):
            return self._list(token.offset)
        if self._accept("{"):
            return self._map(token.offset)
        self._accept(".")  # a leading dot means the outermost scope, and no other exists
        return self._name(token.offset)

    def _literal(self) -> Expr:
        token = self._next()
        if token.value == 2**63 and type(token.value) is int:
            raise self._error_at(token.offset, "invalid int literal")
        return Literal(token.offset, token.value)

    def _name(self, offset: int) -> Expr:
        name = self._identifier()
        if name in _RESERVED or name == "in":
            raise self._error_at(offset, f"reserved identifier: {name}")
        if self._is_symbol("("):
            return expand(Call(offset, name, self._arguments()), self._error_at)
        return Ident(offset, name)

    def _list(self, offset: int) -> Expr:
        elements: list[Expr] = []
        optional: set[int] = set()
        while not self._is_symbol("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._accept(","):
                break
        self._expect("]")
        return ListLiteral(offset, tuple(elements), frozenset(optional))

    def _map(self, offset: int) -> Expr:
        keys: list[Expr] = []
        values: list[Expr] = []
        optional: set[int] = set()
        while not self._is_symbol("}"):
            if self._accept("?"):
                optional.add(len(keys))
            keys.append(self.expression())
            self._expect(":")
            values.append(self.expression())
            if not self._accept(","):
                break
        self._expect("}")
        return MapLiteral(offset, tuple(keys), tuple(values), frozenset(optional))
