"""Configuration files decode strictly, with upstream's errors (spec 09 §3.1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.pod import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.config.decoding import decode_config, load_config
from kubestow.config.defaults import complete_config
from kubestow.config.documents import read_document
from kubestow.config.plugin_args import InterPodAffinityArgs, NodeAffinityArgs
from kubestow.config.scalars import seconds
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TYPE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def decode(text: str) -> SchedulerConfig:
    return decode_config(text.encode())


def error_of(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        decode(text)
    return str(raised.value)


def with_args(plugin: str, **args: Any) -> str:
    profile = {"pluginConfig": [{"name": plugin, "args": args}]}
    return json.dumps({**TYPE, "profiles": [profile]})


# --- what decodes ---


def test_an_empty_configuration_is_the_default_one() -> None:
    assert decode(HEAD) == complete_config(SchedulerConfig())


def test_json_is_read_like_yaml() -> None:
    assert decode(json.dumps({**TYPE, "parallelism": 4})) == decode(f"{HEAD}parallelism: 4\n")


def test_braces_may_be_yaml() -> None:
    text = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"
    assert decode(text) == decode(HEAD)


def test_only_the_first_document_is_read() -> None:
    assert decode(f"{HEAD}parallelism: 3\n---\nparallelism: 4\nnonsense: true\n").parallelism == 3


def test_null_counts_as_absent() -> None:
    text = f"{HEAD}parallelism: null\nleaderElection:\nprofiles: null\nextenders: ~\n"
    assert decode(text) == decode(HEAD)


def test_every_field_is_read() -> None:
    config = decode(
        f"""{HEAD}
parallelism: 4
leaderElection:
  leaderElect: false
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 5s
  resourceLock: leases
  resourceName: mine
  resourceNamespace: ours
clientConnection:
  kubeconfig: /a.conf
  acceptContentTypes: application/json
  contentType: application/json
  qps: 12.5
  burst: 7
enableProfiling: false
enableContentionProfiling: true
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 60
delayCacheUntilActive: true
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 0
extenders:
- urlPrefix: http://e/
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 5
  bindVerb: bind
  enableHTTPS: true
  tlsConfig: {{insecure: true, serverName: e, certFile: c, keyFile: k, caFile: a, caData: aGk=}}
  httpTimeout: 300ms
  nodeCacheCapable: true
  managedResources: [{{name: example.com/gpu, ignoredByScheduler: true}}]
  ignorable: true
"""
    )
    assert config.parallelism == 4
    assert not config.leader_election.leader_elect
    assert config.leader_election.lease_duration == seconds(30)
    assert config.leader_election.renew_deadline == seconds(20)
    assert config.leader_election.retry_period == seconds(5)
    assert config.leader_election.resource_name == "mine"
    assert config.leader_election.resource_namespace == "ours"
    assert config.client_connection.kubeconfig == "/a.conf"
    assert config.client_connection.accept_content_types == "application/json"
    assert config.client_connection.content_type == "application/json"
    assert config.client_connection.qps == 12.5
    assert config.client_connection.burst == 7
    assert not config.enable_profiling
    assert config.enable_contention_profiling
    assert config.percentage_of_nodes_to_score == 30
    assert config.pod_initial_backoff_seconds == 2
    assert config.pod_max_backoff_seconds == 60
    assert config.delay_cache_until_active
    assert config.profiles[0].scheduler_name == "mine"
    assert config.profiles[0].percentage_of_nodes_to_score == 0
    extender = config.extenders[0]
    assert (extender.url_prefix, extender.filter_verb) == ("http://e/", "filter")
    assert (extender.preempt_verb, extender.prioritize_verb) == ("preempt", "prioritize")
    assert (extender.bind_verb, extender.weight) == ("bind", 5)
    assert extender.enable_https
    assert extender.tls_config is not None
    assert extender.tls_config.ca_data == b"hi"
    assert extender.timeout_s == 0.3
    assert extender.managed_resources[0].ignored_by_scheduler
    assert extender.ignorable


def test_arguments_of_built_in_plugins_become_typed() -> None:
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    config = decode(with_args("NodeAffinity", addedAffinity=required))
    requirement = NodeSelectorRequirement(key="a", operator="Exists")
    selector = NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),)
    )
    assert config.profiles[0].plugin_config[0].args == NodeAffinityArgs(
        added_affinity=NodeAffinity(required=selector)
    )


@pytest.mark.parametrize("args", ["args: null", "args: {}", "args: {kind: InterPodAffinityArgs}"])
def test_missing_arguments_are_all_defaults(args: str) -> None:
    config = decode(f"{HEAD}profiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    {args}\n")
    assert config.profiles[0].plugin_config[0].args == InterPodAffinityArgs()


@pytest.mark.parametrize("plugin", ["NodePorts", "RackSpread"])
def test_arguments_of_other_plugins_are_kept_as_they_are(plugin: str) -> None:
    config = decode(with_args(plugin, anything={"goes": [1, None]}, kind="Odd"))
    assert config.profiles[0].plugin_config[0].args == {
        "anything": {"goes": [1, None]},
        "kind": "Odd",
    }


# --- what does not ---


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"open .*/none.yaml: no such file or directory"):
        load_config(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: 1\n", "Object 'Kind' is missing in 'a: 1\n'", id="kind-is-checked-first"),
        pytest.param("", "Object 'Kind' is missing in ''", id="empty"),
        pytest.param(
            "kind: KubeSchedulerConfiguration",
            "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration'",
            id="no-version",
        ),
        pytest.param(
            HEAD.replace("/v1", "/v1alpha1"),
            'no kind "KubeSchedulerConfiguration" is registered for version '
            '"kubescheduler.config.k8s.io/v1alpha1" in scheme "kubestow/config"',
            id="old-version",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n",
            'no kind "Pod" is registered for version "v1" in scheme "kubestow/config"',
            id="unknown-kind",
        ),
        pytest.param(
            HEAD.replace("KubeSchedulerConfiguration", "InterPodAffinityArgs"),
            "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, "
            "Kind=InterPodAffinityArgs: ",
            id="another-registered-kind",
        ),
        pytest.param(
            f"{HEAD}foo: bar\n", 'strict decoding error: unknown field "foo"', id="unknown-field"
        ),
        pytest.param(
            f"{HEAD}Parallelism: 3\n",
            'strict decoding error: unknown field "Parallelism"',
            id="case-matters",
        ),
        pytest.param(
            f"{HEAD}profiles:\n- plugins:\n    foo: {{}}\n",
            'strict decoding error: unknown field "profiles[0].plugins.foo"',
            id="nested-unknown-field",
        ),
        pytest.param(
            f"{HEAD}profiles:\n- {{}}\n- plugins: {{score: {{enabled: [{{}}, {{wait: 1}}]}}}}\n",
            'strict decoding error: unknown field "profiles[1].plugins.score.enabled[1].wait"',
            id="path-through-lists",
        ),
        pytest.param(
            f"{HEAD}clientConnection: {{}}\nleaderElection:\n  leaderElect: true\n"
            "  retryPeriod: 2s\n  \n  leaderElect: false\n",
            "strict decoding error: yaml: unmarshal errors:\n"
            '  line 8: key "leaderElect" already set in map',
            id="duplicate-yaml-key",
        ),
        pytest.param(
            f"{HEAD}parallelism: 1\nparallelism: 2\nextenders:\n- ignorable: true\n"
            "  ignorable: true\n",
            "strict decoding error: yaml: unmarshal errors:\n"
            '  line 4: key "parallelism" already set in map\n'
            '  line 7: key "ignorable" already set in map',
            id="duplicate-yaml-keys-are-one-error",
        ),
        pytest.param(
            f"{HEAD}parallelism: 1\nparallelism: 2\nzoo: 1\nbar: 1\n",
            "strict decoding error: yaml: unmarshal errors:\n"
            '  line 4: key "parallelism" already set in map, '
            'unknown field "bar", unknown field "zoo"',
            id="duplicate-keys-come-first",
        ),
        pytest.param(
            json.dumps({**TYPE, "parallelism": 1})[:-1] + ', "parallelism": 2}',
            'strict decoding error: duplicate field "parallelism"',
            id="duplicate-json-key",
        ),
        pytest.param(
            json.dumps({**TYPE, "zoo": 1})[:-1]
            + ', "leaderElection": {"leaderElect": true, "leaderElect": false}, "bar": 1}',
            'strict decoding error: unknown field "zoo", '
            'duplicate field "leaderElection.leaderElect", unknown field "bar"',
            id="json-in-the-order-of-the-document",
        ),
        pytest.param(
            f"{HEAD}parallelism: many\n",
            'cannot decode KubeSchedulerConfiguration: parallelism is "many": '
            "expected a whole number",
            id="wrong-type",
        ),
        pytest.param(
            f"{HEAD}foo: 1\nprofiles: [{{plugins: {{score: 3}}}}]\n",
            "cannot decode KubeSchedulerConfiguration: profiles[0].plugins.score is 3: "
            "expected a map",
            id="wrong-type-counts-more-than-unknown",
        ),
        pytest.param(
            f"{HEAD}parallelism: 3000000000\n",
            "cannot decode KubeSchedulerConfiguration: parallelism is 3000000000: "
            "expected at most 2147483647",
            id="too-large-for-32-bits",
        ),
        pytest.param(
            f"{HEAD}leaderElection: {{leaseDuration: 15}}\n",
            "cannot decode KubeSchedulerConfiguration: leaderElection.leaseDuration is 15: "
            'expected a duration such as "15s"',
            id="3.3-a-number-is-no-duration",
        ),
        pytest.param(
            f"{HEAD}leaderElection: {{leaseDuration: 15x}}\n",
            'cannot decode KubeSchedulerConfiguration: leaderElection.leaseDuration is "15x": '
            'time: unknown unit "x" in duration "15x"',
            id="no-duration",
        ),
        pytest.param(
            "a: b: c",
            "error converting YAML to JSON: yaml: line 1: "
            "mapping values are not allowed in this context",
            id="no-yaml",
        ),
        pytest.param(
            "- 1",
            "couldn't get version/kind; json parse error: found [1], expected a map",
            id="no-map",
        ),
        pytest.param(
            "kind: 1\napiVersion: 2",
            "couldn't get version/kind; json parse error: kind is 1, expected a string",
            id="kind-is-no-text",
        ),
        pytest.param(
            f"{HEAD}profiles: &a [*a]",
            "error converting YAML to JSON: yaml: line 3: an alias must not contain itself",
            id="recursive-alias",
        ),
    ],
)
def test_what_does_not_decode(text: str, message: str) -> None:
    assert error_of(text) == message


AT = "decoding .profiles[0].pluginConfig[0]: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            with_args("NodeAffinity", kind="InterPodAffinityArgs"),
            f"{AT}args for plugin NodeAffinity were not of type "
            "NodeAffinityArgs.kubescheduler.config.k8s.io, got "
            "InterPodAffinityArgs.kubescheduler.config.k8s.io",
            id="another-plugins",
        ),
        pytest.param(
            with_args("NodeAffinity", kind="OddArgs"),
            f"{AT}decoding args for plugin NodeAffinity: "
            'no kind "OddArgs" is registered for version "kubescheduler.config.k8s.io/v1" '
            'in scheme "kubestow/config"',
            id="unknown-kind",
        ),
        pytest.param(
            with_args("InterPodAffinity", foo=1),
            f"strict decoding error: {AT}strict decoding error: decoding args for plugin "
            'InterPodAffinity: strict decoding error: unknown field "foo"',
            id="unknown-field",
        ),
        pytest.param(
            with_args("InterPodAffinity", hardPodAffinityWeight="x"),
            f"{AT}decoding args for plugin InterPodAffinity: cannot decode InterPodAffinityArgs: "
            'hardPodAffinityWeight is "x": expected a whole number',
            id="wrong-type",
        ),
        pytest.param(
            with_args("DynamicResources", filterTimeout="soon"),
            f"{AT}decoding args for plugin DynamicResources: filterTimeout: "
            'time: invalid duration "soon"',
            id="no-duration",
        ),
        pytest.param(
            json.dumps(
                {
                    **TYPE,
                    "zoo": 1,
                    "profiles": [
                        {"pluginConfig": [{"name": "VolumeBinding", "args": {"b": 1, "a": 2}}]},
                        {"pluginConfig": [{"name": "NodeAffinity", "args": {"c": 1}}]},
                    ],
                    "bar": 1,
                }
            ),
            'strict decoding error: unknown field "zoo", unknown field "bar", '
            f"{AT}strict decoding error: decoding args for plugin VolumeBinding: "
            'strict decoding error: unknown field "b", unknown field "a", '
            "decoding .profiles[1].pluginConfig[0]: strict decoding error: "
            "decoding args for plugin NodeAffinity: "
            'strict decoding error: unknown field "c"',
            id="arguments-come-last",
        ),
    ],
)
def test_arguments_that_do_not_decode(text: str, message: str) -> None:
    assert error_of(text) == message


def test_at_most_a_hundred_errors() -> None:
    message = error_of(HEAD + "".join(f"x{number}: 1\n" for number in range(150)))
    assert message.count("unknown field") == 100


def test_equal_errors_are_reported_once() -> None:
    text = json.dumps(TYPE)[:-1] + ', "foo": 1, "foo": 2, "foo": 3}'
    assert error_of(text) == 'strict decoding error: unknown field "foo"'


ALIAS_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[" * 100_000, "line 1: nested more than 150 levels deep", id="deep-yaml"),
        pytest.param(
            '{"a":' * 200 + "1" + "}" * 200, "nested more than 150 levels deep", id="deep-json"
        ),
        pytest.param(ALIAS_BOMB, "line 6: the aliases repeat more than 100000", id="aliases"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "a number is too long", id="long-number"),
    ],
)
def test_a_small_text_that_stands_for_too_much_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_document(text.encode())
