"""The VolumeBinding plugin: the extension points and the state between them (spec 07 §2)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from kubestow.api.pod import Pod, Volume
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.volume_claims import claim_name, claim_not_found, is_fully_bound, ownership_error
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import PluginArgs, UtilizationShapePoint, VolumeBindingArgs
from kubestow.errors import ApiError, ConfigError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Registrations
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFlight
from kubestow.framework.reuse import PodReads, Reads, Reuse, Rule
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases
from kubestow.plugins._shared.curve import UtilizationCurve
from kubestow.plugins.volume_binding.affinity import MigratedNodes
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.plugins.volume_binding.binding import Reservation, VolumeBinder
from kubestow.plugins.volume_binding.delayed import is_delayed
from kubestow.plugins.volume_binding.free_volumes import VolumesByClass
from kubestow.plugins.volume_binding.hints import registrations
from kubestow.plugins.volume_binding.provisioning import Provisioning
from kubestow.plugins.volume_binding.scoring import score_of
from kubestow.plugins.volume_binding.search import Failure, VolumeSearch, VolumeSources

UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"

DEFAULT_SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)


class PodClaims(NamedTuple):
    """A pod's claims by binding state, in the order of its volumes."""

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]
    immediate: list[PersistentVolumeClaim]


class _Attempt(Rule):
    """What is kept from PreFilter on; all simulations of the attempt share it (spec 07 §8).

    `bound_version` is the version of the claims at which all claims of the pod were bound; -1 if
    they were not.
    """

    __slots__ = ("all_bound", "bound_version", "reservations", "search")

    def __init__(self, search: VolumeSearch | None, bound_version: int = -1) -> None:
        self.search = search
        self.bound_version = bound_version
        self.all_bound = search is None
        self.reservations: dict[str, Reservation] = {}

    def passes_all(self) -> bool:
        return self.search is None or self.search.passes_everywhere()


class VolumeBinding:
    name: ClassVar[str] = "VolumeBinding"
    args_type: ClassVar[type[PluginArgs] | None] = VolumeBindingArgs
    per_node: ClassVar[bool] = True
    reserves_filtered: ClassVar[bool] = True

    def __init__(self, args: VolumeBindingArgs | None, handle: Handle) -> None:
        # Which volumes a node reaches does not depend on the pods on it. With local disks the work
        # is done node by node. Pods whose answers are reused mount no storage, and score nothing.
        self.reuse = Reuse(
            filter=Reads.NODE,
            score=Reads.NODE,
            pod=PodReads.SPEC,
            basis=bases.volumes,
        )
        args = args or VolumeBindingArgs()
        if args.bind_timeout_seconds < 0:
            raise ConfigError("invalid BindTimeoutSeconds, should not be a negative value")
        self._curve = _curve_of(args, is_on=handle.feature_gates.enabled("StorageCapacityScoring"))
        self._metrics = handle.metrics
        objects = handle.objects
        self._stored_claims = objects.persistent_volume_claims
        self._classes = objects.storage_classes
        self._volumes = AssumeCache[PersistentVolume](
            objects.persistent_volumes, "persistentvolumes"
        )
        self._claims = AssumeCache[PersistentVolumeClaim](
            objects.persistent_volume_claims, "persistentvolumeclaims"
        )
        migrated = MigratedNodes(objects.csi_nodes)
        self._sources = VolumeSources(
            self._volumes,
            VolumesByClass(self._volumes),
            Provisioning(
                objects, no_place=int(Failure.NOTHING_TO_BIND), no_space=int(Failure.NO_SPACE)
            ),
            migrated,
        )
        self._binder = VolumeBinder(
            self._volumes,
            self._claims,
            objects,
            migrated,
            client=handle.client,
            clock=handle.clock,
            timeout_s=args.bind_timeout_seconds,
        )

    # --- filtering ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        volumes = _claim_volumes(pod.pod)
        if not volumes:
            state.write(self.name, _Attempt(None))
            return Status.skip()
        for volume, name in volumes:
            reason = self._why_unusable(pod.pod, volume, name)
            if reason:
                return Status.unresolvable(reason)
        claims = self._claims_of(pod.pod, volumes)
        if claims.immediate:
            return Status.unresolvable(UNBOUND_IMMEDIATE)
        search = VolumeSearch(claims.bound, claims.delayed, self._sources)
        bound_version = -1 if claims.delayed else self._claims.version
        state.write(self.name, _Attempt(search, bound_version))
        return None

    def filter_rule(self, state: CycleState, pod: PodInfo) -> Rule:
        return self._attempt(state)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        search = self._attempt(state).search
        codes = None if search is None else search.codes(nodes, state.timer)
        if codes is not None and (codes < 0).any():
            self._metrics.volume_stage_failed("predicate")
        return codes

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_volumes(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        search = self._attempt(state).search
        assert search is not None
        return search.status(code)

    # --- scoring ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        return Status.skip() if self._curve is None else None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        search = self._attempt(state).search
        if search is None or self._curve is None:
            return 0
        scores: list[int] = []
        for name in nodes.names:
            state.timer.pause()
            plan = search.plan_for(name)
            scores.append(0 if plan is None else score_of(plan, self._curve))
        return np.array(scores, np.int64)

    # --- binding ---

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt = self._attempt(state)
        search = attempt.search
        plan = None if search is None else search.plan_for(node_name)
        if (
            plan is None
            or attempt.bound_version == self._claims.version
            or self._are_all_bound(pod.pod)
        ):
            attempt.all_bound = True
            return None
        attempt.all_bound = False
        try:
            attempt.reservations[node_name] = self._binder.reserve(plan, node_name)
        except PluginError as error:
            self._metrics.volume_stage_failed("assume")
            return Status.from_error(error)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        attempt: _Attempt | None = state.get(self.name)
        reservation = None if attempt is None else attempt.reservations.get(node_name)
        if reservation is not None:
            self._binder.unreserve(reservation)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> PreFlight:
        attempt = self._attempt(state)
        if attempt.all_bound:
            return PreFlight(Status.skip(), allow_parallel=True)
        if node_name not in attempt.reservations:
            error = PluginError(f'no pod volume found for node "{node_name}"')
            return PreFlight(Status.from_error(error), allow_parallel=True)
        return PreFlight(None, allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt = self._attempt(state)
        if attempt.all_bound:
            return None
        reservation = attempt.reservations.get(node_name)
        if reservation is None:
            return Status.from_error(PluginError(f'no pod volumes found for node "{node_name}"'))
        try:
            await self._binder.bind(reservation, pod.pod, node_name)
        except (ApiError, PluginError) as error:
            self._metrics.volume_stage_failed("bind")
            return Status.from_error(error)
        return None

    # --- other ---

    def events(self) -> Registrations:
        return registrations()

    def assumed_volumes(self) -> list[PersistentVolume]:
        """Volumes decided for a claim that the informer has not delivered yet."""
        return self._volumes.assumed()

    def assumed_claims(self) -> list[PersistentVolumeClaim]:
        """Claims with a selected node that the informer has not delivered yet."""
        return self._claims.assumed()

    def _attempt(self, state: CycleState) -> _Attempt:
        return state.read(self.name)

    def _why_unusable(self, pod: Pod, volume: Volume, name: str) -> str:
        """Why the pod cannot run anywhere because of the volume's claim; empty if it can."""
        claim = self._stored_claims.get(pod.metadata.namespace, name)
        if claim is None:
            if volume.ephemeral is not None:
                return (
                    "waiting for ephemeral volume controller to create the "
                    f'persistentvolumeclaim "{name}"'
                )
            return claim_not_found(name)
        if claim.status.phase == "Lost":
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                f'"{claim.spec.volume_name}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        return ownership_error(pod, claim) if volume.ephemeral is not None else ""

    def _claims_of(self, pod: Pod, volumes: Sequence[tuple[Volume, str]]) -> PodClaims:
        """The pod's claims with pending decisions (spec 07 §2.3, step B); raises PluginError."""
        claims = PodClaims([], [], [])
        for volume, name in volumes:
            claim = self._claim(pod, volume, name)
            if is_fully_bound(claim):
                claims.bound.append(claim)
            elif is_delayed(claim, self._classes) and not claim.spec.volume_name:
                claims.delayed.append(claim)
            else:
                claims.immediate.append(claim)
        return claims

    def _claim(self, pod: Pod, volume: Volume, name: str) -> PersistentVolumeClaim:
        namespace = pod.metadata.namespace
        claim = self._claims.get(namespace, name)
        if claim is None:
            missing = self._claims.not_found(namespace, name)
            raise PluginError(f'error getting PVC "{namespace}/{name}": {missing}')
        error = ownership_error(pod, claim) if volume.ephemeral is not None else ""
        if error:
            raise PluginError(error)
        return claim

    def _are_all_bound(self, pod: Pod) -> bool:
        try:
            return all(
                is_fully_bound(self._claim(pod, volume, name))
                for volume, name in _claim_volumes(pod)
            )
        except PluginError:
            return False


def _claim_volumes(pod: Pod) -> list[tuple[Volume, str]]:
    """The volumes that refer to a claim, each with the claim's name."""
    found: list[tuple[Volume, str]] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            found.append((volume, name))
    return found


def _curve_of(args: VolumeBindingArgs, *, is_on: bool) -> UtilizationCurve | None:
    """The curve to score with; None if nothing is scored."""
    if not is_on:
        if args.shape is not None:
            raise ConfigError(
                "unexpected field `shape`, remove it or turn on the feature gate "
                "StorageCapacityScoring"
            )
        return None
    points = args.shape or DEFAULT_SHAPE
    _check_shape(points)
    return UtilizationCurve.from_args(points)


def _check_shape(points: Sequence[UtilizationShapePoint]) -> None:
    for before, after in pairwise(points):
        if before.utilization >= after.utilization:
            raise ConfigError("values must be sorted in increasing order")
    for point in points:
        if not 0 <= point.utilization <= 100:
            raise ConfigError("not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            raise ConfigError("not in valid range [0, 10]")
