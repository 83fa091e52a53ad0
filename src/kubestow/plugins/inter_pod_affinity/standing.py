"""How a pod stands to all terms: to its own, and to those of running pods that select it."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from kubestow.api.pod_info import AffinityTerm, PodClass, PodInfo
from kubestow.api.workload import Namespace
from kubestow.cache.objects import ObjectStore
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.reuse import RowCodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT, DomainColumn, DomainSums
from kubestow.index.topology.what_if import DomainCounts
from kubestow.plugins.inter_pod_affinity.existing import ExistingTerms, Exposed
from kubestow.plugins.inter_pod_affinity.terms import RequiredTerms, TermResolver

# Verdicts, in the order in which they count where several hold.
FAR: Final = 1
NEAR: Final = 2
FORBIDDEN: Final = 3

_NO_LABELS: Final[Mapping[str, str]] = {}


class RequiredCounts:
    """The three counts that decide about nodes, per topology key. Shared: not to be changed.

    near       pods that match all affinity terms of the incoming pod, by column of their keys
    apart      matches of its anti-affinity terms, by key
    forbidden  anti-affinity terms of other pods that select it, by key
    """

    __slots__ = ("_kept_codes", "apart", "forbidden", "near")

    def __init__(self, required: RequiredTerms, exposed: Exposed) -> None:
        """The readings must be fresh."""
        # Keys that no node has share their column.
        self.near: dict[DomainColumn, DomainCounts] = {
            each.column: DomainCounts(each.sums, each.column) for each in required.near_readings
        }
        self.apart = {
            each.key: DomainCounts(each.sums, each.column) for each in required.apart_readings
        }
        self.forbidden = {
            each.key: DomainCounts(each.sums, each.column) for each in exposed.forbidding
        }
        self._kept_codes: RowCodes | None = None

    def row_codes(self, layout_token: object, *, is_first: bool) -> RowCodes:
        """The verdicts node by node; `is_first` if the pod needs no other pod near it (spec 06
        §6.2.6), `layout_token` is that of the counts."""
        if self._kept_codes is not None:
            return self._kept_codes
        basis: list[object] = [layout_token, is_first]
        is_constant = not self.near
        for code, found in ((FAR, self.near), (NEAR, self.apart), (FORBIDDEN, self.forbidden)):
            basis.append(code)
            for counts in found.values():
                basis.append(counts.sums)
                # Where nodes share a domain, a pod on one changes the codes of others.
                if counts.sums is not None and not counts.column.has_single_rows():
                    basis.append(counts.sums.vacant().tobytes())
                    is_constant = False
        codes = RowCodes(tuple(basis), partial(self._code_of, is_first=is_first))
        if is_constant:
            self._kept_codes = codes
        return codes

    def _code_of(self, row: int, *, is_first: bool) -> int:
        """The first rule that the row's node breaks, in the order of the codes."""
        for counts in self.near.values():
            is_far = counts.column.ids.item(row) == ABSENT if is_first else counts.in_row(row) <= 0
            if is_far:
                return FAR
        for code, by_key in ((NEAR, self.apart), (FORBIDDEN, self.forbidden)):
            for counts in by_key.values():
                if counts.in_row(row) > 0:
                    return code
        return 0


class Standing:
    """How pods of one class with the same terms stand among the pods that are there.

    counts             of all pods and terms
    namespace_labels   the labels of the pod's Namespace object; none if there is no such object
    required           its own required terms
    selecting          the terms of running pods that select it
    exposed            what they come to
    """

    __slots__ = (
        "_counted",
        "_layout_token",
        "_readings",
        "_sums",
        "counts",
        "exposed",
        "namespace_labels",
        "required",
        "selecting",
    )

    def __init__(
        self,
        counts: TopologyCounts,
        required: RequiredTerms,
        selecting: frozenset[AffinityTerm],
        exposed: Exposed,
        namespace_labels: Mapping[str, str],
    ) -> None:
        self.selecting = selecting
        self.counts = counts
        self.required = required
        self.exposed = exposed
        self.namespace_labels = namespace_labels
        own = *required.near_readings, *required.apart_readings
        self._readings = *own, *exposed.forbidding
        self._sums: list[DomainSums] = []
        self._layout_token: object = None
        self._counted: RequiredCounts | None = None

    def required_counts(self) -> RequiredCounts | None:
        """None if no node can be excluded: neither by the pod's terms nor by those of others."""
        counts = self.counts
        for reading in self._readings:
            reading.refresh(counts)
        required = self.required
        if not (required.near_readings or required.apart_readings) and not any(
            [reading.sums.total for reading in self.exposed.forbidding]
        ):
            return None
        sums = [reading.sums for reading in self._readings]
        if (
            self._counted is None
            or self._layout_token is not counts.layout_token
            or self._sums != sums
        ):
            self._counted = RequiredCounts(required, self.exposed)
            self._sums, self._layout_token = sums, counts.layout_token
        return self._counted

    def pulls(self) -> bool:
        """Whether some term of a running pod that selects the pod scores nodes."""
        for hits, _ in self.exposed.pulling:
            hits.refresh(self.counts)
            if hits.sums.total:
                return True
        return False


class Standings:
    """Finds how pods stand. Mostly the next pod is of the same class and has the same terms."""

    def __init__(
        self,
        namespaces: ObjectStore[Namespace],
        resolver: TermResolver,
        existing: ExistingTerms,
    ) -> None:
        self._namespaces = namespaces
        self._resolver = resolver
        self._existing = existing
        self._last: Standing | None = None
        # The last pod and the changes before it: a pod is asked about several times in an attempt.
        self._changes: tuple[object, ...] = ()
        # And what others have to have in common with it to stand as it does.
        self._pod_class: PodClass | None = None
        self._depends: tuple[object, ...] = ()

    def of(self, pod: PodInfo, snapshot: Snapshot) -> Standing:
        """How the pod stands now; its counts are up to date."""
        log, version = snapshot.log, self._namespaces.version
        changes = pod, pod.pod, log, log.epoch, log.pod_end, version
        if self._last is None or changes != self._changes:
            self._last = self._at(pod, TopologyCounts.at(snapshot), version)
            self._changes = changes
        return self._last

    def _at(self, pod: PodInfo, counts: TopologyCounts, version: int) -> Standing:
        ledger, pod_class = counts.terms, pod.pod_class
        depends = pod.terms, ledger.owners_token, version
        last = self._last if depends == self._depends else None
        if last is not None and pod_class is self._pod_class:
            return last
        self._pod_class, self._depends = pod_class, depends
        namespace = self._namespaces.get(pod.namespace)
        labels = _NO_LABELS if namespace is None else namespace.metadata.labels
        selecting = ledger.selecting(pod_class, labels)
        exposed = self._existing.exposed(selecting)
        # Pods with different labels may be selected by the same terms.
        if last is not None and exposed is last.exposed and labels is last.namespace_labels:
            return last
        required = self._resolver.required(pod.terms)
        return Standing(counts, required, selecting, exposed, labels)
