"""Static types: the types of expressions before they are evaluated.

`DYN` means "known only at evaluation" and matches every type. `A` and `B` are type variables: any
type, the same one wherever they occur in a signature.
"""

from typing import Final, NamedTuple


class Type(NamedTuple):
    """A type by name, with the types of its parts."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


DYN: Final = Type("dyn")
NULL: Final = Type("null_type")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
DURATION: Final = Type("google.protobuf.Duration")
TYPE: Final = Type("type")
QUANTITY: Final = Type("kubernetes.Quantity")
SEMVER: Final = Type("kubernetes.Semver")
URL: Final = Type("kubernetes.URL")
IP: Final = Type("net.IP")
CIDR: Final = Type("net.CIDR")
FORMAT: Final = Type("kubernetes.NamedFormat")

A: Final = Type("<A>")
B: Final = Type("<B>")

LIST: Final = "list"
MAP: Final = "map"
OPTIONAL: Final = "optional_type"

_VARIABLES: Final = frozenset((A, B))
# Types that accept `null`.
_NULLABLE: Final = frozenset((TIMESTAMP, DURATION, QUANTITY, SEMVER, URL, IP, CIDR, FORMAT))

Bindings = dict[Type, Type]


def list_of(element: Type) -> Type:
    return Type(LIST, (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(MAP, (key, value))


def optional_of(value: Type) -> Type:
    return Type(OPTIONAL, (value,))


def accepts(expected: Type, actual: Type, bindings: Bindings) -> bool:
    """Whether a value of the actual type matches; adds the types of the variables to `bindings`."""
    if expected in _VARIABLES:
        bound = bindings.get(expected)
        if bound is None:
            bindings[expected] = actual
            return True
        if not accepts(bound, actual, {}):
            return False
        bindings[expected] = joined(bound, actual)
        return True
    if DYN in (expected, actual):
        return True
    if actual == NULL and expected in _NULLABLE:
        return True
    return (
        expected.name == actual.name
        and len(expected.params) == len(actual.params)
        and all(
            accepts(part, other, bindings)
            for part, other in zip(expected.params, actual.params, strict=True)
        )
    )


def substituted(kind: Type, bindings: Bindings) -> Type:
    """The type with its variables replaced; one without a binding is dynamic."""
    if kind in _VARIABLES:
        return bindings.get(kind, DYN)
    if not kind.params:
        return kind
    return Type(kind.name, tuple(substituted(part, bindings) for part in kind.params))


def joined(first: Type, second: Type) -> Type:
    """A type that accepts both."""
    if first == second:
        return first
    if first.name == second.name and len(first.params) == len(second.params) > 0:
        return Type(
            first.name,
            tuple(joined(a, b) for a, b in zip(first.params, second.params, strict=True)),
        )
    return DYN
