"""Search results per node, reused for pods with equal claims.

Most pods have the same claims as the pod before, and most nodes have not changed since. An answer
holds until the node, its slices or the devices in its pools change; failures of the search itself
are never kept.
"""

from array import array
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.decode import encode_json
from kubestow.api.pod import Pod
from kubestow.api.requests import is_sidecar
from kubestow.arrays import BoolArray, IntArray
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.per_node import KeptPerNode, NodeSlots, grown
from kubestow.index.follow import Sources
from kubestow.plugins.dynamic_resources.allocator import NodeSearch
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.results import ClaimAllocation

CLAIM_SETS_MAX: Final = 64  # different sets of claims for which answers are kept
INTERRUPTED_MAX: Final = 16  # searches that are not at an end, for each set of claims


class Found(NamedTuple):
    """Devices on a node. `served`: the extended resources that devices serve there."""

    allocations: tuple[ClaimAllocation, ...]
    served: tuple[str, ...]


class Answers(KeptPerNode):
    """The answers for one set of claims.

    codes      int64[slot]   verdict, 0 where the pod can have its devices
    scores     int64[slot]   preference score of the alternatives it would get
    is_found   bool[slot]    whether `found` has the devices
    """

    def __init__(self, slots: NodeSlots) -> None:
        super().__init__(slots)
        self.codes: IntArray = np.zeros(0, np.int64)
        self.scores: IntArray = np.zeros(0, np.int64)
        self.is_found: BoolArray = np.zeros(0, np.bool_)
        self.found: dict[int, Found] = {}
        # By the names of the claims, which errors have, and slot; the oldest first.
        self._interrupted: dict[tuple[tuple[str, ...], int], NodeSearch] = {}

    def take_interrupted(self, names: tuple[str, ...], slot: int) -> NodeSearch | None:
        """The search for claims of these names, if it was interrupted on that node."""
        return self._interrupted.pop((names, slot), None)

    def keep_interrupted(self, names: tuple[str, ...], slot: int, search: NodeSearch) -> None:
        if len(self._interrupted) >= INTERRUPTED_MAX:
            del self._interrupted[next(iter(self._interrupted))]
        self._interrupted[names, slot] = search

    def rows_moved(self, sources: Sources | None) -> None:
        super().rows_moved(sources)
        self._interrupted.clear()

    def nodes_changed(self, rows: "array[int]") -> None:
        super().nodes_changed(rows)
        if self._interrupted:
            changed = set(rows)
            self._interrupted = {
                key: search for key, search in self._interrupted.items() if key[1] not in changed
            }

    def keep(self, slot: int, code: int, *, is_lasting: bool = True) -> None:
        """The verdict on a node without devices for the pod."""
        self.codes[slot] = code
        self.is_known[slot] = is_lasting
        self.is_found[slot] = False

    def keep_found(self, slot: int, found: Found, score: int) -> None:
        self.codes[slot] = 0
        self.scores[slot] = score
        self.is_known[slot] = self.is_found[slot] = True
        self.found[slot] = found

    def _grow(self, size: int) -> None:
        self.codes = grown(self.codes, size)
        self.scores = grown(self.scores, size)
        self.is_found = grown(self.is_found, size)


class AnswerBook:
    """Answers by set of claims; the least recently used are dropped first."""

    def __init__(self, known: KnownDevices) -> None:
        self._known = known
        self._class_version = -1
        self._answers: OrderedDict[Hashable, Answers] = OrderedDict()

    def look_up(self, attempt: DeviceAttempt, pod: Pod) -> Answers:
        version = self._known.classes.version
        if version != self._class_version:
            self._class_version = version
            self._answers.clear()
        key = _claims_key(attempt, pod)
        answers = self._answers.get(key)
        if answers is None:
            answers = self._answers[key] = Answers(self._known.slots)
            if len(self._answers) > CLAIM_SETS_MAX:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        return answers


def _claims_key(attempt: DeviceAttempt, pod: Pod) -> Hashable:
    """Everything the search depends on besides nodes, devices and classes."""
    specs = tuple(
        encode_json(attempt.claims[index].spec)
        for index in attempt.searched
        if index != attempt.special
    )
    if attempt.special < 0:
        return specs
    containers = (
        tuple(
            (container.name, is_sidecar(container), tuple(sorted(requests.items())))
            for container in pod.spec.init_containers
            for requests in [container.resources.requests or {}]
        ),
        tuple(
            (container.name, tuple(sorted((container.resources.requests or {}).items())))
            for container in pod.spec.containers
        ),
    )
    return specs, attempt.has_user_claims, attempt.extended, containers
