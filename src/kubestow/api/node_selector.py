"""Node selectors of pods, volumes and devices, compiled.

A node selector is a list of terms of which one must match; a term is a list of requirements on the
node's labels and fields which must all match. Compiled forms compare by content, so a mask over all
nodes can be cached under the selector itself, and each requirement can be evaluated once per
distinct label value (`Requirement.matches_value`) instead of once per node.

Invariant: a compiled selector holds only valid terms. Invalid terms never match and remain only as
`errors`, because a pod with one invalid term is still placed where its other terms allow.
Not here: masks over nodes (`plugins`), a StorageClass's `allowedTopologies`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from kubestow.api.labels import (
    Requirement,
    SelectorError,
    equality,
    invalid_value,
    join_errors,
    parse_requirement,
)
from kubestow.api.pod import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
)

FieldOperator = Literal["In", "NotIn"]

NAME_FIELD: Final = "metadata.name"

_CACHED_MAX: Final = 2_048
# Selectors with more requirements and values than this are not kept: one may take megabytes, and
# is shared by few pods.
_KEPT_SIZE_MAX: Final = 256
_LABEL_OPERATORS: Final = '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
_FIELD_OPERATORS: Final = '"In", "NotIn"'


class FieldRequirement(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What a field of the node must, or must not, be."""

    key: str
    operator: FieldOperator
    value: str

    def matches_name(self, name: str) -> bool:
        """Whether a node of that name satisfies the requirement."""
        # Spec 01 §8: the name is the only supported field; all others read as "".
        found = name if self.key == NAME_FIELD else ""
        return (found == self.value) == (self.operator == "In")


class CompiledTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """An AND of requirements, at least one."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return all(requirement.matches(labels) for requirement in self.labels) and (
            self.matches_fields(name)
        )

    def matches_fields(self, name: str) -> bool:
        # Spec 01 §8: without a name the fields are not evaluated, so a volume checked against
        # labels alone passes.
        return not name or all(requirement.matches_name(name) for requirement in self.fields)


class CompiledNodeSelector(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """An OR of terms; without a valid term it matches no node."""

    terms: tuple[CompiledTerm, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def error(self) -> str:
        """The errors of the invalid terms as one text; empty if there are none."""
        return join_errors(self.errors)


class RequiredNodeAffinity(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """All a pod requires of its node's labels and name: `nodeSelector` AND required affinity."""

    equalities: tuple[Requirement, ...] = ()
    selector: CompiledNodeSelector | None = None

    @classmethod
    def of(cls, pod: Pod) -> "RequiredNodeAffinity":
        affinity = pod.spec.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        selector = None if node_affinity is None else node_affinity.required
        if selector is None and not pod.spec.node_selector:
            return ANY_NODE
        equalities = tuple((pod.spec.node_selector or {}).items())
        terms = () if selector is None else selector.node_selector_terms
        if len(equalities) > _KEPT_SIZE_MAX or _are_large(terms):
            return _required.__wrapped__(equalities, selector)
        return _required(equalities, selector)

    @property
    def is_large(self) -> bool:
        """Whether it may take megabytes."""
        size = len(self.equalities)
        for term in () if self.selector is None else self.selector.terms:
            size += len(term.fields) + sum(1 + len(each.values) for each in term.labels)
            if size > _KEPT_SIZE_MAX:
                break
        return size > _KEPT_SIZE_MAX

    @property
    def is_any(self) -> bool:
        """Whether every node matches."""
        return not self.equalities and self.selector is None

    @property
    def error(self) -> str:
        """The errors of the invalid affinity terms as one text; empty if there are none."""
        return "" if self.selector is None else self.selector.error

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return self._matches_equalities(labels) and (
            self.selector is None or self.selector.matches(labels, name)
        )

    def match_error(self, labels: Mapping[str, str], name: str) -> str:
        """The error to report with a mismatch on this node; empty if there is none.

        Spec 01 §8: a `nodeSelector` that does not match ends the test before the terms are read,
        and where one term matches, the errors of the others are not reported.
        """
        if not self.error or not self._matches_equalities(labels):
            return ""
        return "" if self.matches(labels, name) else self.error

    def _matches_equalities(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.equalities)


class WeightedNodeTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    term: CompiledTerm
    weight: int


class PreferredTerms(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The preferred node affinity terms of a pod, each with its weight."""

    terms: tuple[WeightedNodeTerm, ...] = ()

    @classmethod
    def of(cls, terms: Sequence[PreferredSchedulingTerm], *, path: str = "") -> "PreferredTerms":
        """Compile the terms; raise SelectorError if one with an effect is invalid."""
        if _are_large([entry.preference for entry in terms]):
            return _preferred.__wrapped__(tuple(terms), path)
        return _preferred(tuple(terms), path)

    def score(self, labels: Mapping[str, str], name: str) -> int:
        """The sum of the weights of the terms that the node matches."""
        return sum(entry.weight for entry in self.terms if entry.term.matches(labels, name))


ANY_NODE: Final = RequiredNodeAffinity()


def compile_node_selector(
    selector: NodeSelector, *, strict: bool = False, path: str = ""
) -> CompiledNodeSelector:
    """Compile the selector; invalid terms become `errors`, or raise SelectorError if strict.

    `path` leads to the selector inside its object and opens every error text.
    """
    is_large = _are_large(selector.node_selector_terms)
    compiled = (_compile.__wrapped__ if is_large else _compile)(selector, path)
    if strict and compiled.errors:
        raise SelectorError(*compiled.errors)
    return compiled


@lru_cache(_CACHED_MAX)
def _compile(selector: NodeSelector, path: str) -> CompiledNodeSelector:
    terms: list[CompiledTerm] = []
    errors: list[str] = []
    prefix = f"{path}.nodeSelectorTerms" if path else "nodeSelectorTerms"
    for index, term in enumerate(selector.node_selector_terms):
        # Spec 01 §8: an empty term is dropped (matches nothing) but still counts in the index.
        if _is_empty(term):
            continue
        compiled, mistakes = _compile_term(term, f"{prefix}[{index}]")
        errors += mistakes
        if not mistakes:
            terms.append(compiled)
    return CompiledNodeSelector(tuple(terms), tuple(errors))


@lru_cache(_CACHED_MAX)
def _required(
    equalities: tuple[tuple[str, str], ...], selector: NodeSelector | None
) -> RequiredNodeAffinity:
    return RequiredNodeAffinity(
        tuple(equality(key, value) for key, value in sorted(equalities)),
        None if selector is None else compile_node_selector(selector),
    )


@lru_cache(_CACHED_MAX)
def _preferred(terms: tuple[PreferredSchedulingTerm, ...], path: str) -> PreferredTerms:
    entries: list[WeightedNodeTerm] = []
    errors: list[str] = []
    for index, term in enumerate(terms):
        # Spec 05 §2.5: terms that cannot change a score are dropped before they are validated.
        if term.weight == 0 or _is_empty(term.preference):
            continue
        compiled, mistakes = _compile_term(term.preference, f"{path}[{index}]")
        errors += mistakes
        entries.append(WeightedNodeTerm(compiled, term.weight))
    if errors:
        raise SelectorError(*errors)
    return PreferredTerms(tuple(entries))


def _are_large(terms: Sequence[NodeSelectorTerm]) -> bool:
    size = 0
    for term in terms:
        for requirement in (*term.match_expressions, *term.match_fields):
            size += 1 + len(requirement.values or ())
            if size > _KEPT_SIZE_MAX:
                return True
    return False


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _compile_term(term: NodeSelectorTerm, path: str) -> tuple[CompiledTerm, list[str]]:
    """The term as far as it is valid, and all its errors."""
    errors: list[str] = []
    labels: list[Requirement] = []
    fields: list[FieldRequirement] = []
    for index, expression in enumerate(term.match_expressions):
        try:
            labels.append(_label_requirement(expression, f"{path}.matchExpressions[{index}]"))
        except SelectorError as error:
            errors += error.errors
    for index, field in enumerate(term.match_fields):
        try:
            fields.append(_field_requirement(field, f"{path}.matchFields[{index}]"))
        except SelectorError as error:
            errors += error.errors
    return CompiledTerm(tuple(labels), tuple(fields)), errors


def _label_requirement(expression: NodeSelectorRequirement, path: str) -> Requirement:
    operator = expression.operator
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
        raise SelectorError(_unsupported(path, operator, _LABEL_OPERATORS))
    return parse_requirement(expression.key, operator, expression.values, path=path)


def _field_requirement(field: NodeSelectorRequirement, path: str) -> FieldRequirement:
    operator = field.operator
    if operator not in ("In", "NotIn"):
        raise SelectorError(_unsupported(path, operator, _FIELD_OPERATORS))
    if field.values is None or len(field.values) != 1:
        raise SelectorError(invalid_value(f"{path}.values", field.values, "must have one element"))
    return FieldRequirement(field.key, operator, field.values[0])


def _unsupported(path: str, operator: str, supported: str) -> str:
    return f'{path}.operator: Unsupported value: "{operator}": supported values: {supported}'
