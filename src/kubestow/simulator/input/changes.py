"""Changes of a cluster on its way into a simulation: what if a node were closed, drained, added?

    documents ──► nodes added ──► workloads expanded ──► pods removed ──► nodes cordoned, drained
                                                                     ──► placements forgotten

Workloads become pods before pods are removed, so that a selector also finds the pods of a
Deployment. The result loads to the same cluster again: a workload whose pods were removed is scaled
to zero, else its pods would be made again.

Not here: how pods leave their nodes (`pods`), what a node has (`nodes`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.api.labels import Selector
from kubestow.api.meta import JsonObject
from kubestow.apiserver.selectors import parse_label_query
from kubestow.cluster.documents import as_object, value_at
from kubestow.errors import ApiError, InputError
from kubestow.plural import plural
from kubestow.simulator.input.nodes import copies_of_node, cordoned, require_node
from kubestow.simulator.input.pods import (
    PodKey,
    evicted,
    is_placed_by_scheduler,
    key_of,
    without_placements,
    without_pods,
)
from kubestow.simulator.workloads import OwnerKey, controller_of, expand_workloads, scaled_down


class NodesLike(NamedTuple):
    """Nodes to add: how many, and the node of which they are copies."""

    node_count: int
    like: str


class ChangedInput(NamedTuple):
    documents: list[Document]
    # What was changed, a line for each change.
    notes: list[str]


class InputChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What to change; by default nothing."""

    add_nodes: tuple[NodesLike, ...] = ()
    # Label selectors, as of `kubectl -l`.
    remove_pods: tuple[str, ...] = ()
    # Names of nodes.
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    reschedule: bool = False

    def apply(self, documents: Sequence[Document]) -> ChangedInput:
        """The changed cluster; InputError for a node that it does not have, or a wrong selector."""
        changed, notes = list(documents), list[str]()
        if self == InputChanges():
            return ChangedInput(changed, notes)
        for added in self.add_nodes:
            made = copies_of_node(changed, added.like, added.node_count)
            changed += made
            notes.append(
                f'{added.node_count} {plural("node", added.node_count)} like "{added.like}" added'
            )
        changed = expand_workloads(changed)
        for text in self.remove_pods:
            changed = _removed(changed, text, notes)
        for name in (*self.cordon, *self.drain):
            require_node(changed, name)
        closed = {*self.cordon, *self.drain}
        changed = [_cordoned_if(document, closed) for document in changed]
        for name in self.drain:
            changed = _drained(changed, name, notes)
        if self.reschedule:
            changed = without_placements(changed)
        return ChangedInput(changed, notes)


def _cordoned_if(document: Document, names: set[str]) -> Document:
    raw = document.raw
    if raw.get("kind") != "Node" or value_at(raw, "metadata", "name") not in names:
        return document
    return Document(cordoned(raw), document.source)


def _removed(documents: list[Document], text: str, notes: list[str]) -> list[Document]:
    selector = parse_selector(text)
    gone = _keys(documents, lambda pod: selector.matches(_labels(pod)))
    if not gone:
        raise InputError(f'no pod has labels that match "{text}"')
    notes.append(f'{len(gone)} {plural("pod", len(gone))} with "{text}" removed')
    return scaled_down(without_pods(documents, gone), _owners(documents, gone))


def _owners(documents: list[Document], pods: set[PodKey]) -> set[OwnerKey]:
    """Kind, namespace and name of what made the pods."""
    return {
        owner
        for document in documents
        if document.raw.get("kind") == "Pod" and key_of(document.raw) in pods
        if (owner := controller_of(document.raw)) is not None
    }


def parse_selector(text: str) -> Selector:
    """A label selector as of `kubectl -l`; InputError if it is none."""
    try:
        selector = parse_label_query(text)
    except ApiError as error:
        raise InputError(
            f'label selector "{text}": {error}; expected, for example, app=web,tier!=db'
        ) from error
    if selector is None:
        raise InputError("the label selector is empty; expected, for example, app=web,tier!=db")
    return selector


def _drained(documents: list[Document], name: str, notes: list[str]) -> list[Document]:
    """Drain a node as `kubectl drain --force --ignore-daemonsets`: daemons, static pods stay."""

    def is_evicted(pod: JsonObject) -> bool:
        owner = controller_of(pod)
        return (
            value_at(pod, "spec", "nodeName") == name
            and is_placed_by_scheduler(pod)
            and (owner is None or owner.kind != "DaemonSet")
        )

    leaving = _keys(documents, is_evicted)
    made_again = {
        key_of(document.raw)
        for document in documents
        if document.raw.get("kind") == "Pod" and controller_of(document.raw) is not None
    }
    lost = leaving - made_again
    notes.append(
        f'"{name}" drained: {len(leaving) - len(lost)} '
        f"{plural('pod', len(leaving) - len(lost))} to place again"
        + (f", {len(lost)} without a controller removed" if lost else "")
    )
    return evicted(without_pods(documents, lost), leaving - lost)


def _keys(documents: list[Document], is_meant: Callable[[JsonObject], bool]) -> set[PodKey]:
    return {
        key_of(document.raw)
        for document in documents
        if document.raw.get("kind") == "Pod" and is_meant(document.raw)
    }


def _labels(document: JsonObject) -> JsonObject:
    return as_object(value_at(document, "metadata", "labels"))
