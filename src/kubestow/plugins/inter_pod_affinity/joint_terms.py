"""Whether all of some affinity terms select a pod, at the cost of its labels.

All terms hold where all their requirements do, so those on one label become one rule. A waiting pod
may have thousands of terms, and is asked about with every pod that comes or goes.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kubestow.api.labels import Requirement
from kubestow.api.pod import Pod
from kubestow.api.pod_info import AffinityTerm

_NO_LABELS: Final[Mapping[str, str]] = {}


class JointTerms:
    """Required terms of one kind. Without terms no pod is selected.

    Namespace selectors are not resolved but matched against no labels, so that a term with such a
    selector selects only the namespaces it lists.
    """

    __slots__ = (
        "_absent",
        "_excluded",
        "_namespaces",
        "_needed",
        "_others",
        "_selects",
        "_terms",
        "keys",
    )

    def __init__(self, terms: Iterable[AffinityTerm]) -> None:
        # The topology keys, each once, in the order of the terms.
        self.keys: dict[str, None] = {}
        self._selects = False
        # None: any namespace.
        self._namespaces: frozenset[str] | None = None
        # Labels that must be there, with the values that are allowed; None: any.
        self._needed: dict[str, frozenset[str] | None] = {}
        # Values that a label must not have, and labels that must not be there.
        self._excluded: dict[str, set[str]] = {}
        self._absent: set[str] = set()
        self._others: list[Requirement] = []
        is_nothing = False
        self._terms = tuple(terms)
        for term in self._terms:
            self.keys[term.topology_key] = None
            self._selects = True
            is_nothing |= term.selector.is_nothing
            if not term.namespace_selector.matches(_NO_LABELS):
                listed, known = term.namespaces, self._namespaces
                self._namespaces = listed if known is None else known & listed
            for requirement in term.selector.requirements:
                self._add(requirement)
        self._selects &= not is_nothing

    def _add(self, requirement: Requirement) -> None:
        key, values = requirement.key, requirement.values
        match requirement.operator:
            case "In":
                known = self._needed.get(key)
                self._needed[key] = values if known is None else known & values
            case "Exists":
                self._needed.setdefault(key, None)
            case "NotIn":
                self._excluded.setdefault(key, set()).update(values)
            case "DoesNotExist":
                self._absent.add(key)
            case _:
                self._others.append(requirement)

    def select(self, pod: Pod) -> bool:
        """Whether there are terms, and all of them select the pod."""
        namespaces, labels = self._namespaces, pod.metadata.labels
        if not self._selects or (
            namespaces is not None and pod.metadata.namespace not in namespaces
        ):
            return False
        # With more labels than the pod has, one is missing.
        if len(self._needed) > len(labels):
            return False
        for key, allowed in self._needed.items():
            value = labels.get(key)
            if value is None or (allowed is not None and value not in allowed):
                return False
        return not self._excludes(labels) and all(
            requirement.matches(labels) for requirement in self._others
        )

    def any_selects(self, pod: Pod) -> bool:
        """Whether one of the terms selects the pod."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        return any(term.matches(namespace, labels, _NO_LABELS) for term in self._terms)

    def _excludes(self, labels: Mapping[str, str]) -> bool:
        excluded, absent = self._excluded, self._absent
        if absent and not absent.isdisjoint(labels):
            return True
        if len(excluded) < len(labels):
            return any(labels.get(key) in values for key, values in excluded.items())
        return any(value in excluded.get(key, ()) for key, value in labels.items())
