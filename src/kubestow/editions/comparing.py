"""The schedulers of v1.9, v1.17 and v1.20 as variants.

A variant may bring a Policy (all three) or a KubeSchedulerConfiguration (v1.17 and v1.20).
"""

import msgspec
import numpy as np

from kubestow.api.decode import is_map
from kubestow.config.documents import read_document
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.shared.policy import Policy, decode_policy, provider_policy, validate_policy
from kubestow.editions.v1_9.engine.algorithm import Algorithm, build_algorithm
from kubestow.editions.v1_9.engine.decide import DecisionV19
from kubestow.editions.v1_9.plugins.reasons import FITS
from kubestow.editions.v1_9.simulator.embedded import cluster_maker
from kubestow.editions.v1_20.policy_plugins import profile_of_policy
from kubestow.editions.v1_20.profiles import DEFAULT_PROVIDER, default_profile
from kubestow.errors import ConfigError
from kubestow.simulator.comparison.played import scenario_of
from kubestow.simulator.comparison.schedulers import PluginScheduler, scheduler_with_plugins
from kubestow.simulator.comparison.task import (
    Material,
    NodeView,
    PodChoice,
    SchedulerVariant,
    Task,
)
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import MakeCluster, run_scenario


def v1_9_algorithm(variant: SchedulerVariant) -> Algorithm:
    """The rules of v1.9; raises ConfigError that names the file."""
    if variant.plugins:
        raise ConfigError("v1.9 has no plugins: leave them out, or take a newer version")
    policy = _policy(variant) if variant.config else provider_policy(DEFAULT_PROVIDER)
    # Not the environment of the process, which is another on each worker.
    algorithm = build_algorithm(policy, environment={})
    extenders = tuple(msgspec.structs.replace(one, bind_verb="") for one in algorithm.extenders)
    return algorithm._replace(extenders=extenders)


def scheduler_of_edition(variant: SchedulerVariant) -> PluginScheduler:
    """The scheduler of v1.17 or v1.20; raises ConfigError that names the file."""
    edition = edition_named(variant.version)
    profile = default_profile(FeatureGates({}, edition))
    rules = rules_of(edition)
    default = SchedulerConfig(profiles=(profile,))
    if not _has_policy(variant):
        return scheduler_with_plugins(variant, rules, default=default, plugins=profile.plugins)
    policy = _policy(variant)
    validate_policy(policy)
    profile = profile_of_policy(policy, profile, edition=edition, hard_pod_affinity_weight=1)
    extenders = tuple(extender.as_config() for extender in policy.extenders)
    default = SchedulerConfig(profiles=(profile,), extenders=extenders)
    alone = msgspec.structs.replace(variant, config="")
    return scheduler_with_plugins(alone, rules, default=default)


def _has_policy(variant: SchedulerVariant) -> bool:
    if not variant.config:
        return False
    document = read_document(variant.config.encode()).value
    return is_map(document) and document.get("kind", "Policy") == "Policy"


def _policy(variant: SchedulerVariant) -> Policy:
    try:
        return decode_policy(variant.config.encode())
    except ConfigError as error:
        raise ConfigError(f'policy "{variant.config_name}": {error}') from error


def cluster_of_v1_9(variant: SchedulerVariant) -> MakeCluster:
    """What makes clusters with the scheduler of v1.9; raises ConfigError that names the file."""
    return cluster_maker(v1_9_algorithm(variant), counts_errors=True)


def run_v1_9(material: Material, task: Task, choices: dict[str, PodChoice]) -> RunResult:
    """A task with the rules of v1.9; `choices` gets those of watched pods."""
    algorithm = v1_9_algorithm(task.variant)

    def decided(decision: DecisionV19) -> None:
        pod = decision.pod
        names = task.watched.get(pod.key)
        if names is not None and decision.is_scheduled:
            nodes = dict.fromkeys((decision.node_name, *names))
            views = {name: _view(decision, name) for name in nodes}
            choices[pod.key] = PodChoice(node=decision.node_name, views=views)

    make_cluster = cluster_maker(algorithm, listeners=[decided], counts_errors=True)
    # The configuration is that of a scheduler which is not built.
    config = SchedulerConfig()
    with scenario_of(material, config, task.variant.without) as scenario:
        return run_scenario(scenario, config, seed=task.seed, make_cluster=make_cluster)


def _view(decision: DecisionV19, name: str) -> NodeView:
    """What the attempt found of a node. Of scores only the sum is known."""
    if name not in decision.node_names:
        return NodeView(verdict="Absent")
    row = decision.node_names.index(name)
    positions: list[int] = np.flatnonzero(decision.feasible == row).tolist()
    if positions:
        total = None if decision.total is None else int(decision.total[positions[0]])
        return NodeView(verdict="Feasible", total=total)
    rejecting = [
        each.predicate
        for each in decision.by_predicate
        if each.verdicts.codes is not None and each.verdicts.codes[row] > FITS
    ]
    return NodeView(
        verdict="Rejected",
        plugin=rejecting[0] if rejecting else "extender",
        reason=", ".join(decision.reasons(row)),
    )
