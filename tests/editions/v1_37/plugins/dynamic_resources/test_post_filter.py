"""PostFilter of DynamicResources in v1.37 (spec 12 §11)."""

import pytest

from kubestow.api.decode import convert
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.editions.v1_37 import EDITION
from kubestow.editions.v1_37.api.deferred import DEFERRED_RESIZES
from kubestow.editions.v1_37.plugins.dynamic_resources import DynamicResourcesV137
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.status import Code
from kubestow.testing import make_handle


def test_a_deferred_resize_is_left_alone_only_with_its_gate() -> None:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    pod = PodInfo(convert(Pod, {"metadata": {"name": "p"}, "status": {"conditions": [pending]}}))
    # Another plugin rejected the pod in PreFilter, so there is no state.
    state, diagnosis = CycleState(), Diagnosis([])
    for is_on in (True, False):
        gates = FeatureGates({DEFERRED_RESIZES: is_on}, EDITION)
        handle = make_handle(feature_gates=gates)
        plugin = DynamicResourcesV137(DynamicResourcesArgs(), handle)
        if is_on:
            _, status = plugin.post_filter(state, pod, diagnosis)
            assert status.code == Code.UNSCHEDULABLE
        else:
            with pytest.raises(PluginError, match="not found"):
                plugin.post_filter(state, pod, diagnosis)
