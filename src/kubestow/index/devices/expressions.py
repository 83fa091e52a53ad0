"""What a CEL expression finds out about a device (spec 08 B8).

Compiling is expensive and expressions are few, so programs are kept. Not here: the answers that are
kept (`selectors`), which loads this module with the first expression, as most clusters have none.
"""

from functools import lru_cache
from typing import Final

from kubestow.api.device import DeviceAttribute
from kubestow.cel import CelError, CompileError, Environment, Program, Value
from kubestow.cel.functions import metered, method
from kubestow.cel.library.semvers import Semver, parse_semver
from kubestow.cel.meter import CostError, CostMeter
from kubestow.cel.operators import contains
from kubestow.cel.static_types import BOOL, DYN, QUANTITY, STRING, A, Type, list_of, map_of
from kubestow.cel.values import CelList, CelMap, DefaultMap, equal, type_name
from kubestow.index.devices.inventory import PublishedDevice

PROGRAMS_MAX: Final = 1024
INCLUDES_MAX: Final = 48  # values of a list that `includes` looks at, as upstream


def _includes(meter: CostMeter, values: CelList, wanted: Value) -> bool:
    if contains(meter, wanted, values[:INCLUDES_MAX]):
        return True
    if len(values) > INCLUDES_MAX:
        text = f"'includes' function cannot be applied to lists longer than {INCLUDES_MAX} values"
        raise CelError(text)
    return False


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
        return f"CEL compile error: {program}"
    try:
        result = program.evaluate({"device": _cel_value(published)}, share)
        return result if isinstance(result, bool) else f"CEL runtime error: {_not_bool(result)}"
    except CelError as error:
        if isinstance(error, CostError) and share < 1:
            return None
        return f"CEL runtime error: {error}"


@lru_cache(PROGRAMS_MAX)
def _program(expression: str) -> Program | CompileError:
    try:
        program = _ENVIRONMENT.compile(expression)
    except CompileError as error:
        return error
    if program.result_type not in (BOOL, DYN):
        return CompileError(f"must evaluate to bool or the unknown type, not {program.result_type}")
    return program


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
