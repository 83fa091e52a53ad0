"""Labels: their syntax, and selectors that match sets of them.

A `Selector` is an AND of requirements, compiled once from its API form and compared by content, so
that equal selectors of a thousand pods share one object and one cached answer. A `Requirement`
reads the value of a single key and can therefore be evaluated once per distinct value instead of
once per object (`matches_value`); node selectors use it too, with two more operators.

Invariants: a selector's requirements are sorted by key; `NOTHING` (no selector given) and
`EVERYTHING` (an empty selector given) are different, and only the latter is `is_empty`.
Not here: node selectors (`node_selector`), what a selector is used for.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, Literal

import msgspec

from kubestow.api.meta import LabelSelector, LabelSelectorRequirement

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

NAME_LENGTH_MAX: Final = 63
SUBDOMAIN_LENGTH_MAX: Final = 253
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_CACHED_SELECTORS_MAX: Final = 4_096
# Selectors with more labels and values than this are not kept: one may take megabytes.
_KEPT_SIZE_MAX: Final = 256

_NAME_PATTERN: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_PATTERN: Final = f"({_NAME_PATTERN})?"
_DNS_LABEL_PATTERN: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_PATTERN: Final = rf"{_DNS_LABEL_PATTERN}(\.{_DNS_LABEL_PATTERN})*"
_NAME: Final = re.compile(_NAME_PATTERN)
_VALUE: Final = re.compile(_VALUE_PATTERN)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_PATTERN)
# With the limits of length, which count bytes: all allowed characters have one.
_SHORT_NAME: Final = rf"(?=.{{1,{NAME_LENGTH_MAX}}}\Z){_NAME_PATTERN}"
_VALID_VALUE: Final = re.compile(f"({_SHORT_NAME})?")
_VALID_KEY: Final = re.compile(
    rf"((?=[^/]{{1,{SUBDOMAIN_LENGTH_MAX}}}/){_SUBDOMAIN_PATTERN}/)?{_SHORT_NAME}"
)
_INTEGER: Final = re.compile("([+-]?)0*([0-9]+)")

_ALPHABET: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with"
    " an alphanumeric character"
)
_NAME_RULE: Final = (
    f"must {_ALPHABET} (e.g. 'MyName',  or 'my.name',  or '123-abc',"
    f" regex used for validation is '{_NAME_PATTERN}')"
)
_VALUE_RULE: Final = (
    f"a valid label must be an empty string or {_ALPHABET}"
    " (e.g. 'MyValue',  or 'my_value',  or '12345',"
    f" regex used for validation is '{_VALUE_PATTERN}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com',"
    f" regex used for validation is '{_SUBDOMAIN_PATTERN}')"
)
_EMPTY_RULE: Final = "must be non-empty"


class SelectorError(ValueError):
    """A selector that cannot be used. `errors` has the single errors, the text joins them."""

    def __init__(self, *errors: str) -> None:
        super().__init__(join_errors(errors))
        self.errors: tuple[str, ...] = errors


class Requirement(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What one label must be. Equality ("key equals value") is `In` with a single value.

    `threshold` is the number `Gt` and `Lt` compare with; the other operators leave it 0.
    """

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()
    threshold: int = 0

    def matches_value(self, value: str | None) -> bool:
        """Whether a label with this value satisfies the requirement; None means it is missing."""
        match self.operator:
            case "In":
                # None is never among the values, so a missing label fails by itself.
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt":
                number = None if value is None else parse_int64(value)
                return number is not None and number > self.threshold
            case "Lt":
                number = None if value is None else parse_int64(value)
                return number is not None and number < self.threshold

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.matches_value(labels.get(self.key))

    def __str__(self) -> str:
        return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"


class Selector:
    """An AND of requirements over a set of labels, equal to any other with the same content."""

    __slots__ = ("_equalities", "_hash", "_others", "is_empty", "is_nothing", "requirements")

    def __init__(
        self, requirements: Iterable[Requirement] = (), *, is_nothing: bool = False
    ) -> None:
        self.requirements: Final = tuple(sorted(requirements, key=attrgetter("key")))
        self.is_nothing: Final = is_nothing
        # "Empty" as upstream calls it: matches everything. Some callers treat it specially.
        self.is_empty: Final = not self.requirements and not is_nothing
        self._hash = hash((self.requirements, is_nothing))
        # Nearly all requirements are equalities; comparing strings is faster than a set lookup.
        self._equalities = tuple(
            (requirement.key, next(iter(requirement.values)))
            for requirement in self.requirements
            if _is_equality(requirement)
        )
        self._others = tuple(
            requirement for requirement in self.requirements if not _is_equality(requirement)
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.is_nothing:
            return False
        get = labels.get
        for key, value in self._equalities:
            if get(key) != value:
                return False
        # A loop, not all(...): a generator costs more than the comparison itself.
        for requirement in self._others:  # noqa: SIM110
            if not requirement.matches_value(get(requirement.key)):
                return False
        return True

    def narrowed(self, requirements: Iterable[Requirement]) -> "Selector":
        """This selector AND the requirements; `NOTHING` stays `NOTHING`."""
        more = tuple(requirements)
        if self.is_nothing or not more:
            return self
        return Selector((*self.requirements, *more))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Selector):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.requirements == other.requirements
            and self.is_nothing == other.is_nothing
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.is_nothing:
            return "Selector(nothing)"
        text = " AND ".join(str(requirement) for requirement in self.requirements)
        return f"Selector({text or 'everything'})"


NOTHING: Final = Selector(is_nothing=True)
EVERYTHING: Final = Selector()


def parse_label_selector(selector: LabelSelector | None) -> Selector:
    """The selector of an API object, compiled (spec 01 §7.1); raises SelectorError."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    parts = tuple(selector.match_labels.items()), selector.match_expressions
    return (_parse_parts.__wrapped__ if _is_large(*parts) else _parse_parts)(*parts)


def selector_from_map(labels: Mapping[str, str] | None) -> Selector:
    """An AND of equalities with no check of their syntax, as Services and controllers have it."""
    if not labels:
        return EVERYTHING
    pairs = tuple(labels.items())
    is_large = len(pairs) > _KEPT_SIZE_MAX
    return (_selector_from_pairs.__wrapped__ if is_large else _selector_from_pairs)(pairs)


def equality(key: str, value: str) -> Requirement:
    """The requirement that the label has exactly this value; nothing is checked."""
    return Requirement(key, "In", frozenset((value,)))


def parse_requirement(
    key: str, operator: Operator, values: Sequence[str] | None, *, path: str = ""
) -> Requirement:
    """A checked requirement (spec 01 §7.2); raise SelectorError with all that is wrong with it.

    `path` leads to the requirement inside its object. `values` None and empty mean the same and
    differ only in how the error prints them.
    """
    # A pod may have thousands of requirements, nearly always valid ones.
    if not (
        _VALID_KEY.fullmatch(key)
        and all(map(_VALID_VALUE.fullmatch, values or ()))
        and not _count_errors(operator, values, "")
    ):
        errors = [
            *_key_errors(key, _child(path, "key")),
            *_count_errors(operator, values, _child(path, "values")),
            *_value_errors(key, values or (), _child(path, "values")),
        ]
        if errors:
            raise SelectorError(*errors)
    threshold = 0
    if operator in ("Gt", "Lt"):
        assert values, key
        threshold = parse_int64(values[0]) or 0
    return Requirement(key, operator, frozenset(values or ()), threshold)


def parse_int64(text: str) -> int | None:
    """A decimal int64 as labels are read for `Gt` and `Lt`: sign and leading zeros are fine.

    Python's `int` is no substitute: it takes spaces, underscores, other scripts and any size.
    """
    parts = _INTEGER.fullmatch(text)
    # An int64 has at most 19 digits; longer texts need not be converted.
    if parts is None or len(parts[2]) > 19:
        return None
    number = int(parts[1] + parts[2])
    return number if INT64_MIN <= number <= INT64_MAX else None


def qualified_name_errors(name: str) -> list[str]:
    """Why the text is not a label key (`name` or `prefix/name`); empty if it is one."""
    parts = name.split("/")
    if len(parts) > 2:
        rule = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_RULE} {rule}"]
    errors: list[str] = []
    if len(parts) == 2:
        errors += [f"prefix part {error}" for error in _prefix_errors(parts[0])]
    return errors + [f"name part {error}" for error in _name_errors(parts[-1])]


def label_value_errors(value: str) -> list[str]:
    """Why the text is not a label value; empty if it is one."""
    errors = _length_errors(value, NAME_LENGTH_MAX)
    if not _VALUE.fullmatch(value):
        errors.append(_VALUE_RULE)
    return errors


def labels_errors(labels: Mapping[str, str], path: str) -> list[str]:
    """What is wrong with keys and values of labels; empty for nearly all that there are."""
    errors: list[str] = []
    for key, value in labels.items():
        if not (_VALID_KEY.fullmatch(key) and _VALID_VALUE.fullmatch(value)):
            errors += (invalid_value(path, key, each) for each in qualified_name_errors(key))
            errors += (invalid_value(path, value, each) for each in label_value_errors(value))
    return errors


def invalid_value(path: str, value: str | Sequence[str] | None, detail: str) -> str:
    """The text of a field error of kind "Invalid value"; a missing list prints as null."""
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{path}: Invalid value: {shown}: {detail}"


def join_errors(errors: Iterable[str]) -> str:
    """Several errors as one text: equal ones once, brackets only around two or more."""
    distinct = tuple(dict.fromkeys(errors))
    return f"[{', '.join(distinct)}]" if len(distinct) > 1 else "".join(distinct)


def _is_large(
    match_labels: tuple[tuple[str, str], ...],
    match_expressions: tuple[LabelSelectorRequirement, ...],
) -> bool:
    size = len(match_labels) + len(match_expressions)
    return size + sum(len(each.values or ()) for each in match_expressions) > _KEPT_SIZE_MAX


@lru_cache(_CACHED_SELECTORS_MAX)
def _parse_parts(
    match_labels: tuple[tuple[str, str], ...],
    match_expressions: tuple[LabelSelectorRequirement, ...],
) -> Selector:
    requirements = [parse_requirement(key, "In", (value,)) for key, value in match_labels]
    requirements += [_parse_expression(expression) for expression in match_expressions]
    return Selector(requirements)


@lru_cache(_CACHED_SELECTORS_MAX)
def _selector_from_pairs(pairs: tuple[tuple[str, str], ...]) -> Selector:
    return Selector(equality(key, value) for key, value in pairs)


def _parse_expression(expression: LabelSelectorRequirement) -> Requirement:
    operator = expression.operator
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise SelectorError(f'"{operator}" is not a valid label selector operator')
    # Spec 01 §7.2: an empty list prints as null here, given or not.
    return parse_requirement(expression.key, operator, expression.values or None)


def _is_equality(requirement: Requirement) -> bool:
    return requirement.operator == "In" and len(requirement.values) == 1


def _child(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _key_errors(key: str, path: str) -> list[str]:
    errors = qualified_name_errors(key)
    return [invalid_value(path, key, "; ".join(errors))] if errors else []


def _count_errors(operator: Operator, values: Sequence[str] | None, path: str) -> list[str]:
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "for 'in', 'notin' operators, values set can't be empty"
                return [invalid_value(path, values, detail)]
        case "Exists" | "DoesNotExist":
            if values:
                detail = "values set must be empty for exists and does not exist"
                return [invalid_value(path, values, detail)]
        case "Gt" | "Lt":
            return _number_errors(values, path)
    return []


def _number_errors(values: Sequence[str] | None, path: str) -> list[str]:
    rule = "for 'Gt', 'Lt' operators,"
    errors: list[str] = []
    if values is None or len(values) != 1:
        errors.append(invalid_value(path, values, f"{rule} exactly one value is required"))
    errors += [
        invalid_value(f"{path}[{index}]", value, f"{rule} the value must be an integer")
        for index, value in enumerate(values or ())
        if parse_int64(value) is None
    ]
    return errors


def _value_errors(key: str, values: Sequence[str], path: str) -> list[str]:
    return [
        invalid_value(f"{path}[{index}][{key}]", value, "; ".join(errors))
        for index, value in enumerate(values)
        if (errors := label_value_errors(value))
    ]


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return [_EMPTY_RULE]
    errors = _length_errors(prefix, SUBDOMAIN_LENGTH_MAX)
    if not _SUBDOMAIN.fullmatch(prefix):
        errors.append(_SUBDOMAIN_RULE)
    return errors


def _name_errors(name: str) -> list[str]:
    errors = _length_errors(name, NAME_LENGTH_MAX) if name else [_EMPTY_RULE]
    if not _NAME.fullmatch(name):
        errors.append(_NAME_RULE)
    return errors


def _length_errors(text: str, length_max: int) -> list[str]:
    if len(text.encode("utf-8", "surrogatepass")) > length_max:
        return [f"must be no more than {length_max} bytes"]
    return []
