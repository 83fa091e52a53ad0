"""What the plugin says of its arguments and of a pod's signature (spec 06 §6.3.1, §6.3.9)."""

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import ConfigError
from kubestow.framework.status import Status
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.testing.builders import make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.topology import make_spread

PLAIN = PodInfo(make_pod())
SPREAD = PodInfo(make_pod(spread=[make_spread("zone", "app=web")]))


def plugin(defaulting_type: str) -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(defaulting_type=defaulting_type), make_handle())


def test_no_pod_is_signed_where_constraints_apply() -> None:
    assert plugin("List").sign(PLAIN) == {}
    own = Status.unschedulable("pods with topology constraints are not signable")
    assert plugin("List").sign(SPREAD) == own
    assert plugin("System").sign(SPREAD) == own
    default = Status.unschedulable("pods with default topology constraints are not signable")
    assert plugin("System").sign(PLAIN) == default


def test_arguments_of_another_type_are_refused() -> None:
    text = "want args to be of type PodTopologySpreadArgs, got NoneType"
    with pytest.raises(ConfigError, match=text):
        PodTopologySpread(None, make_handle())
