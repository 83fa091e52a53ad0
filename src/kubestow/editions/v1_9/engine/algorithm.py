"""From a Policy to the rules of a v1.9 scheduler (spec 05 §16.1, 09 §13.2)."""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubestow.config.extenders import ExtenderConfig
from kubestow.editions.flags import AlgorithmOptions
from kubestow.editions.shared.algorithm_source import policy_of
from kubestow.editions.shared.policy import (
    MANDATORY_PREDICATES,
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    check_algorithm_name,
    hard_weight_of,
    validate_policy,
)
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Predicate, Priority
from kubestow.editions.v1_9.plugins.predicates.labels_presence import LabelsPresence
from kubestow.editions.v1_9.plugins.predicates.service_affinity import ServiceAffinity
from kubestow.editions.v1_9.plugins.priorities.label_preference import LabelPreference
from kubestow.editions.v1_9.plugins.priorities.service_anti_affinity import ServiceAntiAffinity
from kubestow.editions.v1_9.plugins.registry import PREDICATES, PRIORITIES, Settings
from kubestow.errors import ConfigError

INT64_MAX = 2**63 - 1


class WeightedPriority(NamedTuple):
    priority: Priority
    weight: int


class Algorithm(NamedTuple):
    """Predicates and priorities are sorted by name, which upstream does for some and leaves to a
    hash map for others. Extenders are in the order of the Policy."""

    predicates: tuple[Predicate, ...]
    priorities: tuple[WeightedPriority, ...]
    hard_pod_affinity_weight: int = 1
    extenders: tuple[ExtenderConfig, ...] = ()


def build_algorithm(
    policy: Policy,
    *,
    hard_pod_affinity_weight: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Algorithm:
    """The rules of a Policy; raises ConfigError.

    `hard_pod_affinity_weight` is the flag, for a Policy without the field; `environment` are the
    variables of the process.
    """
    validate_policy(policy)
    weight = hard_weight_of(policy, hard_pod_affinity_weight)
    settings = Settings(weight, environment or {})
    # Of two entries with one name the last counts.
    mandatory = (PredicatePolicy(name=name) for name in MANDATORY_PREDICATES)
    predicates = {
        entry.name: _predicate(entry, settings)
        for entry in (*mandatory, *(policy.predicates or ()))
    }
    priorities = {
        entry.name: WeightedPriority(_priority(entry, settings), entry.weight)
        for entry in policy.priorities or ()
    }
    if sum(entry.weight * MAX_PRIORITY for entry in priorities.values()) > INT64_MAX:
        raise ConfigError("Total priority of priority functions has overflown")
    return Algorithm(
        tuple(predicates[name] for name in sorted(predicates)),
        tuple(priorities[name] for name in sorted(priorities)),
        weight,
        tuple(extender.as_config() for extender in policy.extenders),
    )


def _predicate(entry: PredicatePolicy, settings: Settings) -> Predicate:
    check_algorithm_name(entry.name)
    argument = entry.argument
    if argument is None:
        factory = PREDICATES.get(entry.name)
        if factory is None:
            raise ConfigError(_unknown("Predicate", entry.name, PREDICATES))
        return factory(entry.name, settings)
    affinity, presence = argument.service_affinity, argument.labels_presence
    if affinity is not None and presence is None:
        return ServiceAffinity(entry.name, labels=affinity.labels)
    if presence is not None and affinity is None:
        return LabelsPresence(entry.name, labels=presence.labels, presence=presence.presence)
    count = sum(found is not None for found in (affinity, presence))
    raise ConfigError(
        f"Exactly 1 predicate argument is required, numArgs: {count}, Predicate: {entry.name}"
    )


def _priority(entry: PriorityPolicy, settings: Settings) -> Priority:
    check_algorithm_name(entry.name)
    argument = entry.argument
    if argument is None:
        factory = PRIORITIES.get(entry.name)
        if factory is None:
            raise ConfigError(_unknown("Priority", entry.name, PRIORITIES))
        return factory(entry.name, settings)
    apart, preference = argument.service_anti_affinity, argument.label_preference
    if apart is not None and preference is None:
        return ServiceAntiAffinity(entry.name, label=apart.label)
    if preference is not None and apart is None:
        return LabelPreference(entry.name, label=preference.label, presence=preference.presence)
    count = sum(found is not None for found in (apart, preference))
    raise ConfigError(
        f"Exactly 1 priority argument is required, numArgs: {count}, Priority: {entry.name}"
    )


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    return (
        f"Invalid configuration: {what} type not found for {name}; "
        f"known are {', '.join(sorted(known))}"
    )


def algorithm_of(
    options: AlgorithmOptions,
    config_map_data: Mapping[str, str] | None,
    environment: Mapping[str, str] = os.environ,
) -> Algorithm:
    """The rules of the flags; raises ConfigError."""
    policy = policy_of(options, config_map_data)
    try:
        return build_algorithm(
            policy,
            hard_pod_affinity_weight=options.hard_pod_affinity_symmetric_weight,
            environment=environment,
        )
    except ConfigError as error:
        if options.source == "provider":
            raise
        raise ConfigError(f"couldn't create scheduler from policy: {error}") from error
