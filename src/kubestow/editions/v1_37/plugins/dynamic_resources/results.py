"""What is written into a claim that gets devices in v1.37 (spec 12 §10.2 a, §10.3)."""

from collections.abc import Sequence

import msgspec

from kubestow.api.device import (
    DeviceAllocationConfiguration,
    DeviceClaimConfiguration,
    DeviceRequestAllocationResult,
)
from kubestow.editions.v1_37.plugins.dynamic_resources.features import FeaturesV137
from kubestow.plugins.dynamic_resources.draft import Pick
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestPlan
from kubestow.plugins.dynamic_resources.results import AllocationMaker, is_named


class AllocationMakerV137(AllocationMaker):
    def __init__(self, features: Features) -> None:
        super().__init__(features)
        assert isinstance(features, FeaturesV137), features
        self._lists_operations = features.is_experimental

    def _result(self, pick: Pick) -> DeviceRequestAllocationResult:
        result = super()._result(pick)
        operations = pick.published.of.spec.skip_node_operations
        if not operations or not self._lists_operations:
            return result
        return msgspec.structs.replace(result, skip_node_operations=operations)

    def _configs(
        self, plan: ClaimPlan, chosen: Sequence[RequestPlan]
    ) -> list[DeviceAllocationConfiguration]:
        """One that is for all requests names none of them."""
        return [
            msgspec.structs.replace(config, requests=())
            if all(is_named(each, config.requests) for each in chosen)
            else config
            for config in super()._configs(plan, chosen)
        ]

    def _claim_configs(
        self, config: DeviceClaimConfiguration, chosen: Sequence[RequestPlan]
    ) -> list[DeviceAllocationConfiguration]:
        """Once, also if it names several requests."""
        return super()._claim_configs(config, chosen)[:1]
