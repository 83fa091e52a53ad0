"""Objects that decode but are not valid are named."""

import pytest

from kubestow.api.check import check_object
from kubestow.api.decode import KINDS, convert
from kubestow.api.meta import JsonObject
from kubestow.errors import DecodeError

BOGUS = {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Foo"}]}
LABEL_OPERATORS = "In, NotIn, Exists, DoesNotExist"
NODE_OPERATORS = f"{LABEL_OPERATORS}, Gt, Lt"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def with_affinity(kind: str, affinity: JsonObject) -> JsonObject:
    return {"affinity": {kind: affinity}}


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        pytest.param(
            "Pod",
            {"spec": with_affinity("nodeAffinity", {REQUIRED: {"nodeSelectorTerms": [BOGUS]}})},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[1]"
            f'.operator is "Foo", expected one of {NODE_OPERATORS}',
            id="node-affinity-required",
        ),
        pytest.param(
            "Pod",
            {
                "spec": with_affinity(
                    "nodeAffinity",
                    {
                        PREFERRED: [
                            {"preference": {"matchFields": [{"key": "a", "operator": "Exists"}]}}
                        ]
                    },
                )
            },
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchFields[0].operator"
            ' is "Exists", expected one of In, NotIn',
            id="node-affinity-field",
        ),
        pytest.param(
            "Pod",
            {"spec": with_affinity("podAffinity", {REQUIRED: [{"labelSelector": BOGUS}]})},
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[1].operator"
            f' is "Foo", expected one of {LABEL_OPERATORS}',
            id="pod-affinity",
        ),
        pytest.param(
            "Pod",
            {
                "spec": with_affinity(
                    "podAntiAffinity",
                    {PREFERRED: [{"podAffinityTerm": {"namespaceSelector": BOGUS}}]},
                )
            },
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.namespaceSelector"
            f'.matchExpressions[1].operator is "Foo", expected one of {LABEL_OPERATORS}',
            id="pod-anti-affinity-namespaces",
        ),
        pytest.param(
            "Pod",
            {"spec": {"tolerations": [{"operator": "Is"}]}},
            'spec.tolerations[0].operator is "Is", expected one of Equal, Exists, Lt, Gt',
            id="toleration-operator",
        ),
        pytest.param(
            "Pod",
            {"spec": {"tolerations": [{"effect": "noschedule"}]}},
            'spec.tolerations[0].effect is "noschedule", expected one of NoSchedule,'
            " PreferNoSchedule, NoExecute",
            id="toleration-effect",
        ),
        pytest.param(
            "Pod",
            {"spec": {"topologySpreadConstraints": [{"whenUnsatisfiable": ""}]}},
            'spec.topologySpreadConstraints[0].whenUnsatisfiable is "", expected one of'
            " DoNotSchedule, ScheduleAnyway",
            id="spread-action",
        ),
        pytest.param(
            "Pod",
            {
                "spec": {
                    "topologySpreadConstraints": [
                        {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": BOGUS}
                    ]
                }
            },
            "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[1].operator"
            f' is "Foo", expected one of {LABEL_OPERATORS}',
            id="spread-selector",
        ),
        pytest.param(
            "Pod",
            {"spec": {"initContainers": [{"resources": {"requests": {"cpu": "-1"}}}]}},
            'spec.initContainers[0].resources.requests["cpu"] is "-1", expected 0 or more',
            id="negative-request",
        ),
        pytest.param(
            "Pod",
            {"spec": {"resources": {"requests": {"memory": "-1Gi"}}}},
            'spec.resources.requests["memory"] is "-1Gi", expected 0 or more',
            id="negative-pod-level",
        ),
        pytest.param(
            "Node",
            {"status": {"allocatable": {"pods": "-1"}}},
            'status.allocatable["pods"] is "-1", expected 0 or more',
            id="negative-allocatable",
        ),
        pytest.param(
            "Node",
            {"spec": {"taints": [{"key": "a"}]}},
            'spec.taints[0].effect is "", expected one of NoSchedule, PreferNoSchedule, NoExecute',
            id="taint-without-effect",
        ),
        pytest.param(
            "PersistentVolume",
            {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{}, BOGUS]}}}},
            "spec.nodeAffinity.required.nodeSelectorTerms[1].matchExpressions[1].operator"
            f' is "Foo", expected one of {NODE_OPERATORS}',
            id="volume-affinity",
        ),
        *(
            pytest.param(
                kind,
                {"spec": {"selector": BOGUS}},
                "spec.selector.matchExpressions[1].operator"
                f' is "Foo", expected one of {LABEL_OPERATORS}',
                id=kind,
            )
            for kind in ("PersistentVolumeClaim", "PodDisruptionBudget", "ReplicaSet")
        ),
        pytest.param(
            "CSIStorageCapacity",
            {"nodeTopology": BOGUS},
            f'nodeTopology.matchExpressions[1].operator is "Foo", expected one of'
            f" {LABEL_OPERATORS}",
            id="storage-capacity",
        ),
    ],
)
def test_invalid_values_and_amounts_are_named(kind: str, fields: JsonObject, message: str) -> None:
    obj = convert(KINDS[kind], {"metadata": {"name": "x", "namespace": "ns"}} | fields)
    with pytest.raises(DecodeError) as caught:
        check_object(obj)
    assert str(caught.value) == f'{kind} "ns/x": {message}'


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_needs_a_name_and_nothing_else(kind: str) -> None:
    check_object(convert(KINDS[kind], {"metadata": {"name": "x"}}))
    check_object(convert(KINDS[kind], {"metadata": {"generateName": "x-"}}))
    with pytest.raises(DecodeError, match=f'^{kind} in namespace "ns" has no metadata.name'):
        check_object(convert(KINDS[kind], {"metadata": {"namespace": "ns"}}))


def test_all_valid_values_pass() -> None:
    terms = [{"key": "a", "operator": operator} for operator in NODE_OPERATORS.split(", ")]
    labels = [{"key": "a", "operator": operator} for operator in LABEL_OPERATORS.split(", ")]
    spec = with_affinity(
        "nodeAffinity", {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    ) | {
        "tolerations": [{"operator": operator} for operator in ("", "Equal", "Exists", "Lt", "Gt")],
        "topologySpreadConstraints": [
            {"whenUnsatisfiable": action, "labelSelector": {"matchExpressions": labels}}
            for action in ("DoNotSchedule", "ScheduleAnyway")
        ],
        "overhead": {"cpu": "0"},
    }
    check_object(convert(KINDS["Pod"], {"metadata": {"name": "x"}, "spec": spec}))
