"""Declared features of nodes and what pods require of them (spec 01 §5, 05 §11)."""

import pytest

from kubestow.api.declared_features import (
    KNOWN_FEATURES,
    known_features,
    required_features,
)
from kubestow.api.pod import (
    Container,
    ContainerRestartRule,
    EphemeralContainer,
    Pod,
    PodSpec,
    VolumeMount,
)

RESTART = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
MOUNT_OPTIONS = "VolumeBindMountOptions"
NO_EXEC = VolumeMount(bind_mount_options=("noexec",))
MOUNTING = Container(volume_mounts=(VolumeMount(), NO_EXEC))
RESTARTING = Container(restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),))
RESTARTING_ITSELF = Container(restart_policy_rules=(ContainerRestartRule(action="Restart"),))


def test_known_features_are_sorted() -> None:
    assert sorted(KNOWN_FEATURES) == list(KNOWN_FEATURES)


def named(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(KNOWN_FEATURES) if bits >> bit & 1)


@pytest.mark.parametrize(
    ("declared", "known"),
    [
        pytest.param((), (), id="none"),
        pytest.param(KNOWN_FEATURES, KNOWN_FEATURES, id="all"),
        pytest.param(("Foo", USER_NAMESPACES), (USER_NAMESPACES,), id="unknown-is-skipped"),
        pytest.param((RESTART, "Zzz"), (RESTART,), id="unknown-after-all-known"),
        pytest.param((RESTART, RESTART, USER_NAMESPACES), (RESTART, USER_NAMESPACES), id="twice"),
        pytest.param((USER_NAMESPACES, RESTART), (USER_NAMESPACES,), id="unsorted-loses-names"),
        pytest.param(("Zzz", RESTART), (), id="unsorted-loses-all"),
    ],
)
def test_node_features_are_merged_as_sorted_lists(
    declared: tuple[str, ...], known: tuple[str, ...]
) -> None:
    assert named(known_features(declared)) == known


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        pytest.param(PodSpec(), (), id="plain"),
        pytest.param(PodSpec(host_network=True), (), id="host-users-not-given"),
        pytest.param(PodSpec(host_network=True, host_users=True), (), id="host-users"),
        pytest.param(PodSpec(host_users=False), (), id="no-host-network"),
        pytest.param(
            PodSpec(host_network=True, host_users=False), (USER_NAMESPACES,), id="user-namespaces"
        ),
        pytest.param(PodSpec(containers=(Container(), RESTARTING)), (RESTART,), id="container"),
        pytest.param(PodSpec(init_containers=(RESTARTING,)), (RESTART,), id="init-container"),
        pytest.param(PodSpec(containers=(RESTARTING_ITSELF,)), (), id="restarts-itself-only"),
        pytest.param(PodSpec(containers=(MOUNTING,)), (MOUNT_OPTIONS,), id="mount-options"),
        pytest.param(
            PodSpec(init_containers=(MOUNTING,)), (MOUNT_OPTIONS,), id="init-mount-options"
        ),
        pytest.param(
            PodSpec(ephemeral_containers=(EphemeralContainer(volume_mounts=(NO_EXEC,)),)),
            (MOUNT_OPTIONS,),
            id="ephemeral-mount-options",
        ),
        pytest.param(
            PodSpec(containers=(Container(volume_mounts=(VolumeMount(),)),)), (), id="mount"
        ),
        pytest.param(
            PodSpec(containers=(RESTARTING,), host_network=True, host_users=False),
            (RESTART, USER_NAMESPACES),
            id="both",
        ),
    ],
)
def test_pod_requires_features(spec: PodSpec, required: tuple[str, ...]) -> None:
    assert named(required_features(Pod(spec=spec))) == required
