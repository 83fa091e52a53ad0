"""What the plugin says of its arguments and of a pod's signature (spec 06 §6.2.1, §6.2.9)."""

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.errors import ConfigError
from kubestow.framework.status import Status
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.testing.builders import make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.topology import make_affinity, make_pod_term

PLAIN = PodInfo(make_pod("plain", labels={"app": "web"}))
NEAR = PodInfo(make_pod("near", affinity=make_affinity(near=[make_pod_term("zone", "app=web")])))


def test_only_pods_without_affinity_are_signed_by_their_labels() -> None:
    assert make_plugin().sign(PLAIN) == {"v1.Pod.Labels": (("app", "web"),)}
    assert make_plugin().sign(NEAR) == Status.unschedulable(
        "pods with InterPodAffinity are not signable"
    )
    assert make_plugin(ignores_existing=True).sign(PLAIN) == {}


def test_arguments_of_another_type_are_refused() -> None:
    text = "want args to be of type InterPodAffinityArgs, got str"
    with pytest.raises(ConfigError, match=text):
        InterPodAffinity("nonsense", make_handle())


def make_plugin(*, ignores_existing: bool = False) -> InterPodAffinity:
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=ignores_existing)
    return InterPodAffinity(args, make_handle())
