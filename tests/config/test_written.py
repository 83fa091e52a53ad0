"""A configuration written with all defaults (spec 09 §3.7)."""

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import LabelSelector
from kubestow.api.pod import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from kubestow.config.connection import ClientConnectionConfig, LeaderElectionConfig
from kubestow.config.decoding import decode_config
from kubestow.config.defaults import complete_config
from kubestow.config.extenders import ExtenderConfig, ExtenderTLSConfig, ManagedResource
from kubestow.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubestow.config.profile import (
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
    enabled_names,
)
from kubestow.config.scalars import Duration
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.written import config_document, configz_document, write_config
from kubestow.errors import ConfigError

# The beginning and the end of the defaults; the tests below check the rest.
DEFAULT_TOP = """\
apiVersion: kubescheduler.config.k8s.io/v1
clientConnection:
  acceptContentTypes: ""
  burst: 100
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: ""
  qps: 50
enableContentionProfiling: true
enableProfiling: true
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
  retryPeriod: 2s
parallelism: 16
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
- pluginConfig:
  - args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: DefaultPreemptionArgs
      minCandidateNodesAbsolute: 100
      minCandidateNodesPercentage: 10
    name: DefaultPreemption
  - args:
      apiVersion: kubescheduler.config.k8s.io/v1
      bindingTimeout: 10m0s
      filterTimeout: 10s
      kind: DynamicResourcesArgs
    name: DynamicResources
  - args:
      apiVersion: kubescheduler.config.k8s.io/v1
      hardPodAffinityWeight: 1
      ignorePreferredTermsOfExistingPods: false
      kind: InterPodAffinityArgs
    name: InterPodAffinity
  - args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeAffinityArgs
    name: NodeAffinity
"""
DEFAULT_END = """\
    permit: {}
    placementGenerate: {}
    placementScore: {}
    postBind: {}
    postFilter: {}
    preBind: {}
    preEnqueue: {}
    preFilter: {}
    preScore: {}
    queueSort: {}
    reserve: {}
    score: {}
  schedulerName: default-scheduler
"""


def test_the_defaults_in_full() -> None:
    text = write_config(SchedulerConfig())
    assert text.startswith(DEFAULT_TOP)
    assert text.endswith(DEFAULT_END)


def test_keys_are_sorted_everywhere() -> None:
    def check(value: object) -> None:
        if isinstance(value, dict):
            assert list(value) == sorted(value)
            for entry in value.values():
                check(entry)
        elif isinstance(value, list):
            for entry in value:
                check(entry)

    check(yaml.safe_load(write_config(SchedulerConfig())))


def test_every_plugin_shows_its_weight() -> None:
    profile = config_document(SchedulerConfig())["profiles"][0]
    refs = profile["plugins"]["multiPoint"]["enabled"]
    assert {"name": "TaintToleration", "weight": 3} in refs
    assert {"name": "NodeName", "weight": 0} in refs
    assert all(set(ref) == {"name", "weight"} for ref in refs)


def test_only_plugins_that_run_show_their_arguments() -> None:
    profile = ProfileConfig(
        plugins=Plugins(
            multi_point=PluginSet(
                disabled=(PluginRef("InterPodAffinity"),), enabled=(PluginRef("Mine"),)
            )
        ),
        plugin_config=(
            PluginConfig(name="InterPodAffinity", args={"hardPodAffinityWeight": 3}),
            PluginConfig(name="Mine", args={"b": 1}),
            PluginConfig(name="Absent", args={"b": 1}),
        ),
    )
    written = config_document(SchedulerConfig(profiles=(profile,)))["profiles"][0]
    names = [entry["name"] for entry in written["pluginConfig"]]
    assert names == sorted(names)
    assert "Mine" in names
    assert not {"InterPodAffinity", "Absent"} & set(names)


def test_configz_begins_with_the_kind() -> None:
    text = json.dumps(configz_document(SchedulerConfig()), separators=(",", ":"))
    assert text.startswith(
        '{"componentconfig":{"kind":"KubeSchedulerConfiguration",'
        '"apiVersion":"kubescheduler.config.k8s.io/v1","parallelism":16,'
    )


def test_resources_left_to_extenders_show() -> None:
    resource = ManagedResource(name="example.com/a", ignored_by_scheduler=True)
    extender = ExtenderConfig(url_prefix="http://e", managed_resources=(resource,))
    document = config_document(SchedulerConfig(extenders=(extender,)))
    args = {entry["name"]: entry["args"] for entry in document["profiles"][0]["pluginConfig"]}
    assert args["NodeResourcesFit"]["ignoredResources"] == ["example.com/a"]
    assert document["extenders"] == [
        {
            "urlPrefix": "http://e",
            "httpTimeout": "0s",
            "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}],
        }
    ]


# --- what is written reads back ---

texts = st.text(max_size=8)
names = st.text("abcdefgXYZ.-", min_size=1, max_size=6)
int32s = st.integers(-(2**31), 2**31 - 1)
bools = st.booleans()
durations = st.integers(1, 10**15).map(Duration)


def tuples(element: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(element, max_size=size).map(tuple)


points = st.builds(UtilizationShapePoint, utilization=int32s, score=int32s)
specs = st.builds(ResourceSpec, name=texts, weight=st.integers(-5, 200))
requirements = st.builds(
    NodeSelectorRequirement, key=texts, operator=texts, values=st.none() | tuples(texts)
)
terms = st.builds(
    NodeSelectorTerm, match_expressions=tuples(requirements), match_fields=tuples(requirements)
)
affinities = st.builds(
    NodeAffinity,
    required=st.none() | st.builds(NodeSelector, node_selector_terms=tuples(terms)),
    preferred=st.none()
    | tuples(st.builds(PreferredSchedulingTerm, weight=int32s, preference=terms)),
)
constraints = st.builds(
    TopologySpreadConstraint,
    max_skew=int32s,
    topology_key=texts,
    when_unsatisfiable=texts,
    label_selector=st.none() | st.just(LabelSelector(match_labels={"a": "b"})),
)
strategies = st.builds(
    ScoringStrategy,
    type=texts,
    resources=tuples(specs),
    requested_to_capacity_ratio=st.none()
    | st.builds(RequestedToCapacityRatioParam, shape=tuples(points)),
)
built_in_args: dict[str, st.SearchStrategy[PluginArgs]] = {
    "DefaultPreemption": st.builds(
        DefaultPreemptionArgs,
        min_candidate_nodes_percentage=int32s,
        min_candidate_nodes_absolute=int32s,
    ),
    "DynamicResources": st.builds(
        DynamicResourcesArgs,
        filter_timeout=durations.map(str),
        binding_timeout=durations.map(str),
    ),
    "InterPodAffinity": st.builds(
        InterPodAffinityArgs,
        hard_pod_affinity_weight=int32s,
        ignore_preferred_terms_of_existing_pods=bools,
    ),
    "NodeAffinity": st.builds(NodeAffinityArgs, added_affinity=st.none() | affinities),
    "NodeResourcesBalancedAllocation": st.builds(
        NodeResourcesBalancedAllocationArgs, resources=tuples(specs)
    ),
    "NodeResourcesFit": st.builds(
        NodeResourcesFitArgs,
        ignored_resources=tuples(texts),
        ignored_resource_groups=tuples(texts),
        scoring_strategy=strategies,
    ),
    "PodTopologySpread": st.builds(
        PodTopologySpreadArgs,
        default_constraints=tuples(constraints),
        defaulting_type=texts,
    ),
    "VolumeBinding": st.builds(
        VolumeBindingArgs,
        bind_timeout_seconds=st.integers(-(2**63), 2**63 - 1),
        shape=st.none() | st.lists(points, min_size=1, max_size=3).map(tuple),
    ),
}
raw_args = st.dictionaries(
    texts, st.none() | bools | int32s | texts | st.lists(texts, max_size=2), max_size=3
)


@st.composite
def entries(draw: st.DrawFn) -> PluginConfig:
    name = draw(st.sampled_from([*built_in_args, "Mine", "NodePorts"]))
    return PluginConfig(name=name, args=draw(built_in_args.get(name, raw_args)))


refs = st.builds(
    PluginRef,
    st.sampled_from(["TaintToleration", "NodeResourcesFit", "NodePorts", "Mine", "*"]) | names,
    int32s,
)
plugin_sets = st.builds(PluginSet, enabled=tuples(refs, 2), disabled=tuples(refs, 2))
profiles = st.builds(
    ProfileConfig,
    scheduler_name=texts,
    percentage_of_nodes_to_score=st.none() | int32s,
    plugins=st.builds(
        Plugins,
        multi_point=plugin_sets,
        score=plugin_sets,
        queue_sort=plugin_sets,
        placement_score=plugin_sets,
    ),
    plugin_config=st.lists(entries(), max_size=4, unique_by=lambda entry: entry.name).map(tuple),
)
tls_configs = st.builds(
    ExtenderTLSConfig, insecure=bools, server_name=texts, ca_data=st.binary(max_size=4)
)
extenders = st.builds(
    ExtenderConfig,
    url_prefix=texts,
    filter_verb=texts,
    weight=st.integers(-(2**63), 2**63 - 1),
    enable_https=bools,
    tls_config=st.none() | tls_configs,
    http_timeout=st.integers(-(10**12), 10**12).map(Duration),
    node_cache_capable=bools,
    # Resources the scheduler ignores change arguments, which has its own test.
    managed_resources=tuples(st.builds(ManagedResource, name=texts)),
    ignorable=bools,
)
configs = st.builds(
    SchedulerConfig,
    parallelism=int32s,
    leader_election=st.builds(
        LeaderElectionConfig,
        leader_elect=bools,
        lease_duration=durations,
        renew_deadline=durations,
        retry_period=durations,
        resource_lock=texts,
        resource_name=texts,
        resource_namespace=texts,
    ),
    client_connection=st.builds(
        ClientConnectionConfig,
        kubeconfig=texts,
        accept_content_types=texts,
        content_type=texts,
        qps=st.floats(-1e6, 1e6, allow_nan=False, width=32),
        burst=int32s,
    ),
    enable_profiling=bools,
    enable_contention_profiling=bools,
    percentage_of_nodes_to_score=int32s,
    profiles=st.lists(profiles, min_size=1, max_size=2).map(tuple),
    extenders=tuples(extenders, 2),
    delay_cache_until_active=bools,
)


def as_it_runs(config: SchedulerConfig) -> SchedulerConfig:
    """Complete, with the arguments of plugins that run, by name: all that is written."""
    config = complete_config(config)

    def running(profile: ProfileConfig) -> ProfileConfig:
        names = set(enabled_names(profile.plugins))
        kept = [entry for entry in profile.plugin_config if entry.name in names and entry.args]
        kept.sort(key=lambda entry: entry.name)
        return msgspec.structs.replace(profile, plugin_config=tuple(kept))

    return msgspec.structs.replace(config, profiles=tuple(map(running, config.profiles)))


@given(configs)
def test_a_written_configuration_decodes_to_the_same(config: SchedulerConfig) -> None:
    text = write_config(config, has_secrets=True)
    assert as_it_runs(decode_config(text.encode())) == as_it_runs(config)
    assert write_config(decode_config(text.encode()), has_secrets=True) == text


SECRETS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {enabled: [{name: Own}]}}
  pluginConfig:
  - name: Own
    args:
      password: hunter2
      endpoint: "https://me:hunter2@metrics/api?token=hunter2&top=3"
      headers: [{name: Authorization, value: hunter2}, {name: Accept, value: text/plain}]
      weight: 5
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: example.com/token, whenUnsatisfiable: ScheduleAnyway}
extenders:
- urlPrefix: https://me:hunter2@extender:8443/scheduler
  filterVerb: filter
  tlsConfig: {keyData: aHVudGVyMg==, certData: Y2VydA==, serverName: extender}
"""


def test_secrets_are_not_shown() -> None:
    config = decode_config(SECRETS.encode())
    shown = (write_config(config), json.dumps(configz_document(config)))
    for text in shown:
        assert "hunter2" not in text
        assert "aHVudGVyMg" not in text
    document = config_document(config)
    (extender,) = document["extenders"]
    assert extender["urlPrefix"] == "https://REDACTED@extender:8443/scheduler"
    assert extender["tlsConfig"] == {
        "keyData": "--- REDACTED ---",
        "certData": "Y2VydA==",
        "serverName": "extender",
    }
    args = {entry["name"]: entry["args"] for entry in document["profiles"][0]["pluginConfig"]}
    assert args["Own"]["endpoint"] == "https://REDACTED@metrics/api?token=REDACTED&top=3"
    assert args["Own"]["weight"] == 5
    assert args["Own"]["headers"][1] == {"name": "Accept", "value": "text/plain"}
    # Arguments of built-in plugins stay as they are.
    assert args["PodTopologySpread"]["defaultConstraints"][0]["topologyKey"] == "example.com/token"


def test_a_file_that_is_used_has_its_secrets() -> None:
    config = decode_config(SECRETS.encode())
    text = write_config(config, has_secrets=True)
    assert as_it_runs(decode_config(text.encode())) == as_it_runs(config)


def test_what_is_shown_is_no_configuration_to_use() -> None:
    text = write_config(decode_config(SECRETS.encode()))
    with pytest.raises(ConfigError, match=r'tlsConfig.keyData is "--- REDACTED ---"'):
        decode_config(text.encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extenders: [{tlsConfig: {keyData: 'hunter2!'}}]", "keyData"),
        ("extenders: [{urlPrefix: ['https://a:hunter2@b']}]", "urlPrefix"),
        ("kind: ''\nextenders:\n- urlPrefix: https://a:hunter2@b", "Kind"),
        ("kind: ''\nextenders:\n- tlsConfig:\n    keyData: hunter2", "Kind"),
        ("kind: ''\nextenders: [{tlsConfig: {keyData: hunter2}}]", "Kind"),
        (
            "kind: ''\nprofiles:\n- pluginConfig:\n  - args:\n      password: |\n        hunter2",
            "Kind",
        ),
    ],
)
def test_errors_quote_no_secret(text: str, message: str) -> None:
    head = "" if "kind" in text else "kind: KubeSchedulerConfiguration\n"
    raw = f"apiVersion: kubescheduler.config.k8s.io/v1\n{head}{text}\n".encode()
    with pytest.raises(ConfigError, match=message) as refused:
        decode_config(raw)
    assert "hunter2" not in str(refused.value)


@given(configs)
def test_the_json_form_decodes_to_the_same(config: SchedulerConfig) -> None:
    text = json.dumps(config_document(config))
    assert as_it_runs(decode_config(text.encode())) == as_it_runs(config)


@given(configs)
def test_completing_what_is_complete_changes_nothing(config: SchedulerConfig) -> None:
    complete = complete_config(config)
    assert complete_config(complete) == complete
