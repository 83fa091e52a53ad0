"""The connection to the API server, and leader election (spec 09 §3.3)."""

from typing import Final

import msgspec

from kubestow.config.field_errors import child, invalid, required
from kubestow.config.scalars import Duration, Int32, seconds
from kubestow.errors import ConfigError

LEASES: Final = "leases"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
# A renewal waits up to this factor longer, so that candidates do not retry at the same time.
JITTER_FACTOR: Final = 1.2
_REMOVED_LOCKS: Final = {
    "endpoints": "migrate",
    "configmaps": "migrate",
    "endpointsleases": "migrate",
    "configmapsleases": "migrated",  # upstream's wording differs in this one
}


class LeaderElectionConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    leader_elect: bool = True
    lease_duration: Duration = seconds(15)
    renew_deadline: Duration = seconds(10)
    retry_period: Duration = seconds(2)
    resource_lock: str = LEASES
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnectionConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = PROTOBUF
    # Requests per second; negative means no limit.
    qps: float = 50.0
    burst: Int32 = 100


def complete_leader_election(config: LeaderElectionConfig) -> LeaderElectionConfig:
    """Zero durations and empty names mean the default."""
    return LeaderElectionConfig(
        leader_elect=config.leader_elect,
        lease_duration=config.lease_duration or seconds(15),
        renew_deadline=config.renew_deadline or seconds(10),
        retry_period=config.retry_period or seconds(2),
        resource_lock=config.resource_lock or LEASES,
        resource_name=config.resource_name or "kube-scheduler",
        resource_namespace=config.resource_namespace or "kube-system",
    )


def complete_client_connection(config: ClientConnectionConfig) -> ClientConnectionConfig:
    """A rate of 0 means the default, -1 no limit."""
    return ClientConnectionConfig(
        kubeconfig=config.kubeconfig,
        accept_content_types=config.accept_content_types,
        content_type=config.content_type or PROTOBUF,
        qps=config.qps or 50.0,
        burst=config.burst or 100,
    )


def validate_client_connection(config: ClientConnectionConfig, path: str) -> list[str]:
    if config.burst < 0:
        return [invalid(child(path, "burst"), config.burst, "must be non-negative")]
    return []


def validate_leader_election(config: LeaderElectionConfig, path: str) -> list[str]:
    if not config.leader_elect:
        return []
    durations = (
        ("leaseDuration", config.lease_duration),
        ("renewDeadline", config.renew_deadline),
        ("retryPeriod", config.retry_period),
    )
    errors = [
        invalid(child(path, name), value, "must be greater than zero")
        for name, value in durations
        if value <= 0
    ]
    if config.lease_duration <= config.renew_deadline:
        # Spec 09 §2.1, example 4: the value printed is that of the other field.
        rule = "must be greater than `RenewDeadline`"
        errors.append(invalid(child(path, "leaseDuration"), config.renew_deadline, rule))
    texts = (
        ("resourceLock", config.resource_lock),
        ("resourceNamespace", config.resource_namespace),
        ("resourceName", config.resource_name),
    )
    errors += [
        required(child(path, name), f"{name} is required") for name, value in texts if not value
    ]
    return errors


def validate_resource_lock(config: LeaderElectionConfig, path: str) -> list[str]:
    if not config.leader_elect or config.resource_lock == LEASES:
        return []
    rule = f'resourceLock value must be "{LEASES}"'
    return [invalid(child(path, "resourceLock"), config.resource_lock, rule)]


def check_election(config: LeaderElectionConfig) -> None:
    """Raise ConfigError if no elector can be built: settings from flags alone are not validated
    before (spec 09 §2.1, §6)."""
    if not config.leader_elect:
        return
    lock = config.resource_lock
    if lock in _REMOVED_LOCKS:
        hint = f"{lock} lock is removed, {_REMOVED_LOCKS[lock]} to {LEASES}"
        raise ConfigError(f"couldn't create resource lock: {hint}")
    if lock != LEASES:
        raise ConfigError(f"couldn't create resource lock: Invalid lock-type {lock}")
    problem = _elector_problem(config)
    if problem:
        raise ConfigError(f"couldn't create leader elector: {problem}")


def _elector_problem(config: LeaderElectionConfig) -> str:
    if config.lease_duration <= config.renew_deadline:
        return "leaseDuration must be greater than renewDeadline"
    if config.renew_deadline <= int(JITTER_FACTOR * config.retry_period):
        return "renewDeadline must be greater than retryPeriod*JitterFactor"
    durations = (
        ("leaseDuration", config.lease_duration),
        ("renewDeadline", config.renew_deadline),
        ("retryPeriod", config.retry_period),
    )
    return next((f"{name} must be greater than zero" for name, value in durations if value < 1), "")
