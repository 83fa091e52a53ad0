"""Whether an elector can be built of settings that were not validated (spec 09 §2.1, §6)."""

import pytest

from kubestow.config.connection import LeaderElectionConfig, check_election
from kubestow.config.scalars import Duration, seconds
from kubestow.errors import ConfigError

LOCK = "couldn't create resource lock: "
ELECTOR = "couldn't create leader elector: "


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param(
            LeaderElectionConfig(lease_duration=seconds(5)),
            f"{ELECTOR}leaseDuration must be greater than renewDeadline",
            id="2.1-lease-of-5s",
        ),
        pytest.param(
            LeaderElectionConfig(lease_duration=seconds(10)),
            f"{ELECTOR}leaseDuration must be greater than renewDeadline",
            id="equal-is-not-greater",
        ),
        pytest.param(
            LeaderElectionConfig(retry_period=Duration.parse("8.34s")),
            f"{ELECTOR}renewDeadline must be greater than retryPeriod*JitterFactor",
            id="retry-too-slow",
        ),
        pytest.param(
            LeaderElectionConfig(renew_deadline=seconds(-3), retry_period=seconds(-4)),
            f"{ELECTOR}renewDeadline must be greater than zero",
            id="negative",
        ),
        pytest.param(
            LeaderElectionConfig(retry_period=Duration()),
            f"{ELECTOR}retryPeriod must be greater than zero",
            id="zero",
        ),
        pytest.param(
            LeaderElectionConfig(resource_lock="endpoints"),
            f"{LOCK}endpoints lock is removed, migrate to leases",
            id="endpoints",
        ),
        pytest.param(
            LeaderElectionConfig(resource_lock="configmaps"),
            f"{LOCK}configmaps lock is removed, migrate to leases",
            id="configmaps",
        ),
        pytest.param(
            LeaderElectionConfig(resource_lock="endpointsleases"),
            f"{LOCK}endpointsleases lock is removed, migrate to leases",
            id="endpointsleases",
        ),
        pytest.param(
            LeaderElectionConfig(resource_lock="configmapsleases"),
            f"{LOCK}configmapsleases lock is removed, migrated to leases",
            id="configmapsleases",
        ),
        pytest.param(
            LeaderElectionConfig(resource_lock="file", lease_duration=seconds(1)),
            f"{LOCK}Invalid lock-type file",
            id="the-lock-is-made-first",
        ),
    ],
)
def test_an_elector_that_cannot_be_built(config: LeaderElectionConfig, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_election(config)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "config",
    [
        LeaderElectionConfig(),
        LeaderElectionConfig(retry_period=Duration.parse("8.33s")),
        LeaderElectionConfig(leader_elect=False, resource_lock="file", lease_duration=seconds(1)),
    ],
)
def test_an_elector_that_can_be_built_or_is_not_needed(config: LeaderElectionConfig) -> None:
    check_election(config)
