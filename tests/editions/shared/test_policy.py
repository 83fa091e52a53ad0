"""The Policy format, its validation and the providers (spec 09 §13)."""

from pathlib import Path

import pytest

from kubestow.editions.shared.policy import (
    WEIGHT_MAX,
    Policy,
    PolicyExtender,
    PriorityPolicy,
    convert_policy,
    decode_policy,
    hard_weight_of,
    load_policy,
    policy_in_config_map,
    provider_policy,
    validate_policy,
)
from kubestow.errors import ConfigError

JSON = b"""
{"kind": "Policy", "apiVersion": "v1",
 "predicates": [
   {"name": "PodFitsResources"},
   {"name": "Zoned", "argument": {"labelsPresence": {"labels": ["zone"], "presence": true}}},
   {"name": "Together", "argument": {"serviceAffinity": {"labels": ["zone"]}}}],
 "priorities": [
   {"name": "LeastRequestedPriority", "weight": 2},
   {"name": "Ssd", "weight": 1, "argument": {"labelPreference": {"label": "ssd"}}},
   {"name": "Apart", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "zone"}}}],
 "hardPodAffinitySymmetricWeight": 10, "newField": 1}
"""
YAML = b"""
kind: Policy
apiVersion: v1
predicates:
  - name: PodFitsResources
  - {name: Zoned, argument: {labelsPresence: {labels: [zone], presence: true}}}
  - {name: Together, argument: {serviceAffinity: {labels: [zone]}}}
priorities:
  - {name: LeastRequestedPriority, weight: 2}
  - {name: Ssd, weight: 1, argument: {labelPreference: {label: ssd}}}
  - {name: Apart, weight: 1, argument: {serviceAntiAffinity: {label: zone}}}
hardPodAffinitySymmetricWeight: 10
"""


def test_json_and_yaml_are_the_same() -> None:
    policy = decode_policy(JSON)
    assert decode_policy(YAML) == policy
    assert [entry.name for entry in policy.predicates] == ["PodFitsResources", "Zoned", "Together"]
    zoned = policy.predicates[1].argument
    assert zoned is not None
    assert zoned.labels_presence is not None
    assert zoned.labels_presence.presence
    assert policy.priorities[0].weight == 2
    assert policy.hard_pod_affinity_symmetric_weight == 10


def test_names_of_fields_are_read_in_any_case() -> None:
    extender = {
        "urlPrefix": "http://x",
        "BindVerb": "bind",
        "EnableHttps": True,
        "tlsConfig": {"ServerName": "x", "CAFile": "ca.pem"},
        "httpTimeout": 5_000_000_000,
    }
    (found,) = convert_policy({"Extenders": [extender]}).extenders
    config = found.as_config()
    assert config.bind_verb == "bind"
    assert config.enable_https
    assert config.tls_config is not None
    assert (config.tls_config.server_name, config.tls_config.ca_file) == ("x", "ca.pem")
    assert str(config.http_timeout) == "5s"


def test_null_counts_as_absent() -> None:
    assert convert_policy(
        {"predicates": None, "priorities": [{"name": "x", "argument": None}]}
    ) == (Policy(priorities=(PriorityPolicy(name="x"),)))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"[]", "invalid policy: found [], expected a map"),
        (b"kind: Pod", 'invalid policy: kind is "Pod", expected Policy'),
        (
            b'{"priorities": [{"weight": "1"}]}',
            "invalid policy: Expected `int`, got `str` - at `$.priorities[0].weight`",
        ),
    ],
)
def test_what_is_no_policy(raw: bytes, text: str) -> None:
    with pytest.raises(ConfigError) as failure:
        decode_policy(raw)
    assert str(failure.value) == text


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        pytest.param(
            Policy(priorities=(PriorityPolicy(name="A", weight=weight),)),
            "Priority A should have a positive weight applied to it or it has overflown",
            id=f"weight-{weight}",
        )
        for weight in (0, -1, WEIGHT_MAX)
    ]
    + [
        pytest.param(
            Policy(extenders=(PolicyExtender(url_prefix="http://x", prioritize_verb="p"),)),
            "Priority for extender http://x should have a positive weight applied to it",
            id="extender-weight",
        ),
        pytest.param(
            Policy(extenders=(PolicyExtender(bind_verb="b"), PolicyExtender(bind_verb="b"))),
            "Only one extender can implement bind, found 2",
            id="two-binders",
        ),
    ],
)
def test_wrong_weights_and_extenders(policy: Policy, text: str) -> None:
    with pytest.raises(ConfigError) as failure:
        validate_policy(policy)
    assert str(failure.value) == text


def test_all_errors_are_reported_together() -> None:
    policy = Policy(priorities=(PriorityPolicy(name="A"), PriorityPolicy(name="B")))
    with pytest.raises(ConfigError, match=r"^\[Priority A .*, Priority B .*\]$"):
        validate_policy(policy)


@pytest.mark.parametrize(
    ("in_policy", "flag", "weight"),
    [
        pytest.param(0, 1, 1, id="6-zero-is-not-set"),
        pytest.param(7, 1, 7, id="the-policy-counts"),
        pytest.param(100, 0, 100, id="the-flag-is-not-read"),
    ],
)
def test_the_weight_of_required_affinity(in_policy: int, flag: int, weight: int) -> None:
    policy = Policy(hard_pod_affinity_symmetric_weight=in_policy)
    assert hard_weight_of(policy, flag) == weight


@pytest.mark.parametrize(("in_policy", "flag"), [(101, 1), (-1, 1), (0, 0), (0, 101)])
def test_the_weight_of_required_affinity_is_1_to_100(in_policy: int, flag: int) -> None:
    weight = in_policy or flag
    with pytest.raises(ConfigError) as failure:
        hard_weight_of(Policy(hard_pod_affinity_symmetric_weight=in_policy), flag)
    assert str(failure.value) == (
        f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
    )


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    with pytest.raises(ConfigError) as failure:
        load_policy(path)
    assert str(failure.value) == f"missing policy config file {path}"
    path.write_bytes(JSON)
    assert load_policy(path) == decode_policy(JSON)


def test_a_policy_in_a_config_map() -> None:
    data = {"policy.cfg": JSON.decode()}
    assert policy_in_config_map(data, namespace="kube-system", name="m") == decode_policy(JSON)
    with pytest.raises(ConfigError) as failure:
        policy_in_config_map({}, namespace="kube-system", name="m")
    assert str(failure.value) == 'missing policy config map value at key "policy.cfg"'
    with pytest.raises(ConfigError, match="couldn't get policy config map kube-system/m: "):
        policy_in_config_map(None, namespace="kube-system", name="m")


def test_the_autoscalers_provider_fills_nodes_up() -> None:
    default, autoscaler = (
        {entry.name: entry.weight for entry in provider_policy(name).priorities}
        for name in ("DefaultProvider", "ClusterAutoscalerProvider")
    )
    assert default.pop("LeastRequestedPriority") == 1
    assert autoscaler.pop("MostRequestedPriority") == 1
    assert default == autoscaler
    assert default["NodePreferAvoidPodsPriority"] == 10000


def test_an_unknown_provider_names_those_there_are() -> None:
    with pytest.raises(ConfigError) as failure:
        provider_policy("X")
    assert str(failure.value) == (
        'couldn\'t create scheduler using provider "X": plugin "X" has not been registered; '
        "the providers are ClusterAutoscalerProvider, DefaultProvider"
    )
