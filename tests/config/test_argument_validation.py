"""Validation of the arguments of plugins (spec 09 §3.5)."""

from typing import Any

import pytest

from kubestow.config.argument_validation import validate_args
from kubestow.config.arguments import decode_args
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def errors_of(plugin: str, gates: FeatureGates = DEFAULT_GATES, **args: Any) -> list[str]:
    return validate_args(decode_args(plugin, args, gates).args, "", gates)


@pytest.mark.parametrize(
    "plugin",
    [
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ],
)
def test_defaults_are_valid(plugin: str) -> None:
    assert errors_of(plugin) == []


PERCENTAGE, ABSOLUTE = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"


@pytest.mark.parametrize(
    ("percentage", "absolute", "errors"),
    [
        (0, 1, []),
        (100, 0, []),
        (101, 1, [f"{PERCENTAGE}: Invalid value: 101: not in valid range [0, 100]"]),
        (-1, 1, [f"{PERCENTAGE}: Invalid value: -1: not in valid range [0, 100]"]),
        (1, -1, [f"{ABSOLUTE}: Invalid value: -1: not in valid range [0, inf)"]),
        (
            0,
            0,
            [
                f"{PERCENTAGE}: Invalid value: 0: cannot be zero at the same time as {ABSOLUTE}",
                f"{ABSOLUTE}: Invalid value: 0: cannot be zero at the same time as {PERCENTAGE}",
            ],
        ),
    ],
)
def test_default_preemption(percentage: int, absolute: int, errors: list[str]) -> None:
    args = {PERCENTAGE: percentage, ABSOLUTE: absolute}
    assert errors_of("DefaultPreemption", **args) == errors


@pytest.mark.parametrize(("weight", "is_fine"), [(-1, False), (0, True), (100, True), (101, False)])
def test_inter_pod_affinity(weight: int, is_fine: bool) -> None:
    rule = f"hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"
    assert errors_of("InterPodAffinity", hardPodAffinityWeight=weight) == (
        [] if is_fine else [rule]
    )


def test_node_affinity_reports_all_invalid_terms_with_their_paths() -> None:
    bad_key = {"matchExpressions": [{"key": "-", "operator": "Exists"}]}
    bad_operator = {"matchFields": [{"key": "metadata.name", "operator": "Gt", "values": ["1"]}]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [bad_key]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": bad_operator}
        ],
    }
    assert errors_of("NodeAffinity", addedAffinity=affinity) == [
        "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
        f'.matchExpressions[0].key: Invalid value: "-": {NAME_RULE}',
        "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchFields[0].operator"
        ': Unsupported value: "Gt": supported values: "In", "NotIn"',
    ]


def test_node_resources_balanced_allocation() -> None:
    resources = [{"name": "cpu"}, {"name": "cpu", "weight": 2}]
    assert errors_of("NodeResourcesBalancedAllocation", resources=resources) == [
        'resources[1].name: Duplicate value: "cpu"',
        "resources[1].weight: Invalid value: 2: must be 1",
    ]


RATIO = {"type": "RequestedToCapacityRatio"}
SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


def point(utilization: int, score: int) -> dict[str, int]:
    return {"utilization": utilization, "score": score}


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        pytest.param(
            {"ignoredResources": ["example.com/a", "a b", ""]},
            [
                f'ignoredResources[1]: Invalid value: "a b": {NAME_RULE}',
                'ignoredResources[2]: Invalid value: "": name part must be non-empty',
                f'ignoredResources[2]: Invalid value: "": {NAME_RULE}',
            ],
            id="ignored-resources",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["example.com", "a.b/c"]},
            [
                'ignoredResourceGroups[1]: Invalid value: "a.b/c": '
                "resource group name can't contain '/'"
            ],
            id="ignored-groups",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "X"}},
            [
                'scoringStrategy.type: Unsupported value: "X": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ],
            id="strategy",
        ),
        pytest.param(
            {"scoringStrategy": {}},
            [
                'scoringStrategy.type: Unsupported value: "": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ],
            id="strategy-without-type",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 101}, {"name": "x", "weight": -1}],
                }
            },
            [
                "scoringStrategy.resources[0].weight: Invalid value: 101: "
                "resource weight of cpu not in valid range (0, 100]",
                "scoringStrategy.resources[1].weight: Invalid value: -1: "
                "resource weight of x not in valid range (0, 100]",
            ],
            id="weights",
        ),
        pytest.param(
            {"scoringStrategy": RATIO},
            [
                "scoringStrategy.requestedToCapacityRatio: Required value: "
                "must be specified when type is RequestedToCapacityRatio"
            ],
            id="ratio-missing",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "requestedToCapacityRatio": {"shape": [point(0, 0)]},
                }
            },
            [
                "scoringStrategy.requestedToCapacityRatio: Forbidden: "
                "must be nil when type is not RequestedToCapacityRatio"
            ],
            id="ratio-elsewhere",
        ),
        pytest.param(
            {"scoringStrategy": {**RATIO, "requestedToCapacityRatio": {}}},
            [f"{SHAPE}: Required value: at least one point must be specified"],
            id="no-points",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    **RATIO,
                    "requestedToCapacityRatio": {
                        "shape": [point(10, 11), point(10, -1), point(5, 0), point(101, 10)]
                    },
                }
            },
            [
                f"{SHAPE}[1].utilization: Invalid value: 10: "
                "values must be sorted in increasing order",
                f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]",
                f"{SHAPE}[1].score: Invalid value: -1: not in valid range [0, 10]",
                f"{SHAPE}[3].utilization: Invalid value: 101: not in valid range [0, 100]",
            ],
            id="points-only-first-disorder",
        ),
    ],
)
def test_node_resources_fit(args: dict[str, Any], errors: list[str]) -> None:
    assert errors_of("NodeResourcesFit", **args) == errors


def constraint(key: str, action: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": skew, **more}


AT = "defaultConstraints[0]"


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        pytest.param(
            {"defaultingType": "X"},
            ['defaultingType: Unsupported value: "X": supported values: "System", "List"'],
            id="defaulting-type",
        ),
        pytest.param(
            {"defaultConstraints": [constraint("zone", "ScheduleAnyway")]},
            [
                'defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
            ],
            id="system-with-constraints",
        ),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [constraint("", "", 0)]},
            [
                f"{AT}.maxSkew: Invalid value: 0: not in valid range (0, inf)",
                f"{AT}.topologyKey: Required value: can not be empty",
                f"{AT}.whenUnsatisfiable: Required value: can not be empty",
            ],
            id="empty",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [constraint("-", "Never", labelSelector={})],
            },
            [
                f'{AT}.topologyKey: Invalid value: "-": {NAME_RULE}',
                f'{AT}.whenUnsatisfiable: Unsupported value: "Never": supported values: '
                '"DoNotSchedule", "ScheduleAnyway"',
                f"{AT}.labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod",
            ],
            id="invalid",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    constraint("zone", "ScheduleAnyway"),
                    constraint("zone", "ScheduleAnyway", 2),
                    constraint("zone", "DoNotSchedule"),
                ],
            },
            ['defaultConstraints[1]: Duplicate value: "{zone, ScheduleAnyway}"'],
            id="twice",
        ),
    ],
)
def test_pod_topology_spread(args: dict[str, Any], errors: list[str]) -> None:
    assert errors_of("PodTopologySpread", **args) == errors


def test_volume_binding() -> None:
    assert errors_of("VolumeBinding", bindTimeoutSeconds=0) == []
    assert errors_of("VolumeBinding", bindTimeoutSeconds=-1) == [
        "bindTimeoutSeconds: Invalid value: -1: "
        "invalid BindTimeoutSeconds, should not be a negative value"
    ]


def test_the_shape_of_volume_binding_needs_its_gate() -> None:
    rule = "remove it or turn on the feature gate StorageCapacityScoring"
    assert errors_of("VolumeBinding", shape=[point(0, 10)]) == [
        f'shape: Invalid value: [{{"Utilization":0,"Score":10}}]: unexpected field `shape`, {rule}'
    ]
    gates = FeatureGates({"StorageCapacityScoring": True})
    assert errors_of("VolumeBinding", gates, shape=[point(0, 10)]) == []
    assert errors_of("VolumeBinding", gates, shape=[point(101, 10)]) == [
        "shape[0].utilization: Invalid value: 101: not in valid range [0, 100]"
    ]


@pytest.mark.parametrize(
    ("gates_off", "args", "errors"),
    [
        pytest.param((), {"filterTimeout": "0s", "bindingTimeout": "1s"}, [], id="least"),
        pytest.param(
            (),
            {"filterTimeout": "-1s", "bindingTimeout": "999ms"},
            [
                'filterTimeout: Invalid value: "-1s": must be zero or positive',
                'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            ],
            id="too-little",
        ),
        pytest.param(
            ("DRASchedulerFilterTimeout",),
            {"filterTimeout": "10s"},
            ["filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"],
            id="no-filter-timeout",
        ),
        pytest.param(
            ("DRADeviceBindingConditions",),
            {"bindingTimeout": "10s"},
            [
                "bindingTimeout: Forbidden: DRADeviceBindingConditions or "
                "DRAResourceClaimDeviceStatus feature gate is disabled"
            ],
            id="no-binding-timeout",
        ),
        pytest.param(
            ("DRASchedulerFilterTimeout", "DRAResourceClaimDeviceStatus"), {}, [], id="none-given"
        ),
    ],
)
def test_dynamic_resources(
    gates_off: tuple[str, ...], args: dict[str, str], errors: list[str]
) -> None:
    gates = FeatureGates(dict.fromkeys(gates_off, False))
    assert errors_of("DynamicResources", gates, **args) == errors


def test_a_path_leads_to_the_arguments() -> None:
    args = decode_args("InterPodAffinity", {"hardPodAffinityWeight": 101}, DEFAULT_GATES).args
    (error,) = validate_args(args, "profiles[1].pluginConfig[2].args", DEFAULT_GATES)
    assert error.startswith("profiles[1].pluginConfig[2].args.hardPodAffinityWeight: ")
