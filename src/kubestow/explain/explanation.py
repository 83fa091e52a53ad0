"""What is said about one pod: the data of `-o json`, and of every other form of it.

The fields and their meaning are in docs/reference/explanation.md, their types in
`explanation.schema.json`; tests compare both with this file. Programs read this: fields are added,
never renamed. Names are camelCase outside.
"""

from html import escape
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from kubestow.api.meta import JsonObject
from kubestow.explain.evidence.facts import Fact, Mistake, ReasonEvidence
from kubestow.explain.evidence.score_facts import ScorePart

Outcome = Literal["Scheduled", "Unschedulable", "Gated", "Excluded", "Error", "Bound"]
Verdict = Literal["Feasible", "Rejected", "NotLookedAt", "Error"]
# Of one filter, asked about one node.
FilterVerdict = Literal["Passed", "Rejected", "Skipped", "Error"]
TieBreak = Literal["None", "SearchOrder", "Random"]
SearchEnd = Literal[
    "AllNodes",
    "EnoughFound",
    "NominatedNode",
    "Hint",
    "PreFilterRestricted",
    "PreFilterRejected",
    "Error",
]
PreemptionResult = Literal["Nominated", "NoCandidates", "NotEligible", "Disabled", "Error"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every field is written, except those that are UNSET."""


class PodReference(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str
    uid: str = ""


class Victim(_Part, frozen=True, kw_only=True):
    """A pod that is evicted to make another one fit."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0


class PluginScore(_Part, frozen=True, kw_only=True):
    """What one plugin gave a node: weighted is normalized times weight."""

    raw: int
    normalized: int
    weight: int
    weighted: int


class NodeFilterAnswer(_Part, frozen=True, kw_only=True):
    """One filter's answer about one node, independent of the other filters.

    facts   what is behind a rejection
    """

    plugin: str
    verdict: FilterVerdict
    code: str = ""
    reasons: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


class NodeExplanation(_Part, frozen=True, kw_only=True):
    """The verdict on one node.

    plugin        the plugin that rejected the node, or PreFilter plugins that left it out
    code          the status of kube-scheduler's framework: Unschedulable means that evicting pods
                  might help, UnschedulableAndUnresolvable that it cannot
    reason_codes  a code per reason that does not change with the wording; for a node that was not
                  looked at, why not
    scores        by plugin; empty if nodes were not scored
    total         the sum of the weighted scores; None if nodes were not scored
    filters       the answer of every filter, where they were asked for
    score_parts   by plugin what its score was made of, where it was asked for
    """

    name: str
    verdict: Verdict
    plugin: str = ""
    code: str = ""
    reasons: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    scores: dict[str, PluginScore] = {}
    total: int | None = None
    filters: tuple[NodeFilterAnswer, ...] | UnsetType = UNSET
    score_parts: dict[str, tuple[ScorePart, ...]] | UnsetType = UNSET


class ReasonGroup(_Part, frozen=True, kw_only=True):
    """The nodes that were rejected for the same reason; a node may have several.

    evidence   how much is missing, or which thing is in the way
    """

    plugin: str
    code: str
    reason: str
    reason_code: str
    count: int
    nodes: tuple[str, ...]
    evidence: ReasonEvidence | UnsetType = UNSET


class NearMiss(_Part, frozen=True, kw_only=True):
    """A node that almost fits.

    distance   how much is in the way: one for each filter, for resources the missing share
    facts      of all filters that reject it
    """

    node: str
    distance: float
    plugins: tuple[str, ...]
    facts: tuple[Fact, ...]
    text: str


class AwaitedEvent(_Part, frozen=True, kw_only=True):
    """A kind of event after which the pod may be tried again, and the plugins that wait for it."""

    resource: str
    action: str
    plugins: tuple[str, ...]


class ScoreDifference(_Part, frozen=True, kw_only=True):
    """How much more weighted score of a plugin the chosen node has than the next one."""

    plugin: str
    difference: int


class NodeChoice(_Part, frozen=True, kw_only=True):
    """Why the chosen node and not the next one in the ranking.

    next_node     the best of the other nodes; empty if no other fits
    margin        how much less its total is
    differences   by plugin, the largest first; plugins that gave both the same are left out
    tied_count    how many nodes have the best total
    tie_break     how one of them was chosen
    """

    next_node: str = ""
    margin: int = 0
    differences: tuple[ScoreDifference, ...] = ()
    tied_count: int = 1
    tie_break: TieBreak = "None"


class NodeSearch(_Part, frozen=True, kw_only=True):
    """How far the search for nodes went.

    nodes        how many nodes the cluster has
    evaluated    how many of them were filtered
    feasible     how many of these fit
    wanted       how many are enough
    end          why it ended
    """

    nodes: int
    evaluated: int
    feasible: int
    wanted: int
    end: SearchEnd


class Preemption(_Part, frozen=True, kw_only=True):
    """Whether evicting pods of lower priority makes the pod fit.

    hopeless_nodes   nodes whose rejection no eviction changes
    possible_nodes   nodes on which evictions were tried
    """

    result: PreemptionResult
    message: str = ""
    hopeless_nodes: int = 0
    possible_nodes: int = 0


class AsOfNow(_Part, frozen=True, kw_only=True):
    """The outcome for a pod that is placed, if it had to be placed now."""

    outcome: Outcome
    node: str = ""


class GroupMember(_Part, frozen=True, kw_only=True):
    name: str
    outcome: Outcome
    node: str = ""
    message: str = ""


class GroupExplanation(_Part, frozen=True, kw_only=True):
    """The group of the pod: which members fit, where, and what is missing.

    min_count   how many members have to fit; None for a group without such a rule
    fitting     how many are placed, or would be
    """

    namespace: str
    name: str
    min_count: int | None = None
    fitting: int
    message: str = ""
    members: tuple[GroupMember, ...]


class AttemptRecord(_Part, frozen=True, kw_only=True):
    """The attempt that a running scheduler reports on.

    at          when it was made
    attempts    how many there were until then
    next_try    when the pod is tried again at the latest; empty if it is not waiting
    place       where in the queue the pod is now
    """

    at: str
    attempts: int
    next_try: str = ""
    place: str = ""


class ObjectPatch(_Part, frozen=True, kw_only=True):
    """A change of one object: a JSON Patch (RFC 6902). An object that is new has the patch
    `[{"op": "add", "path": "", "value": …}]`, one to delete `[{"op": "remove", "path": ""}]`."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str
    patch: tuple[JsonObject, ...]


class Suggestion(_Part, frozen=True, kw_only=True):
    """A change after which the pod is scheduled.

    kind       what sort of change, a word that stays the same, such as "LowerRequest"
    text       one sentence for people
    patches    the change for programs, one entry per object
    node       where the pod is placed then
    verified   whether the cycle was run on the changed cluster, with that result
    commands   how to carry it out with kubectl, in this order; none if there is nothing to do, or
               if it cannot be said where the template of the pod is
    effect     what else carrying it out causes
    pod_patch  of a change of the template of a workload: the same change of the pod itself
    moved      the pod that is moved to another node; there are no patches then, only commands
    """

    kind: str
    text: str
    patches: tuple[ObjectPatch, ...]
    node: str = ""
    verified: bool = True
    commands: tuple[str, ...] = ()
    effect: str = ""
    pod_patch: ObjectPatch | UnsetType = UNSET
    moved: PodReference | UnsetType = UNSET


class Explanation(_Part, frozen=True, kw_only=True):
    """Why one pod is where it is, or waits.

    node              the node that was chosen, or the one it is bound to
    message           the text of the pod's condition; empty for a pod that fits
    nominated_node    the node on which the victims make it fit
    nodes             those that fit in the order of the ranking, then the others
    reasons           the most frequent first
    summary           one sentence for people
    nearest           nodes that almost fit, the nearest first
    mistakes          names that match nothing and are close to one that exists
    facts             what holds the pod back before it is tried
    tried             what was tried where no change was found that makes the pod fit
    """

    pod: PodReference
    outcome: Outcome
    node: str = ""
    message: str = ""
    nominated_node: str = ""
    victims: tuple[Victim, ...] = ()
    nodes: tuple[NodeExplanation, ...] = ()
    reasons: tuple[ReasonGroup, ...] = ()
    waiting_for: tuple[AwaitedEvent, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    summary: str = ""
    scheduler_name: str = ""
    search: NodeSearch | UnsetType = UNSET
    choice: NodeChoice | UnsetType = UNSET
    preemption: Preemption | UnsetType = UNSET
    as_of_now: AsOfNow | UnsetType = UNSET
    group: GroupExplanation | UnsetType = UNSET
    attempt: AttemptRecord | UnsetType = UNSET
    nearest: tuple[NearMiss, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    facts: tuple[Fact, ...] = ()
    tried: tuple[str, ...] = ()

    def __repr__(self) -> str:
        where = f" on {self.node}" if self.node else ""
        return f"<Explanation of {self.pod.namespace}/{self.pod.name}: {self.outcome}{where}>"

    def __str__(self) -> str:
        """As `kubestow explain` prints it."""
        from kubestow.explain.text import explanation_lines  # It reads this module.

        return "\n".join(line.text for line in explanation_lines(self))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
