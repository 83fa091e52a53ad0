"""Whether facts are true and reject: read again from the objects, one pod and one node at a time.

Nothing of what makes the facts is used: requests are summed over the pods of a node, selectors are
compared label by label, counts go over all pods of all nodes.
"""

from collections.abc import Iterable, Sequence

from kubestow.api.declared_features import KNOWN_FEATURES
from kubestow.api.node import Node
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.api.requests import accounted_request, filter_request
from kubestow.api.resources import PODS, amount, amount_of
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.explain.evidence.facts import (
    Claim,
    DevicePool,
    Devices,
    DevicesElsewhere,
    DevicesTogether,
    Disk,
    Driver,
    Fact,
    Features,
    FreeVolumes,
    Label,
    Missing,
    NodeName,
    PodTerm,
    Port,
    Restricted,
    Shortage,
    Spread,
    StorageCapacity,
    Taint,
    VolumeLimit,
    VolumePlace,
)


class SlowReading:
    """The objects of one attempt; `check` raises AssertionError for a fact that is not true."""

    def __init__(
        self, pod: PodInfo, snapshot: Snapshot, objects: ClusterObjects, ahead: Sequence[PodInfo]
    ) -> None:
        self.pod = pod.pod
        self.snapshot = snapshot
        self.objects = objects
        self.ahead = ahead

    def check(self, name: str, facts: Iterable[Fact]) -> None:
        """Whether the facts hold for a node, and each of them rejects the pod."""
        row = self.snapshot.row_of(name)
        assert row is not None, name
        node = self.snapshot.nodes[row]
        pods = [each.pod for each in self.snapshot.node_infos[row].pods]
        for fact in facts:
            assert fact.text
            match fact:
                case Shortage():
                    self._shortage(fact, node, row)
                case Taint():
                    self._taint(fact, node)
                case Label():
                    assert fact.actual == self._actual(fact, node)
                    assert not fact.key or not satisfies(fact, fact.actual)
                case VolumePlace():
                    self._volume_place(fact, node)
                case NodeName():
                    assert fact.wanted == self.pod.spec.node_name != name
                case Features():
                    declared = node.status.declared_features
                    assert all(each in KNOWN_FEATURES for each in fact.missing)
                    assert not set(fact.missing) & set(declared)
                case Port():
                    holders = [*pods, *(each.pod for each in self.ahead)]
                    keys = [f"{each.metadata.namespace}/{each.metadata.name}" for each in holders]
                    holder = holders[keys.index(fact.pod)]
                    ports = [port for each in holder.spec.containers for port in each.ports]
                    ports += [port for each in holder.spec.init_containers for port in each.ports]
                    assert fact.port in [port.host_port for port in ports]
                case Spread():
                    self._spread(fact, node)
                case PodTerm():
                    self._pod_term(fact, node)
                case Missing():
                    self._missing(fact)
                case FreeVolumes():
                    assert fact.in_reach <= fact.suitable <= fact.of_class
                    assert fact.of_class <= len(self.objects.persistent_volumes)
                case StorageCapacity():
                    wanted, free = parse_quantity(fact.wanted), parse_quantity(fact.free)
                    missing = parse_quantity(fact.missing)
                    assert missing.value() == wanted.value() - free.value() > 0
                case VolumeLimit():
                    assert fact.missing == fact.used + fact.added - fact.limit > 0
                    csi_node = self.objects.csi_nodes.get(name)
                    assert csi_node is not None
                    limits = {each.name: each.allocatable for each in csi_node.spec.drivers}
                    assert limits[fact.driver].count == fact.limit
                case Driver():
                    csi_node = self.objects.csi_nodes.get(name)
                    drivers = () if csi_node is None else csi_node.spec.drivers
                    assert fact.driver not in [each.name for each in drivers]
                case Disk():
                    assert fact.count >= len(fact.pods) > 0
                case Devices():
                    assert fact.free <= fact.matching <= fact.on_node
                    assert fact.missing == fact.wanted - fact.free > 0
                    assert all(each.matching >= fact.matching for each in fact.selectors)
                case Restricted():
                    assert name not in fact.nodes
                case DevicePool():
                    slices = [
                        each.spec.pool
                        for each in self.objects.resource_slices
                        if (each.spec.driver, each.spec.pool.name) == (fact.driver, fact.pool)
                    ]
                    assert slices
                case Claim() | DevicesTogether() | DevicesElsewhere():
                    pass
                case _:
                    raise AssertionError(fact)

    def _shortage(self, fact: Shortage, node: Node, row: int) -> None:
        pods = [each.pod for each in self.snapshot.node_infos[row].pods]
        if fact.held != "0":
            pods += [each.pod for each in self.ahead]
        name = fact.resource
        units = {key: amount(name, parse_quantity(getattr(fact, key))) for key in _AMOUNTS}
        offered = node.status.allocatable.get(name)
        total = 0 if offered is None else amount(name, offered)
        if name == PODS:
            used, wanted = len(pods), 1
        else:
            used = sum(amount_of(name, accounted_request(each).requested) for each in pods)
            wanted = amount_of(name, filter_request(self.pod, use_pod_level=True))
        assert units["allocatable"] == total
        assert units["free"] == total - used
        assert units["wanted"] == wanted
        assert units["missing"] == wanted - (total - used) > 0

    def _taint(self, fact: Taint, node: Node) -> None:
        if fact.is_cordon:
            assert node.spec.unschedulable
            return
        taints = [(each.key, each.value, each.effect) for each in node.spec.taints]
        assert (fact.key, fact.value, fact.effect) in taints
        assert fact.effect in ("NoSchedule", "NoExecute")
        for toleration in self.pod.spec.tolerations:
            if toleration.key not in ("", fact.key) or toleration.effect not in ("", fact.effect):
                continue
            is_equal = toleration.operator in ("", "Equal") and toleration.value == fact.value
            assert toleration.operator != "Exists"
            assert not is_equal

    def _actual(self, fact: Label, node: Node) -> str | None:
        if fact.rule == "NodeField":
            return fact.actual and node.metadata.name
        return node.metadata.labels.get(fact.key)

    def _volume_place(self, fact: VolumePlace, node: Node) -> None:
        claim = self.objects.persistent_volume_claims.get(self.pod.metadata.namespace, fact.claim)
        assert claim is not None
        assert self.objects.persistent_volumes.get(fact.volume) is not None
        assert not fact.key or not satisfies(fact, fact.actual)
        if fact.actual is not None:
            assert fact.actual in node.metadata.labels.values()

    def _spread(self, fact: Spread, node: Node) -> None:
        assert node.metadata.labels[fact.topology_key] == fact.domain
        assert fact.skew > fact.max_skew
        assert fact.skew - (fact.count - fact.lowest) in (0, 1)
        assert len(fact.domains) <= fact.domain_count
        if fact.domain_count >= fact.min_domains and fact.domain_count:
            assert min(each.count for each in fact.domains) == fact.lowest
        else:
            assert fact.lowest == 0
        # No domain has more pods than its nodes.
        domains: dict[str, int] = {}
        for each, info in zip(self.snapshot.nodes, self.snapshot.node_infos, strict=True):
            value = each.metadata.labels.get(fact.topology_key)
            if value is not None:
                domains[value] = domains.get(value, 0) + len(info.pods)
        ahead = len(self.ahead)
        assert fact.count <= domains[fact.domain] + ahead
        assert all(each.count <= domains[each.name] + ahead for each in fact.domains)

    def _pod_term(self, fact: PodTerm, node: Node) -> None:
        assert node.metadata.labels.get(fact.topology_key) == fact.domain
        assert fact.count >= len(fact.pods)
        places = {
            pod.key: place
            for place, info in zip(self.snapshot.nodes, self.snapshot.node_infos, strict=True)
            for pod in info.pods
        } | {pod.key: node for pod in self.ahead}
        domains = {key: places[key].metadata.labels.get(fact.topology_key) for key in fact.pods}
        if fact.rule == "Affinity":
            assert fact.domain is None or fact.domain not in domains.values()
        else:
            assert fact.count > 0
            assert set(domains.values()) == {fact.domain}

    def _missing(self, fact: Missing) -> None:
        objects = self.objects
        stores = {
            "PersistentVolumeClaim": objects.persistent_volume_claims,
            "PersistentVolume": objects.persistent_volumes,
            "StorageClass": objects.storage_classes,
            "DeviceClass": objects.device_classes,
            "ResourceClaim": objects.resource_claims,
        }
        assert stores[fact.kind].get(fact.namespace, fact.name) is None
        assert fact.name not in fact.similar
        for name in fact.similar:
            assert stores[fact.kind].get(fact.namespace, name) is not None


_AMOUNTS = ("wanted", "free", "allocatable", "missing")


def satisfies(rule: Label | VolumePlace, actual: str | None) -> bool:
    """Whether a value meets a requirement, by the words of the API."""
    match rule.operator:
        case "In":
            return actual in rule.wanted
        case "NotIn":
            return actual not in rule.wanted
        case "Exists":
            return actual is not None
        case "DoesNotExist":
            return actual is None
        case "Gt":
            return actual is not None and _number(actual) > int(rule.wanted[0])
        case "Lt":
            return actual is not None and _number(actual) < int(rule.wanted[0])
        case _:
            return False


def _number(text: str) -> float:
    """Labels are compared as 64-bit numbers; what is none meets no comparison."""
    try:
        number = int(text)
    except ValueError:
        return float("nan")
    return number if -(2**63) <= number < 2**63 else float("nan")
