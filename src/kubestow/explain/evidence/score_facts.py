"""What scores are made of, one struct for each kind. `text` is for people."""

import msgspec

from kubestow.explain.evidence.amounts import amount_words


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """Every field is written."""


class ResourceShare(_Part, frozen=True, kw_only=True, tag="ResourceShare"):
    """A resource that counts: `before` and `after` are the used shares without and with the pod.
    Pods without requests count with defaults where the plugin does so."""

    resource: str
    used: str
    wanted: str
    allocatable: str
    before: float
    after: float
    weight: int

    @property
    def text(self) -> str:
        return f"{self.resource} {self.before:.0%} → {self.after:.0%}"


class LoadShare(_Part, frozen=True, kw_only=True, tag="LoadShare"):
    """What the node uses of a resource, by the statistic that scores are made of.

    pending    what pods count that were just placed and are not measured yet
    estimate   what this pod is expected to use
    after      the share that is forecast with the pod
    """

    resource: str
    used: str
    pending: str
    estimate: str
    allocatable: str
    before: float
    after: float

    @property
    def text(self) -> str:
        return f"{self.resource} in use {self.before:.0%} → {self.after:.0%}"


class PreferredLabels(_Part, frozen=True, kw_only=True, tag="PreferredLabels"):
    """A preferred term of node affinity."""

    term: str
    weight: int
    matches: bool

    @property
    def text(self) -> str:
        return f"{self.term} ({self.weight}) {'matches' if self.matches else 'does not match'}"


class SoftTaint(_Part, frozen=True, kw_only=True, tag="SoftTaint"):
    """A PreferNoSchedule taint that the pod does not tolerate."""

    taint: str

    @property
    def text(self) -> str:
        return f"taint {self.taint}"


class Image(_Part, frozen=True, kw_only=True, tag="Image"):
    """An image of the pod that the node has; the size counts by the share of nodes with it."""

    image: str
    size: str
    nodes_with_it: int

    @property
    def text(self) -> str:
        size = amount_words("memory", self.size)
        return f"has {self.image}, {size}, on {self.nodes_with_it} nodes"


class DomainPods(_Part, frozen=True, kw_only=True, tag="DomainPods"):
    """Matching pods in the node's domain, for a constraint that only prefers."""

    topology_key: str
    domain: str | None
    selector: str
    count: int

    @property
    def text(self) -> str:
        return f"{self.topology_key}={self.domain}: {self.count} with {self.selector}"


class PreferredPods(_Part, frozen=True, kw_only=True, tag="PreferredPods"):
    """A preferred term of pod affinity (weight above 0) or anti-affinity, and the pods in the
    node's domain that it selects."""

    topology_key: str
    domain: str | None
    selector: str
    weight: int
    count: int

    @property
    def text(self) -> str:
        where = f"{self.topology_key}={self.domain}"
        return f"{self.count} pods with {self.selector} in {where}, weight {self.weight}"


ScorePart = (
    ResourceShare | LoadShare | PreferredLabels | SoftTaint | Image | DomainPods | PreferredPods
)
