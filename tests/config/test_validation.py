"""Validation of a configuration, in upstream's order and with its texts (spec 09 §3.3 to §3.6)."""

import json
from typing import Any

import msgspec
import pytest

from kubestow.config.decoding import decode_config
from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config, validate_config
from kubestow.errors import ConfigError

REMOVED = (
    'was invalid in version "v1" '
    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
)


def decode(**fields: Any) -> SchedulerConfig:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **fields,
    }
    return decode_config(json.dumps(document).encode())


def error_of(**fields: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        check_config(decode(**fields))
    return str(raised.value)


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return profile(pluginConfig=[{"name": plugin, "args": fields}])


def test_the_default_configuration_is_valid() -> None:
    assert validate_config(complete_config(SchedulerConfig())) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"parallelism": 0},
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
            id="3.6-1",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            id="3.6-2",
        ),
        pytest.param(
            {"percentageOfNodesToScore": -1},
            "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
            id="negative-percentage",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 20},
            "podMaxBackoffSeconds: Invalid value: 10: "
            "must be greater than or equal to PodInitialBackoffSeconds",
            id="3.6-3",
        ),
        pytest.param(
            {"parallelism": -1, "podInitialBackoffSeconds": 0},
            "[parallelism: Invalid value: -1: should be an integer value greater than zero, "
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0]",
            id="3.6-4",
        ),
        pytest.param(
            args("InterPodAffinity", hardPodAffinityWeight=101),
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: "
            "not in valid range [0, 100]",
            id="3.6-5",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "a", "prioritizeVerb": "p"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="3.6-6",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            "clientConnection.burst: Invalid value: -1: must be non-negative",
            id="3.6-7",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "8s"}},
            'leaderElection.leaseDuration: Invalid value: "10s": '
            "must be greater than `RenewDeadline`",
            id="2.1-4",
        ),
        pytest.param(
            {"leaderElection": {"renewDeadline": "-1s", "retryPeriod": "-2s"}},
            '[leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero, '
            'leaderElection.retryPeriod: Invalid value: "-2s": must be greater than zero]',
            id="3.3-durations",
        ),
        pytest.param(
            {"leaderElection": {"resourceLock": "endpoints"}},
            'leaderElection.resourceLock: Invalid value: "endpoints": '
            'resourceLock value must be "leases"',
            id="3.3-lock",
        ),
        pytest.param(
            profile(schedulerName=""),
            "profiles[0].schedulerName: Required value",
            id="3.4-nameless",
        ),
        pytest.param(
            {"profiles": [{}, {"schedulerName": "a"}]},
            "profiles[0].schedulerName: Required value",
            id="3.4-nameless-among-others",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName: Duplicate value: {}",
            id="3.4-same-name",
        ),
        pytest.param(
            profile(percentageOfNodesToScore=101),
            "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            id="percentage-of-a-profile",
        ),
        pytest.param(
            profile(plugins={"filter": {"enabled": [{"name": "EBSLimits"}]}}),
            f'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": {REMOVED}',
            id="3.6-removed-plugin",
        ),
        pytest.param(
            profile(pluginConfig=[{"name": "NodePorts"}, {"name": "CinderLimits"}]),
            f'profiles[0].pluginConfig[1]: Invalid value: "CinderLimits": {REMOVED}',
            id="3.6-arguments-of-a-removed-plugin",
        ),
        pytest.param(
            profile(pluginConfig=[{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]),
            'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
            id="3.6-arguments-twice",
        ),
        pytest.param(
            profile(plugins={"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}),
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
            "only one queue sort plugin can be enabled",
            id="3.6-two-orders",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {
                        "schedulerName": "b",
                        "plugins": {
                            "queueSort": {
                                "enabled": [{"name": "Other"}],
                                "disabled": [{"name": "*"}],
                            }
                        },
                    },
                ]
            },
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"Other","Weight":0}]'
            ',"Disabled":[{"Name":"*","Weight":0}]}: must be the same for all profiles',
            id="3.4-8",
        ),
        pytest.param(
            {
                "profiles": [
                    {
                        "schedulerName": name,
                        "plugins": {"queueSort": {"enabled": [{"name": "Mine"}]}},
                        "pluginConfig": [{"name": "Mine", "args": {"by": name}}],
                    }
                    for name in ("a", "b")
                ]
            },
            'profiles[1].pluginConfig.args: Invalid value: {"by":"b"}: '
            "queueSort must be the same for all profiles",
            id="3.6-arguments-of-the-order",
        ),
    ],
)
def test_invalid_configurations(fields: dict[str, Any], message: str) -> None:
    assert error_of(**fields) == message


def test_a_set_without_entries_prints_null() -> None:
    queue_sort = {"queueSort": {"enabled": [{"name": "Mine"}]}}
    first, second = {"schedulerName": "a", "plugins": queue_sort}, {"schedulerName": "b"}
    assert error_of(profiles=[first, second]) == (
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":null}: '
        "must be the same for all profiles"
    )


def test_names_of_the_lock_can_only_be_emptied_by_flags() -> None:
    config = decode()
    election = msgspec.structs.replace(
        config.leader_election, resource_lock="", resource_name="", resource_namespace=""
    )
    assert validate_config(msgspec.structs.replace(config, leader_election=election)) == [
        "leaderElection.resourceLock: Required value: resourceLock is required",
        "leaderElection.resourceNamespace: Required value: resourceNamespace is required",
        "leaderElection.resourceName: Required value: resourceName is required",
        'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
    ]


def test_without_election_its_settings_do_not_matter() -> None:
    fields = {"leaderElect": False, "leaseDuration": "1s", "resourceLock": "endpoints"}
    check_config(decode(leaderElection=fields))


@pytest.mark.parametrize("point", ["multiPoint", "placementGenerate", "placementScore"])
def test_where_removed_plugins_are_not_checked(point: str) -> None:
    check_config(decode(**profile(plugins={point: {"enabled": [{"name": "EBSLimits"}]}})))


def test_a_removed_plugin_may_be_disabled() -> None:
    check_config(decode(**profile(plugins={"filter": {"disabled": [{"name": "EBSLimits"}]}})))


def test_arguments_of_node_resources_fit_are_not_validated_here() -> None:
    check_config(decode(**args("NodeResourcesFit", scoringStrategy={"type": "X"})))


def test_errors_are_in_upstreams_order() -> None:
    config = decode(
        extenders=[{"prioritizeVerb": "p"}],
        podMaxBackoffSeconds=0,
        percentageOfNodesToScore=200,
        profiles=[
            {
                "schedulerName": "",
                "percentageOfNodesToScore": 300,
                "plugins": {
                    "score": {"enabled": [{"name": "EBSLimits"}]},
                    "filter": {"enabled": [{"name": "EBSLimits"}]},
                    "queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]},
                },
                "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": -1}}],
            },
            {"schedulerName": ""},
        ],
        parallelism=0,
        leaderElection={"leaseDuration": "1s", "resourceLock": "x"},
        clientConnection={"burst": -1},
    )
    assert [error.partition(":")[0] for error in validate_config(config)] == [
        "clientConnection.burst",
        "leaderElection.leaseDuration",
        "leaderElection.resourceLock",
        "parallelism",
        "profiles[0].schedulerName",
        "profiles[0].percentageOfNodesToScore",
        "profiles[0].plugins.filter.enabled[0]",
        "profiles[0].plugins.score.enabled[0]",
        "profiles[0].pluginConfig[0].args.bindTimeoutSeconds",
        "profiles[1].schedulerName",
        "profiles[1].schedulerName",
        "profiles[0].plugins.queueSort.Enabled",
        "profiles[1].plugins.queueSort",
        "percentageOfNodesToScore",
        "podMaxBackoffSeconds",
        "extenders[0].weight",
    ]
