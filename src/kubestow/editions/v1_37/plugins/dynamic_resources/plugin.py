"""DynamicResources of v1.37 as the framework calls it (spec 12 §5.1, §10)."""

from collections.abc import Sequence
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.editions.v1_37.api.deferred import DEFERRED_RESIZES, is_deferred
from kubestow.editions.v1_37.plugins.dynamic_resources.binding import ClaimBinderV137
from kubestow.editions.v1_37.plugins.dynamic_resources.features import features_of_v137
from kubestow.editions.v1_37.plugins.dynamic_resources.fitness import FitnessV137
from kubestow.editions.v1_37.plugins.dynamic_resources.hints import ClaimHintsV137
from kubestow.editions.v1_37.plugins.dynamic_resources.pools import PoolGatheringV137
from kubestow.editions.v1_37.plugins.dynamic_resources.results import AllocationMakerV137
from kubestow.editions.v1_37.queue.narrowing import Narrowing
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import Action, ClusterEvent, Resource
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import PostFilterResult
from kubestow.framework.status import Code, Status
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.dynamic_resources.allocator import AllocationRules

_NOTHING: Final = Status(Code.UNSCHEDULABLE)


class DynamicResourcesV137(DynamicResources):
    allocation_rules = AllocationRules(
        features_of_v137, PoolGatheringV137, FitnessV137, AllocationMakerV137
    )
    hints_type = ClaimHintsV137
    binder_type = ClaimBinderV137
    no_claims = _NOTHING
    still_not = _NOTHING
    # Spec 12 §18.
    checks_shared = True

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._has_resizes = handle.feature_gates.enabled(DEFERRED_RESIZES)

    def narrowings(self) -> Sequence[Narrowing]:
        """Spec 12 §3.5."""
        assert isinstance(self._hints, ClaimHintsV137), self._hints
        changes = Action.ADD | Action.UPDATE | Action.DELETE
        event = ClusterEvent(Resource.RESOURCE_CLAIM, changes)
        return [Narrowing(event, self._hints.find_concerned)]

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        # A deferred resize has its devices already (§11).
        if self._has_resizes and is_deferred(pod.pod):
            return None, _NOTHING
        return super().post_filter(state, pod, diagnosis)
