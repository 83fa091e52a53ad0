"""Which change made a difference, found out from what differs.

A plugin alone often names the change: only one concerns it. Where several may, or something of the
objects has to be so, that is tried: the decision is made again without the objects that the change
is about, and if both editions then agree, it was this one. What nothing explains stays unexplained.

The numbers are those of the table of v1.37 (spec 12 §1).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kubestow.api.meta import ApiObject, LabelSelector
from kubestow.api.pod import Pod, PodAffinity, PodAffinityTerm, priority_of
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.upgrade.aspects import Aspect, AspectKind, aspects_of, message_of
from kubestow.simulator.upgrade.noted import NotedPods
from kubestow.simulator.upgrade.pair import EditionPair

TEXTS: Final = 1
STORAGE_SCORES: Final = 2
DRIVERS: Final = 3
TAINT_RULES: Final = 4
TAINT_WAKING: Final = 5
RESIZES: Final = 6
IMAGE_VOLUMES: Final = 8
NAMESPACE_SELECTORS: Final = 9
BUDGETS: Final = 10
GATED_NOMINATIONS: Final = 11
TERM_WAKING: Final = 12
VICTIMS_IN_MEMORY: Final = 13
ALLOCATOR: Final = 15
UNSTARTED_VICTIMS: Final = 19

_TAINT: Final = "UpdateNodeTaint"
_NEGATIVE: Final = frozenset(("NotIn", "DoesNotExist"))
_ROOM: Final = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
_GONE_TEXTS: Final = ("no new claims to deallocate", "still not schedulable")
_FOUND_TEXT: Final = "preemption: found a potential placement for pod on node "


class ComparedPod:
    """A pod of both clusters, and the decisions on it."""

    def __init__(self, pods: tuple[Pod, Pod], older: FrozenDecision, newer: FrozenDecision) -> None:
        self.pods = pods
        self.older = older
        self.newer = newer
        self.aspects = aspects_of(older, newer)
        # The key of its last victim, if that is only on its node in the memory of a scheduler.
        self.victim_in_memory = ""
        # What it gets on a node that both choose.
        self.devices: tuple[str, str] = ("", "")


class CauseFinder:
    """Finds the changes behind the differences between the clusters of a pair."""

    def __init__(self, pair: EditionPair, noted: NotedPods) -> None:
        self._pair = pair
        self._noted = noted
        self._by_plugin: dict[tuple[AspectKind, str], Callable[[ComparedPod, Aspect], int]] = {
            (AspectKind.SCORE, "VolumeBinding"): self._storage_scores,
            (AspectKind.FILTER, "NodeVolumeLimits"): self._drivers,
            (AspectKind.SCORE, "ImageLocality"): self._image_volumes,
            (AspectKind.VICTIMS, "DefaultPreemption"): self._victims,
            (AspectKind.TEXT, "PostFilter"): self._texts,
            (AspectKind.DEVICES, "DynamicResources"): self._other_devices,
            (AspectKind.WAKING, _TAINT): lambda _, __: TAINT_WAKING,
            (AspectKind.WAKING, "InterPodAffinity"): lambda _, __: TERM_WAKING,
            (AspectKind.WAKING, "DefaultPreemption"): lambda _, __: VICTIMS_IN_MEMORY,
        }
        for kind in (AspectKind.FILTER, AspectKind.SCORE):
            self._by_plugin[kind, "InterPodAffinity"] = self._namespace_selectors
            self._by_plugin[kind, "DynamicResources"] = self._devices
            for plugin in _ROOM:
                self._by_plugin[kind, plugin] = self._resizes

    def number_of(self, compared: ComparedPod, aspect: Aspect) -> int:
        """The number of the change; 0 if none explains the aspect."""
        if aspect.kind is AspectKind.FILTER and self._is_of_gated(compared, aspect):
            return GATED_NOMINATIONS
        find = self._by_plugin.get((aspect.kind, aspect.plugin))
        return 0 if find is None else find(compared, aspect)

    # --- by gates and fields ---

    def _storage_scores(self, compared: ComparedPod, aspect: Aspect) -> int:
        return STORAGE_SCORES if self._differs("StorageCapacityScoring") else 0

    def _drivers(self, compared: ComparedPod, aspect: Aspect) -> int:
        return DRIVERS if self._differs("VolumeLimitScaling") else 0

    def _differs(self, gate: str) -> bool:
        return self._pair.older.gates.enabled(gate) != self._pair.newer.gates.enabled(gate)

    def _image_volumes(self, compared: ComparedPod, aspect: Aspect) -> int:
        volumes = compared.pods[1].spec.volumes
        return IMAGE_VOLUMES if any(volume.image is not None for volume in volumes) else 0

    def _namespace_selectors(self, compared: ComparedPod, aspect: Aspect) -> int:
        selectors = (term.namespace_selector for term in all_terms(compared.pods[1]))
        return NAMESPACE_SELECTORS if any(map(_is_negative, selectors)) else 0

    def _texts(self, compared: ComparedPod, aspect: Aspect) -> int:
        if any(each.kind is not AspectKind.TEXT for each in compared.aspects):
            return TEXTS
        older, newer = message_of(compared.older), message_of(compared.newer)
        return TEXTS if _without_gone(older) == _without_found(newer) else 0

    # --- by the room that pods take ---

    def _resizes(self, compared: ComparedPod, aspect: Aspect) -> int:
        nodes = set(aspect.nodes)
        return RESIZES if any(pod.spec.node_name in nodes for pod in self._noted.resized) else 0

    # --- by trying it without ---

    def _is_of_gated(self, compared: ComparedPod, aspect: Aspect) -> bool:
        return self._agrees_without(compared, aspect, self._noted.gated)

    def _devices(self, compared: ComparedPod, aspect: Aspect) -> int:
        rules = self._pair.newer.objects.device_taint_rules.list()
        if self._agrees_without(compared, aspect, rules):
            return TAINT_RULES
        return ALLOCATOR

    def _other_devices(self, compared: ComparedPod, aspect: Aspect) -> int:
        """Not tried without the rules: the pod is on its node already."""
        mine, other = compared.devices
        has_rules = bool(self._pair.newer.objects.device_taint_rules.list())
        is_tainted = has_rules and self._differs("DRADeviceTaintRules")
        return TAINT_RULES if is_tainted and ", configuration" not in mine + other else ALLOCATOR

    def _victims(self, compared: ComparedPod, aspect: Aspect) -> int:
        """Every filter is asked again on a node without the victims, so most changes can be it."""
        if self._is_of_gated(compared, aspect):
            return GATED_NOMINATIONS
        budgets = self._pair.older.objects.pod_disruption_budgets.list()
        if self._agrees_without(compared, aspect, budgets, in_both=True):
            return BUDGETS
        if self._agrees_without(compared, aspect, self._noted.resized, in_both=True):
            return RESIZES
        drivers = self._pair.newer.objects.csi_drivers.list()
        if self._agrees_without(compared, aspect, drivers):
            return DRIVERS
        has_claims = bool(compared.pods[1].spec.resource_claims)
        by_fields = self._devices if has_claims else self._namespace_selectors
        number = by_fields(compared, aspect)
        if number:
            return number
        # Last: without these pods nothing may have to be evicted at all.
        unstarted = self._noted.unstarted_below(priority_of(compared.pods[1]))
        is_of_unstarted = self._agrees_without(compared, aspect, unstarted, in_both=True)
        return UNSTARTED_VICTIMS if is_of_unstarted else 0

    def _agrees_without(
        self,
        compared: ComparedPod,
        aspect: Aspect,
        removed: Sequence[ApiObject],
        *,
        in_both: bool = False,
    ) -> bool:
        """Whether the aspect vanishes if the newer cluster, or both, are without these objects."""
        if not removed:
            return False
        older = compared.older
        if in_both:
            older = _decided_without(self._pair.older, compared.pods[0], removed)
        newer = _decided_without(self._pair.newer, compared.pods[1], removed)
        return not any(map(aspect.is_like, aspects_of(older, newer)))


def _decided_without(
    cluster: StillCluster, pod: Pod, removed: Sequence[ApiObject]
) -> FrozenDecision:
    with cluster.changed(removed=removed):
        return cluster.decide(pod).freeze()


def _is_negative(selector: LabelSelector | None) -> bool:
    """Whether a selector also matches an object without labels, and not everything."""
    return (
        selector is not None
        and not selector.match_labels
        and bool(selector.match_expressions)
        and all(each.operator in _NEGATIVE for each in selector.match_expressions)
    )


def anti_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """The required terms of the pod's anti-affinity."""
    affinity = pod.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    return () if anti is None else anti.required


def all_terms(pod: Pod) -> list[PodAffinityTerm]:
    """All terms of the pod's affinity and anti-affinity to pods."""
    affinity = pod.spec.affinity
    sides: tuple[PodAffinity | None, ...] = ()
    if affinity is not None:
        sides = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return [
        term
        for side in sides
        if side is not None
        for term in (*side.required, *(each.pod_affinity_term for each in side.preferred))
    ]


def _without_gone(message: str) -> str:
    for text in _GONE_TEXTS:
        message = message.replace(f"{text}, ", "").replace(text, "")
    return message.strip()


def _without_found(message: str) -> str:
    return message.partition(_FOUND_TEXT)[0].strip()
