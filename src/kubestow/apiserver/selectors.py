"""Which objects a list or a watch selects: by fields, by labels, by namespace.

Both selectors come as the text of a query parameter (`status.phase!=Failed`, `app in (web,api)`).
They are parsed once and then evaluated for every object written, so a selector that cannot exclude
anything is None and costs nothing.

Not here: selectors inside objects, such as a service's or an affinity term's (`api.labels`).
"""

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple

from kubestow.api.labels import Operator, Requirement, Selector, SelectorError, parse_requirement
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.apiserver.refusals import bad_request
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import as_object
from kubestow.cluster.resources import ApiResource


class Selection:
    """The objects of a resource that a request selects. Immutable."""

    __slots__ = ("fields", "is_everything", "labels", "left_out", "namespace")

    def __init__(
        self,
        *,
        namespace: str = "",
        fields: "FieldSelector | None" = None,
        labels: Selector | None = None,
    ) -> None:
        """An empty namespace means all of them."""
        self.namespace: Final = namespace
        self.fields: Final = fields
        self.labels: Final = None if labels is None or labels.is_empty else labels
        self.is_everything: Final = not namespace and fields is None and self.labels is None
        # If all it does is to leave out some texts of one typed field, as that of a scheduler does
        # with pods that have ended: that field, and these texts.
        self.left_out: tuple[Callable[[ApiObject], str], frozenset[str]] | None = None
        if fields is not None and not namespace and self.labels is None:
            self.left_out = _left_out_by(fields)

    def matches(self, document: JsonObject) -> bool:
        metadata: JsonObject = document["metadata"]
        if self.namespace and metadata.get("namespace", "") != self.namespace:
            return False
        if self.fields is not None and not self.fields.matches(document):
            return False
        return self.labels is None or self.labels.matches(as_object(metadata.get("labels")))

    def selects(self, stored: StoredObject) -> bool:
        """Whether the object matches; its document is not made if its typed struct suffices."""
        typed, fields = stored.known_typed, self.fields
        if typed is None or (fields is not None and not fields.is_typed):
            return self.matches(stored.document)
        if fields is not None:
            # A plain loop without further functions, as that over documents.
            for _, wanted, excluded, read in fields.requirements:
                assert read is not None
                text = read(typed)
                if text in excluded or (wanted is not None and text != wanted):
                    return False
        metadata = typed.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        return self.labels is None or self.labels.matches(metadata.labels)


EVERYTHING: Final = Selection()


def parse_selection(
    resource: ApiResource,
    *,
    namespace: str = "",
    field_selector: str = "",
    label_selector: str = "",
) -> Selection:
    """The selection of a request's parameters; 400 if they are invalid."""
    if not namespace and not field_selector and not label_selector:
        return EVERYTHING
    return Selection(
        namespace=namespace,
        fields=parse_field_selector(resource, field_selector),
        labels=parse_label_query(label_selector),
    )


class FieldTerm(NamedTuple):
    """The text one field must have (if not None), and the texts it must not have."""

    path: tuple[str, ...]
    wanted: str | None
    excluded: frozenset[str]
    # The field of the typed struct, if that is a text there as well.
    read_typed: Callable[[ApiObject], str] | None = None


class FieldSelector:
    """An AND of requirements, one for each field."""

    __slots__ = ("is_typed", "requirements")

    def __init__(self, requirements: tuple[FieldTerm, ...]) -> None:
        self.requirements: Final = requirements
        self.is_typed: Final = all(one.read_typed is not None for one in requirements)

    def matches(self, document: JsonObject) -> bool:
        # Plain loops without further functions: every event of every pod passes here.
        for path, wanted, excluded, _ in self.requirements:
            value: Any = document
            for step in path:
                # No isinstance: it is a call, and JSON makes no other kind of dict.
                value = value.get(step) if value.__class__ is dict else None
            text: str = value if value.__class__ is str else _text_of(value, path)
            if text in excluded or (wanted is not None and text != wanted):
                return False
        return True


def _left_out_by(
    fields: FieldSelector,
) -> tuple[Callable[[ApiObject], str], frozenset[str]] | None:
    if len(fields.requirements) != 1:
        return None
    _, wanted, excluded, read = fields.requirements[0]
    return None if wanted is not None or read is None else (read, excluded)


# The selectable fields of an API server, besides metadata.name and metadata.namespace.
_SELECTABLE: Final[dict[str, frozenset[str]]] = {
    "pods": frozenset(
        (
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
            "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
        )
    ),
    "nodes": frozenset(("spec.unschedulable",)),
    "namespaces": frozenset(("status.phase",)),
    "secrets": frozenset(("type",)),
    "services": frozenset(("spec.clusterIP", "spec.type")),
    "replicationcontrollers": frozenset(("status.replicas",)),
    "certificatesigningrequests.certificates.k8s.io": frozenset(("spec.signerName",)),
    "replicasets.apps": frozenset(("status.replicas",)),
    "jobs.batch": frozenset(("status.successful",)),
    "resourceslices.resource.k8s.io": frozenset(("spec.nodeName", "spec.driver")),
    "events.events.k8s.io": frozenset(
        (
            "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
            "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
            "reason", "reportingController", "type",
        )
    ),
}  # fmt: skip
# Texts of the typed structs, which are empty where a document has none.
_TYPED_TEXTS: Final[dict[str, dict[str, str]]] = {
    "pods": {
        "spec.nodeName": "spec.node_name",
        "spec.schedulerName": "spec.scheduler_name",
        "status.phase": "status.phase",
        "status.nominatedNodeName": "status.nominated_node_name",
    }
}
_ALWAYS_SELECTABLE: Final = frozenset(("metadata.name", "metadata.namespace"))
_BOOLEAN_FIELDS: Final = frozenset((("spec", "unschedulable"), ("spec", "hostNetwork")))


def parse_field_selector(resource: ApiResource, text: str) -> FieldSelector | None:
    """`status.phase!=Succeeded,spec.nodeName=n1`; None for an empty text."""
    by_path: dict[tuple[str, ...], FieldTerm] = {}
    for part in filter(None, text.split(",")):
        path, is_equal, value = _parse_field(resource, part)
        known = by_path.get(path, FieldTerm(path, None, frozenset(), _typed_reader(resource, path)))
        if not is_equal:
            known = known._replace(excluded=known.excluded | {value})
        elif known.wanted in (None, value):
            known = known._replace(wanted=value)
        else:
            # Two different values at once: no object can have both.
            known = known._replace(excluded=known.excluded | {known.wanted})
        by_path[path] = known
    return FieldSelector(tuple(by_path.values())) if by_path else None


def _typed_reader(
    resource: ApiResource, path: tuple[str, ...]
) -> Callable[[ApiObject], str] | None:
    attribute = _TYPED_TEXTS.get(resource.qualified_name, {}).get(".".join(path))
    return None if attribute is None else attrgetter(attribute)


def _parse_field(resource: ApiResource, text: str) -> tuple[tuple[str, ...], bool, str]:
    for operator in ("!=", "==", "="):
        field, found, value = text.partition(operator)
        if found:
            break
    else:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    if field not in _ALWAYS_SELECTABLE | _SELECTABLE.get(resource.qualified_name, frozenset()):
        raise bad_request(f"field label not supported: {field}")
    return tuple(field.split(".")), operator != "!=", value


def _text_of(value: Any, path: tuple[str, ...]) -> str:  # of any JSON value
    if path in _BOOLEAN_FIELDS:
        return "true" if value else "false"
    return "" if value is None else str(value)


_SET_TERM: Final = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_COMPARED_TERM: Final = re.compile(r"([^\s=!<>]+)\s*(==|=|!=|>|<)\s*([^\s=!<>]*)")
_PRESENCE_TERM: Final = re.compile(r"(!?)\s*([^\s=!<>()]+)")
_DELIMITER: Final = re.compile(r"[(),]")
_OPERATORS: Final[dict[str, Operator]] = {
    "=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt",
}  # fmt: skip


def parse_label_query(text: str) -> Selector | None:
    """`app=web,tier in (a,b),!old`; None for an empty text."""
    if not text.strip():
        return None
    try:
        return Selector(_parse_term(term.strip()) for term in _terms_in(text))
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from error


def _terms_in(text: str) -> Iterator[str]:
    """The text cut at its commas, except those in parentheses."""
    start = 0
    is_inside = False
    for found in _DELIMITER.finditer(text):
        if found[0] != ",":
            is_inside = found[0] == "("
        elif not is_inside:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def _parse_term(term: str) -> Requirement:
    if found := _SET_TERM.fullmatch(term):
        key, operator, values = found.groups()
        return parse_requirement(
            key, _OPERATORS[operator], [value.strip() for value in values.split(",")]
        )
    if found := _COMPARED_TERM.fullmatch(term):
        key, operator, value = found.groups()
        return parse_requirement(key, _OPERATORS[operator], [value])
    if found := _PRESENCE_TERM.fullmatch(term):
        return parse_requirement(found[2], "DoesNotExist" if found[1] else "Exists", None)
    raise bad_request(f"unable to parse requirement: found '{term}', expected a label selector")
