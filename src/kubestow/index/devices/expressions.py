"""What a CEL expression finds out about a device (spec 08 B8).

Compiling is expensive and expressions are few, so programs are kept. Not here: the answers that are
kept (`selectors`), which loads this module with the first expression, as most clusters have none.
"""

from functools import lru_cache
from typing import Any, Final

from kubestow.api.device import DeviceAttribute
from kubestow.cel import CelError, CompileError, Environment, Program, Value
from kubestow.cel.functions import metered, method
from kubestow.cel.library.semvers import Semver, parse_semver
from kubestow.cel.meter import CostError, CostMeter
from kubestow.cel.operators import contains
from kubestow.cel.static_types import (
    BOOL,
    DYN,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    A,
    Type,
    list_of,
    map_of,
)
from kubestow.cel.values import CelList, CelMap, DefaultMap, UInt, equal, is_list, type_name
from kubestow.index.devices.inventory import PublishedDevice

PROGRAMS_MAX: Final = 1024
INCLUDES_MAX: Final = 48  # values of a list that `includes` looks at, as upstream
# The stages at which an expression gives no answer.
COMPILE_ERROR: Final = "CEL compile error: "
RUNTIME_ERROR: Final = "CEL runtime error: "


def _includes(meter: CostMeter, values: CelList, wanted: Value) -> bool:
    if contains(meter, wanted, values[:INCLUDES_MAX]):
        return True
    if len(values) > INCLUDES_MAX:
        text = f"'includes' function cannot be applied to lists longer than {INCLUDES_MAX} values"
        raise CelError(text)
    return False


_SCALARS: Final = (BOOL, INT, STRING, DYN, SEMVER)
_DERIVED_TYPES: Final = (*_SCALARS, *map(list_of, _SCALARS))
_DEVICE: Final = Type("kubernetes.DRADevice")
_ENVIRONMENT: Final = Environment(
    {"device": _DEVICE},
    objects={
        _DEVICE: {
            "driver": STRING,
            "attributes": map_of(STRING, map_of(STRING, DYN)),
            "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
            "allowMultipleAllocations": BOOL,
        }
    },
    functions=(
        metered(method("includes", (list_of(A), A), BOOL, _includes)),
        metered(method("includes", (A, A), BOOL, equal)),
    ),
)


def evaluate(expression: str, published: PublishedDevice, share: float) -> bool | str | None:
    """Whether the expression is true for the device; a text with the stage and the reason if it
    gives no answer.

    `share` is how much of the limit it may cost; None if that is below 1 and not enough.
    """
    program = _program(expression)
    if isinstance(program, CompileError):
        return f"{COMPILE_ERROR}{program}"
    try:
        result = program.evaluate({"device": _cel_value(published)}, share)
        return result if isinstance(result, bool) else f"{RUNTIME_ERROR}{_not_bool(result)}"
    except CelError as error:
        if isinstance(error, CostError) and share < 1:
            return None
        return f"{RUNTIME_ERROR}{error}"


def evaluate_derived(
    expression: str, published: PublishedDevice, share: float
) -> DeviceAttribute | str | None:
    """The attribute that the expression computes of the device; else as `evaluate`."""
    program = _derived_program(expression)
    if isinstance(program, CompileError):
        return f"{COMPILE_ERROR}{program}"
    try:
        return attribute_of(program.evaluate({"device": _cel_value(published)}, share))
    except CelError as error:
        if isinstance(error, CostError) and share < 1:
            return None
        return f"{RUNTIME_ERROR}{error}"


@lru_cache(PROGRAMS_MAX)
def _program(expression: str) -> Program | CompileError:
    program = _compiled(expression)
    if isinstance(program, Program) and program.result_type not in (BOOL, DYN):
        return CompileError(f"must evaluate to bool or the unknown type, not {program.result_type}")
    return program


@lru_cache(PROGRAMS_MAX)
def _derived_program(expression: str) -> Program | CompileError:
    program = _compiled(expression)
    if isinstance(program, Program) and program.result_type not in _DERIVED_TYPES:
        return CompileError(
            "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of "
            f"these scalars, not {program.result_type}"
        )
    return program


def _compiled(expression: str) -> Program | CompileError:
    try:
        return _ENVIRONMENT.compile(expression)
    except CompileError as error:
        return error


def _not_bool(result: Value) -> str:
    kind = type_name(result)
    match result:
        case str():
            why = "unsupported native conversion from string to 'bool'"
        case int():
            why = f"unsupported type conversion from '{kind}' to bool"
        case _:
            why = f"type conversion error from '{kind.rpartition('.')[2]}' to 'bool'"
    return f"CEL result of type {kind} could not be converted to bool: {why}"


# --- A value as an attribute --------------------------------------------------------


def attribute_of(value: Value) -> DeviceAttribute:
    """The attribute that has this value; raises CelError if none can."""
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case int() if type(value) is int:
            return DeviceAttribute(int_value=value)
        case str():
            return DeviceAttribute(string_value=value)
        case Semver():
            return DeviceAttribute(version_value=str(value))
        case _ if is_list(value):
            return _list_attribute(value)
        case _:
            raise CelError(f"unsupported CEL return type: {_go_type(value)}")


def _list_attribute(values: CelList) -> DeviceAttribute:
    if not values:
        return DeviceAttribute(string_values=())
    kind = type(values[0])
    if kind not in _LIST_FIELDS:
        raise CelError(f"unsupported list element type: {_go_type(values[0])}")
    field, name = _LIST_FIELDS[kind]
    for index, value in enumerate(values):
        if type(value) is not kind:
            raise CelError(
                f"expected list element at index {index} to be {name}, got {_go_type(value)}"
            )
    given: Any = tuple(map(str, values)) if kind is Semver else values
    return DeviceAttribute(**{field: given})


# Type of the elements → field of the attribute, and its name in errors.
_LIST_FIELDS: Final[dict[type, tuple[str, str]]] = {
    bool: ("bool_values", "bool"),
    int: ("int_values", "int"),
    str: ("string_values", "string"),
    Semver: ("version_values", "semver"),
}
_GO_TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int64",
    UInt: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    Semver: "semver.Version",
    dict: "map[string]interface {}",
    type(None): "structpb.NullValue",
}


def _go_type(value: Value) -> str:
    return _GO_TYPES.get(type(value)) or type_name(value)


# --- The device as a CEL value ------------------------------------------------------


def _cel_value(published: PublishedDevice) -> Value:
    """The device as a value; raises CelError if some attribute cannot be one."""
    content = published.content
    value = content.cel_value
    if value is None:
        try:
            value = _converted(published)
        except CelError as error:
            value = error
        content.cel_value = value
    if isinstance(value, CelError):
        raise value
    return value


def _converted(published: PublishedDevice) -> Value:
    device, driver = published.device, published.of.spec.driver
    attributes = {
        name: _attribute(name, attribute, allows_lists=published.of.allows_lists)
        for name, attribute in device.attributes.items()
    }
    capacity: dict[str, Value] = {name: entry.value for name, entry in device.capacity.items()}
    return {
        "driver": driver,
        "attributes": _by_domain(attributes, driver),
        "capacity": _by_domain(capacity, driver),
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
    }


def _by_domain(entries: dict[str, Value], driver: str) -> DefaultMap:
    """Domain → id → value. A name without a domain has the driver's; unknown domains are empty."""
    domains: dict[str, CelMap] = {}
    for name, value in entries.items():
        domain, _, identifier = name.rpartition("/")
        domains.setdefault(domain or driver, {})[identifier] = value
    return DefaultMap({**domains}, {})


def _attribute(name: str, attribute: DeviceAttribute, *, allows_lists: bool) -> Value:
    # The bool comes before the int: in Python a bool is an int.
    for value in (attribute.bool_value, attribute.int_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is not None:
        return _version(name, attribute.version_value)
    if allows_lists:
        for values in (attribute.bool_values, attribute.int_values, attribute.string_values):
            if values is not None:
                return values
        if attribute.version_values is not None:
            return tuple(_version(name, version) for version in attribute.version_values)
    raise CelError(f"attribute {name}: unsupported attribute value")


def _version(name: str, text: str) -> Semver:
    try:
        return parse_semver(text)
    except CelError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from error
