"""The facts behind a rejection, one struct for each kind.

Programs read them by `type`; `text` is for people. Amounts are quantities as Kubernetes writes
them, `missing` is never zero: a fact without anything missing is not one that rejects.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from kubestow.explain.evidence.amounts import amount_words
from kubestow.plural import counted

# Names in one list; the number beside the list counts all of them.
LISTED_MAX: Final = 5

LabelRule = Literal["NodeSelector", "NodeAffinity", "AddedAffinity", "TopologyKey", "NodeField"]
MistakeKind = Literal["LabelKey", "LabelValue", "Toleration", "TopologyKey", "PodLabel", "Resource"]
PodRule = Literal["Affinity", "AntiAffinity", "ExistingAntiAffinity"]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """Every field is written."""


class Shortage(_Fact, frozen=True, kw_only=True, tag="Shortage"):
    """A resource of which too little is free; for the number of pods the resource is `pods`.

    held   what pods that are nominated to the node, and not there yet, have of it
    """

    resource: str
    wanted: str
    free: str
    allocatable: str
    missing: str
    held: str = "0"

    @property
    def text(self) -> str:
        name = self.resource
        wanted = amount_words(name, self.wanted, up=True)
        free, of = amount_words(name, self.free), amount_words(name, self.allocatable)
        text = f"needs {wanted} {name}, {free} of {of} free"
        if self.held != "0":
            text += f" ({amount_words(name, self.held)} held for nominated pods)"
        return text


class Taint(_Fact, frozen=True, kw_only=True, tag="Taint"):
    """A taint that the pod does not tolerate. That of a cordon is in `spec.unschedulable`."""

    key: str
    value: str
    effect: str
    is_cordon: bool = False

    @property
    def text(self) -> str:
        if self.is_cordon:
            return "cordoned (spec.unschedulable)"
        value = f"={self.value}" if self.value else ""
        return f"taint {self.key}{value}:{self.effect}"


class Label(_Fact, frozen=True, kw_only=True, tag="Label"):
    """A label of the node, or its name, that is not as a rule requires.

    actual   the node's value; None without such a label
    term     which of several terms, of which one has to match
    """

    rule: LabelRule
    key: str
    operator: str
    wanted: tuple[str, ...]
    actual: str | None
    term: int = 0

    @property
    def text(self) -> str:
        return f"needs {requirement_text(self)}, {actual_text(self.key, self.actual)}"


class NodeName(_Fact, frozen=True, kw_only=True, tag="NodeName"):
    """The pod names its node."""

    wanted: str
    exists: bool

    @property
    def text(self) -> str:
        return f"needs node {self.wanted}" + ("" if self.exists else ", which does not exist")


class Features(_Fact, frozen=True, kw_only=True, tag="Features"):
    """Features that the pod needs and the node does not declare."""

    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"lacks {', '.join(self.missing)}"


class Port(_Fact, frozen=True, kw_only=True, tag="Port"):
    """A host port that another pod has."""

    port: int
    protocol: str
    ip: str
    pod: str

    @property
    def text(self) -> str:
        return f"port {self.port}/{self.protocol} is used by {self.pod}"


class Domain(_Fact, frozen=True, kw_only=True, tag="Domain"):
    """A topology domain, and how many pods are counted in it."""

    name: str
    count: int


class Spread(_Fact, frozen=True, kw_only=True, tag="Spread"):
    """A spread constraint that one more pod in the node's domain would break.

    count         matching pods in that domain
    lowest        the smallest count of a domain; 0 if there are fewer than `min_domains`
    skew          the difference with this pod in the domain
    domains       those with the fewest pods first, of `domain_count`
    """

    topology_key: str
    selector: str
    domain: str
    count: int
    lowest: int
    skew: int
    max_skew: int
    min_domains: int
    domain_count: int
    domains: tuple[Domain, ...]

    @property
    def text(self) -> str:
        others = ", ".join(f"{each.name} {each.count}" for each in self.domains)
        more = ", …" if self.domain_count > len(self.domains) else ""
        text = (
            f"{counted(self.count, 'pod')} with {self.selector} in "
            f"{self.topology_key}={self.domain}, one more makes the skew {self.skew}, allowed is "
            f"{self.max_skew} (counts: {others or 'no domain counts'}{more})"
        )
        if self.domain_count < self.min_domains:
            text += f"; {self.domain_count} of minDomains {self.min_domains}, so the least is 0"
        return text


class PodTerm(_Fact, frozen=True, kw_only=True, tag="PodTerm"):
    """A term of pod affinity or anti-affinity, of this pod or of pods that are there.

    domain     the node's value for the key; None without that label
    pods       for anti-affinity those in the way; for affinity some that match elsewhere
    count      of these pods
    """

    rule: PodRule
    topology_key: str
    domain: str | None
    selector: str
    pods: tuple[str, ...]
    count: int

    @property
    def text(self) -> str:
        listed = _listed(self.pods, self.count)
        if self.rule == "Affinity":
            if self.domain is None:
                return f"has no label {self.topology_key}, which pod affinity needs"
            where = f"{self.topology_key}={self.domain}"
            if not self.count:
                return f"no pod matches {self.selector}, in {where} or anywhere"
            return f"no pod with {self.selector} in {where}; elsewhere {listed}"
        where = f"{self.topology_key}={self.domain}"
        if self.rule == "AntiAffinity":
            return f"keeps away from {self.selector}; in {where}: {listed}"
        return f"kept away by {listed} in {where}"


class Missing(_Fact, frozen=True, kw_only=True, tag="Missing"):
    """An object that is needed and does not exist; `similar` are names that do."""

    kind: str
    namespace: str
    name: str
    similar: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        known = f"; there is {', '.join(self.similar)}" if self.similar else ""
        return f"there is no {self.kind} {self.name}{known}"


class Claim(_Fact, frozen=True, kw_only=True, tag="Claim"):
    """A claim that cannot be used as it is; `problem` is the code of the reason."""

    kind: str
    claim: str
    problem: str
    storage_class: str = ""
    pods: tuple[str, ...] = ()
    pod_count: int = 0
    detail: str = ""

    @property
    def text(self) -> str:
        of_class = f" (class {self.storage_class})" if self.storage_class else ""
        users = f", used by {_listed(self.pods, self.pod_count)}" if self.pod_count else ""
        return f"{self.kind} {self.claim}{of_class}: {self.detail or self.problem}{users}"


class VolumePlace(_Fact, frozen=True, kw_only=True, tag="VolumePlace"):
    """A volume that cannot be reached from the node, by one of its requirements or labels."""

    claim: str
    volume: str
    key: str
    operator: str
    wanted: tuple[str, ...]
    actual: str | None

    @property
    def text(self) -> str:
        return (
            f"volume {self.volume} of claim {self.claim} needs {requirement_text(self)}, "
            f"{actual_text(self.key, self.actual)}"
        )


class FreeVolumes(_Fact, frozen=True, kw_only=True, tag="FreeVolumes"):
    """A claim for which no volume is found on the node.

    of_class      free volumes of the class
    suitable      those of them that are large enough and have the right form
    in_reach      those of them that the node reaches
    provisioner   of the class; empty if it makes no volumes
    """

    claim: str
    storage_class: str
    wanted: str
    of_class: int
    suitable: int
    in_reach: int
    provisioner: str = ""
    allowed_here: bool = False

    @property
    def text(self) -> str:
        found = (
            f"claim {self.claim} needs {amount_words('storage', self.wanted, up=True)} of class "
            f"{self.storage_class or 'none'}: {counted(self.of_class, 'free volume')}, "
            f"{self.suitable} suitable, {self.in_reach} in reach of the node"
        )
        if not self.provisioner:
            return f"{found}; the class makes none"
        return found if self.allowed_here else f"{found}; the class makes none in this topology"


class StorageCapacity(_Fact, frozen=True, kw_only=True, tag="StorageCapacity"):
    """A claim for which a driver has too little left; `free` is the largest volume it can make."""

    claim: str
    storage_class: str
    wanted: str
    free: str
    missing: str

    @property
    def text(self) -> str:
        return (
            f"claim {self.claim} needs {amount_words('storage', self.wanted, up=True)} of class "
            f"{self.storage_class}, {amount_words('storage', self.free)} can be made"
        )


class VolumeLimit(_Fact, frozen=True, kw_only=True, tag="VolumeLimit"):
    """A driver that attaches no more volumes to the node: `added` would be new there."""

    driver: str
    used: int
    limit: int
    added: int
    missing: int

    @property
    def text(self) -> str:
        return f"{self.driver} has {self.used} of {self.limit} volumes, the pod adds {self.added}"


class Driver(_Fact, frozen=True, kw_only=True, tag="Driver"):
    """A CSI driver that the node does not have."""

    driver: str

    @property
    def text(self) -> str:
        return f"has no CSI driver {self.driver}"


class Disk(_Fact, frozen=True, kw_only=True, tag="Disk"):
    """A disk that pods on the node use in a way that excludes another one."""

    disk: str
    pods: tuple[str, ...]
    count: int

    @property
    def text(self) -> str:
        return f"disk {self.disk} is used by {_listed(self.pods, self.count)}"


class DeviceSelection(_Fact, frozen=True, kw_only=True, tag="DeviceSelection"):
    """A selector of a device class or request, and how many devices of the node it matches."""

    expression: str
    matching: int


class Devices(_Fact, frozen=True, kw_only=True, tag="Devices"):
    """A request for which the node has too few devices.

    on_node    devices that the node reaches
    matching   those that all selectors match
    free       those of them that no claim has
    """

    claim: str
    request: str
    device_class: str
    wanted: int
    on_node: int
    matching: int
    free: int
    missing: int
    selectors: tuple[DeviceSelection, ...]

    @property
    def text(self) -> str:
        text = (
            f"request {self.request} of claim {self.claim} needs "
            f"{counted(self.wanted, 'device')} of class {self.device_class}: {self.on_node} on the "
            f"node, {self.matching} matching, {self.free} free"
        )
        failing = [each for each in self.selectors if each.matching < self.wanted]
        if failing:
            parts = (f"{each.expression} matches {each.matching}" for each in failing)
            text += f" ({'; '.join(parts)})"
        return text


class DevicePool(_Fact, frozen=True, kw_only=True, tag="DevicePool"):
    """A pool of devices that cannot be used: slices are missing, or contradict each other."""

    driver: str
    pool: str
    is_complete: bool

    @property
    def text(self) -> str:
        problem = "has invalid slices" if self.is_complete else "lacks slices"
        return f"pool {self.pool} of {self.driver} {problem}"


class DevicesTogether(_Fact, frozen=True, kw_only=True, tag="DevicesTogether"):
    """Each request alone finds enough devices, but not all of them at once, or not such as the
    constraints, taints and capacities of the devices allow."""

    claims: tuple[str, ...]
    constraints: tuple[str, ...]
    tainted: int

    @property
    def text(self) -> str:
        rules = f" with {', '.join(self.constraints)}" if self.constraints else ""
        tainted = f"; {counted(self.tainted, 'device')} tainted" if self.tainted else ""
        return f"no devices for all of {', '.join(self.claims)} at once{rules}{tainted}"


class DevicesElsewhere(_Fact, frozen=True, kw_only=True, tag="DevicesElsewhere"):
    """A claim that has its devices, on other nodes."""

    claim: str
    devices: tuple[str, ...]
    nodes: str

    @property
    def text(self) -> str:
        devices = ", ".join(self.devices)
        return f"claim {self.claim} has {devices}, which are on {self.nodes or 'other nodes'}"


class Load(_Fact, frozen=True, kw_only=True, tag="Load"):
    """A node that uses more than a threshold allows (LoadAware).

    pending     what pods count beside `used` that were just placed and are not measured yet
    percent     `used` and `pending`, of `allocatable`
    allowed     percent; `threshold`, or less for a node that was over it before
    """

    resource: str
    statistic: str
    used: str
    pending: str
    allocatable: str
    missing: str
    percent: float
    allowed: int
    threshold: int

    @property
    def text(self) -> str:
        name = self.resource
        used, of = (amount_words(name, each, up=True) for each in (self.used, self.allocatable))
        pending = ""
        if self.pending != "0":
            pending = f" and {amount_words(name, self.pending, up=True)} by pods not measured yet"
        text = (
            f"{used} of {of} {name} in use ({self.statistic}){pending}: {self.percent:g}%, "
            f"allowed is {self.allowed}%"
        )
        if self.allowed == self.threshold:
            return text
        return f"{text} after it was over {self.threshold}%"


class Group(_Fact, frozen=True, kw_only=True, tag="Group"):
    """A pod group of which too few members are there, or placed."""

    group: str
    members: int
    placed: int
    min_count: int | None
    exists: bool

    @property
    def text(self) -> str:
        if not self.exists:
            return f"there is no PodGroup {self.group}"
        needed = "" if self.min_count is None else f", {self.min_count} are needed"
        return f"group {self.group} has {counted(self.members, 'member')}{needed}"


class Gates(_Fact, frozen=True, kw_only=True, tag="Gates"):
    """Scheduling gates of the pod."""

    gates: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"gates {', '.join(self.gates)}"


class Restricted(_Fact, frozen=True, kw_only=True, tag="Restricted"):
    """PreFilter plugins leave only some nodes."""

    plugins: tuple[str, ...]
    nodes: tuple[str, ...]
    count: int

    @property
    def text(self) -> str:
        return f"only {_listed(self.nodes, self.count)} for {', '.join(self.plugins)}"


Fact = (
    Shortage
    | Taint
    | Label
    | NodeName
    | Features
    | Port
    | Spread
    | PodTerm
    | Missing
    | Claim
    | VolumePlace
    | FreeVolumes
    | StorageCapacity
    | VolumeLimit
    | Driver
    | Disk
    | Devices
    | DevicePool
    | DevicesTogether
    | DevicesElsewhere
    | Load
    | Group
    | Gates
    | Restricted
)


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes with the same facts: `nodes` are the first of `count`.

    text   the facts for people; the wording may change
    """

    nodes: tuple[str, ...]
    count: int
    facts: tuple[Fact, ...]
    text: str = ""


class ReasonEvidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is behind one reason.

    text       one line for people; its wording may change
    groups     nodes with the same facts; of resources the nodes where the least is missing first,
               of others the facts that most nodes have
    examined   how many of the nodes were looked at
    """

    text: str
    groups: tuple[NodeFacts, ...]
    examined: int


class Mistake(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A name that matches nothing, and what was probably meant.

    where   the field of the pod
    key     the label key that a value belongs to; empty for other kinds
    """

    kind: MistakeKind
    where: str
    given: str
    meant: str
    key: str = ""
    text: str


def requirement_text(rule: Label | VolumePlace) -> str:
    """A requirement as one reads it: `disk=ssd`, `zone in a,b`."""
    values = ",".join(rule.wanted)
    match rule.operator:
        case "In" if len(rule.wanted) == 1:
            return f"{rule.key}={values}"
        case "Exists":
            return f"a label {rule.key}"
        case "DoesNotExist":
            return f"no label {rule.key}"
        case "Gt" | "Lt":
            return f"{rule.key} {'>' if rule.operator == 'Gt' else '<'} {values}"
        case "In" | "NotIn":
            return f"{rule.key} {'in' if rule.operator == 'In' else 'not in'} {values}"
        case _:
            return f"{rule.key} {rule.operator} {values}".strip()


def actual_text(key: str, actual: str | None) -> str:
    return "has no such label" if actual is None else f"has {key}={actual}"


def _listed(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names)
    return f"{shown} and {count - len(names)} more" if count > len(names) else shown
