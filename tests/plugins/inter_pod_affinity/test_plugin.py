"""What the plugin says of its arguments (spec 06 §6.2.1)."""

import pytest

from kubestow.errors import ConfigError
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.testing.handles import make_handle


def test_arguments_of_another_type_are_refused() -> None:
    text = "want args to be of type InterPodAffinityArgs, got str"
    with pytest.raises(ConfigError, match=text):
        InterPodAffinity("nonsense", make_handle())
