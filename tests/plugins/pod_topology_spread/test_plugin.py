"""What the plugin says of its arguments (spec 06 §6.3.1)."""

import pytest

from kubestow.errors import ConfigError
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.testing.handles import make_handle


def test_arguments_of_another_type_are_refused() -> None:
    text = "want args to be of type PodTopologySpreadArgs, got NoneType"
    with pytest.raises(ConfigError, match=text):
        PodTopologySpread(None, make_handle())
