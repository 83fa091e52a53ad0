"""What of a pod the answers of several plugins depend on: `framework.reuse`, and signatures."""

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from kubestow.api.pod import NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import filter_request
from kubestow.framework.plugin import Fragments
from kubestow.framework.reuse import ASKED, Basis, PodReads, Reads, Reuse, VersionedBasis
from kubestow.index.devices.classes import DeviceClassMap

named_node: Final[Basis] = attrgetter("pod.spec.node_name")
host_ports: Final[Basis] = attrgetter("host_ports")
tolerations: Final[Basis] = attrgetter("pod.spec.tolerations")


def node_affinity(pod: PodInfo) -> bytes | None:
    """As a text, which is compared faster than its parts."""
    spec = pod.pod.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    if affinity is None and spec.node_selector is None:
        return None
    return msgspec.json.encode((spec.node_selector, affinity))


def volumes(pod: PodInfo) -> Hashable:
    """Pods whose volumes are of no storage differ in whether they have some."""
    given = pod.pod.spec.volumes
    return ASKED if given and pod.mounts_storage() else bool(given)


def unless_served_by_devices(
    classes: DeviceClassMap | None, filter: Reads | None, score: Reads | None
) -> Reuse:
    """Reuse of answers about resources, except for pods with resources that devices serve: free
    devices do not depend on one node alone.

    No map of device classes means that devices serve no extended resources.
    """
    if classes is None:
        return Reuse(filter=filter, score=score, pod=PodReads.REQUESTS)
    return Reuse(
        filter=filter,
        score=score,
        pod=PodReads.REQUESTS,
        basis=VersionedBasis(_ServedByDevices(classes), classes.read_version),
    )


class _ServedByDevices(NamedTuple):
    """A basis; equal for plugins that read the same classes, so that it is asked for once."""

    classes: DeviceClassMap

    def __call__(self, pod: PodInfo) -> Hashable:
        names, classes = pod.accounted.requested.scalar, self.classes
        if not names or classes.is_empty:
            return None
        is_served = any(classes.class_of(name) is not None for name in names)
        return ASKED if is_served else None


# --- fragments of signatures (spec 05 §14, 07 §1.1) ---
# They tell apart what those of kube-scheduler do, no more and no less: that decides which pods get
# the node of a list that another pod's scores are in.


def signed_tolerations(pod: PodInfo) -> Fragments:
    given = pod.pod.spec.tolerations
    return {"v1.Pod.Spec.Tolerations": sorted(given, key=lambda each: (each.key, each.value))}


def signed_node_affinity(pod: PodInfo) -> Fragments:
    """Terms, requirements and values in any order are equal; how often each is there counts."""
    spec = pod.pod.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    terms: Hashable = None
    if affinity is not None:
        required = () if affinity.required is None else affinity.required.node_selector_terms
        terms = (
            tuple(sorted(map(_signed_term, required))),
            tuple(
                sorted(
                    (term.weight, _signed_term(term.preference))
                    for term in affinity.preferred or ()
                )
            ),
        )
    return {
        "v1.Pod.Spec.Affinity.NodeAffinity": terms,
        "v1.Pod.Spec.Affinity.NodeSelector": spec.node_selector,
    }


_SignedRequirements = tuple[tuple[str, str, tuple[str, ...]], ...]


def _signed_term(term: NodeSelectorTerm) -> tuple[_SignedRequirements, _SignedRequirements]:
    return _signed_requirements(term.match_expressions), _signed_requirements(term.match_fields)


def _signed_requirements(given: Iterable[NodeSelectorRequirement]) -> _SignedRequirements:
    return tuple(
        sorted((each.key, each.operator, tuple(sorted(each.values or ()))) for each in given)
    )


def signed_volumes(pod: PodInfo) -> Fragments:
    """The sources in any order; names of volumes, ConfigMaps and Secrets do not count."""
    sources = [
        msgspec.json.encode(msgspec.structs.replace(volume, name=""))
        for volume in pod.pod.spec.volumes
        if volume.config_map is None and volume.secret is None
    ]
    return {"v1.Pod.Spec.Volumes.NonSyntheticSources()": sorted(sources)}


def signed_request(
    pod: PodInfo, classes: DeviceClassMap | None, *, use_pod_level: bool
) -> Fragments | None:
    """None if the pod requests a resource that devices serve: free devices are not in any score."""
    request = filter_request(pod.pod, use_pod_level=use_pod_level)
    if classes is not None:
        for name, amount in request.scalar.items():
            if amount and classes.class_of(name) is not None:
                return None
    amounts = (request.milli_cpu, request.memory, request.ephemeral_storage, request.scalar)
    return {"v1.Pod.Spec.ContainerRequestsAndOverheads()": amounts}
