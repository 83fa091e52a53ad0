"""A command line as one validated whole (spec 09 §1, §2)."""

from pathlib import Path

import pytest

from kubestow.config.connection import check_election
from kubestow.config.defaults import complete_config
from kubestow.config.scalars import seconds
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError, FlagError
from kubestow.service.options import RequestedText, SchedulerOptions, SniCertificate, parse_options

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def options(*arguments: str | Path) -> SchedulerOptions:
    parsed = parse_options([str(argument) for argument in arguments])
    assert isinstance(parsed, SchedulerOptions)
    return parsed


def error_of(*arguments: str | Path) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_options([str(argument) for argument in arguments])
    return str(raised.value)


def test_no_arguments_mean_the_defaults() -> None:
    parsed = options()
    assert parsed.config == complete_config(SchedulerConfig())
    assert parsed.master == ""
    assert parsed.pod_max_in_unschedulable_pods == seconds(300)
    assert (parsed.serving.bind_address, parsed.serving.port) == ("0.0.0.0", 10259)
    assert parsed.authentication.tolerate_lookup_failure
    assert parsed.authentication.requestheader_usernames == ("x-remote-user",)
    assert parsed.authorization.always_allow_paths == ("/healthz", "/readyz", "/livez")
    assert (parsed.logging.format, parsed.logging.verbosity) == ("text", 0)
    assert parsed.emulated_version == "1.36"
    assert parsed.reported_version == "v1.36.4"


def test_what_common_installers_pass() -> None:
    parsed = options(
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--bind-address=127.0.0.1",
        "--kubeconfig=/etc/kubernetes/scheduler.conf",
        "--leader-elect=true",
    )
    assert parsed.config.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert parsed.authentication.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert parsed.authorization.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert parsed.serving.bind_address == "127.0.0.1"
    assert parsed.config.leader_election.leader_elect


def test_the_file_is_read_and_flags_go_on_top(config_file: Path) -> None:
    config_file.write_text(
        f"{HEAD}parallelism: 3\nclientConnection: {{kubeconfig: b.conf}}\n"
        "leaderElection: {leaderElect: false}\n"
    )
    parsed = options(
        "--config",
        config_file,
        "--kubeconfig=a.conf",
        "--leader_elect",
        "--master=https://m",
        "--pod-max-in-unschedulable-pods-duration=1m",
        "--attempt-budget=3s",
    )
    assert parsed.config.parallelism == 3
    assert parsed.config.client_connection.kubeconfig == "b.conf"
    assert parsed.config.leader_election.leader_elect
    # These count with and without a file.
    assert parsed.master == "https://m"
    assert parsed.pod_max_in_unschedulable_pods == seconds(60)
    assert parsed.attempt_budget == seconds(3)
    assert parsed.config_file == str(config_file)


def test_other_options() -> None:
    parsed = options(
        "--v=4",
        "--logging-format=json",
        "--feature-gates=GenericWorkload=true",
        "--tls-sni-cert-key=c.crt,c.key:a.example.com,b.example.com",
        "--tls-sni-cert-key=d.crt,d.key",
        "--tls-min-version=VersionTLS13",
        "--tls-curve-preferences=29",
        "--emulated-version=kube=1.35",
        "--min-compatibility-version=1.34",
        "--version=v1.36.4-mine",
        "--write-config-to=out.yaml",
        "--allow-metric-labels=scheduler_pending_pods,queue=active",
        "--show-hidden-metrics-for-version=1.35",
    )
    assert (parsed.logging.format, parsed.logging.verbosity) == ("json", 4)
    assert parsed.gates.enabled("GenericWorkload")
    assert parsed.serving.sni_certificates == (
        SniCertificate("c.crt", "c.key", ("a.example.com", "b.example.com")),
        SniCertificate("d.crt", "d.key"),
    )
    assert parsed.serving.curve_preferences == (29,)
    assert parsed.serving.min_version == "VersionTLS13"
    assert parsed.emulated_version == "1.35"
    assert parsed.reported_version == "v1.36.4-mine"
    assert parsed.write_config_to == "out.yaml"
    assert parsed.metrics.allowed_labels == {"scheduler_pending_pods,queue": "active"}


def test_gates_decide_on_the_configuration(config_file: Path) -> None:
    config_file.write_text(HEAD)
    off = "--feature-gates=NodeDeclaredFeatures=false"
    for parsed in (options(off), options(off, f"--config={config_file}")):
        enabled = parsed.config.profiles[0].plugins.multi_point.enabled
        assert "NodeDeclaredFeatures" not in [ref.name for ref in enabled]


# --- answers ---


def test_version() -> None:
    assert parse_options(["--version"]) == RequestedText("Kubernetes v1.36.4")
    raw = parse_options(["--version=raw"])
    assert isinstance(raw, RequestedText)
    assert raw.text.startswith('version.Info{Major:"1", Minor:"36", GitVersion:"v1.36.4"')


def test_the_version_is_that_of_the_edition() -> None:
    answer = parse_options(["--version", "--compatibility=v1.37"])
    assert answer == RequestedText("Kubernetes v1.37.0-rc.1")
    parsed = options("--compatibility=v1.37")
    assert parsed.emulated_version == "1.37"
    assert parsed.reported_version == "v1.37.0-rc.1"


# --- errors ---


def test_the_usage_is_shown_for_flags_that_do_not_parse() -> None:
    with pytest.raises(FlagError, match="unknown flag: --x"):
        parse_options(["--x"])


def test_the_usage_is_not_shown_for_other_arguments() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_options(["x", "y"])
    assert not isinstance(raised.value, FlagError)
    assert str(raised.value) == '"kube-scheduler" does not take any arguments, got ["x" "y"]'


def test_empty_arguments_are_ignored() -> None:
    assert isinstance(parse_options([""]), SchedulerOptions)


KEYS = (
    "must have keys with format `metricName,labelName` where metricName matches "
    '"[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"'
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--secure-port=70000"],
            "--secure-port 70000 must be between 1 and 65535, inclusive. "
            "It cannot be turned off with 0",
            id="port-too-large",
        ),
        pytest.param(
            ["--secure-port=-1"],
            "--secure-port -1 must be between 0 and 65535, inclusive. "
            "0 for turning off secure port",
            id="port-negative",
        ),
        pytest.param(
            ["--attempt-budget=-1s"],
            "--attempt-budget -1s must be 0, for no limit, or more",
            id="budget-negative",
        ),
        pytest.param(["--feature-gates=X=true"], "unrecognized feature gate: X", id="gate"),
        pytest.param(
            ["--emulated-version=1.30"],
            "emulation version 1.30 is not between [1.33, 1.36.0]",
            id="emulation-too-old",
        ),
        pytest.param(
            ["--emulated-version=1.37"],
            "emulation version 1.37 is not between [1.33, 1.36.0]",
            id="emulation-too-new",
        ),
        pytest.param(
            ["--emulated-version=1.33", "--compatibility=v1.37"],
            "emulation version 1.33 is not between [1.34, 1.37.0]",
            id="emulation-too-old-for-v1.37",
        ),
        pytest.param(
            ["--show-hidden-metrics-for-version=1.35", "--compatibility=v1.37"],
            'metrics.showHiddenMetricsForVersion: Invalid value: "1.35": must be omitted or have '
            "the value '1.36'; only the previous minor version is allowed",
            id="hidden-metrics-of-v1.37",
        ),
        pytest.param(
            ["--emulated-version=kubelet=1.36"],
            "component not registered: kubelet",
            id="emulation-of-another",
        ),
        pytest.param(
            ["--emulated-version=new"], 'illegal version string "new"', id="emulation-of-nothing"
        ),
        pytest.param(
            ["--emulated-version=1.34", "--min-compatibility-version=1.35"],
            "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]",
            id="compatibility",
        ),
        pytest.param(
            ["--feature-gates=GangScheduling=true", "--secure-port=-1", "--tls-min-version=1"],
            "[GangScheduling is enabled, but depends on features that are disabled: "
            "[GenericWorkload], --secure-port -1 must be between 0 and 65535, inclusive. "
            '0 for turning off secure port, unknown tls version "1"]',
            id="several-are-reported-together",
        ),
        pytest.param(
            ["--requestheader-username-headers= ,x"],
            'empty value in "requestheader-username-headers"',
            id="blank-header",
        ),
        pytest.param(
            ["--show-hidden-metrics-for-version=1.34"],
            'metrics.showHiddenMetricsForVersion: Invalid value: "1.34": must be omitted or have '
            "the value '1.35'; only the previous minor version is allowed",
            id="hidden-metrics",
        ),
        pytest.param(
            ["--allow-metric-labels=m=v"],
            f'metrics.allowListMapping: Invalid value: {{"m":"v"}}: {KEYS}',
            id="metric-labels",
        ),
        pytest.param(
            ["--allow-metric-labels=m,l=v", "--allow-metric-labels-manifest=/x"],
            '[metrics.allowListMappingManifest: Invalid value: "/x": failed to read allow list '
            "manifest: open /x: no such file or directory, metrics: Invalid value: "
            '{"allowListMapping":{"m,l":"v"},"allowListMappingManifest":"/x"}: '
            "cannot specify both allowListMapping and allowListMappingManifest]",
            id="metric-labels-twice",
        ),
        pytest.param(
            ["--disabled-metrics=a,b-c"],
            'metrics.disabledMetrics: Invalid value: ["a","b-c"]: must be fully qualified metric '
            'names matching "^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "b-c"',
            id="disabled-metrics",
        ),
        pytest.param(
            ["--logging-format=xml", "--secure-port=-1"],
            'format: Invalid value: "xml": Unsupported log format',
            id="logging-comes-first",
        ),
        pytest.param(
            ["--log-flush-frequency=0s"],
            'flushFrequency: Invalid value: "0s": Must be greater than zero',
            id="flush",
        ),
        pytest.param(
            ["--logging-format=json", "--vmodule=a=1"],
            "vmodule: Forbidden: Only supported for text log format",
            id="vmodule",
        ),
        pytest.param(
            ["--log-text-split-stream", "--log-json-info-buffer-size=1Ki"],
            "[options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled, "
            "options.json.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled]",
            id="split-stream",
        ),
        pytest.param(
            ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
            "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature",
            id="json-log",
        ),
        pytest.param(
            ["--config=none.yaml"], "open none.yaml: no such file or directory", id="no-file"
        ),
    ],
)
def test_invalid_options(arguments: list[str], message: str) -> None:
    assert error_of(*arguments) == message


def test_alpha_options_of_logging_with_their_gate() -> None:
    parsed = options("--log-text-split-stream", "--feature-gates=LoggingAlphaOptions=true")
    assert parsed.logging.is_stream_split


def test_a_file_is_validated_after_the_flags(config_file: Path) -> None:
    config_file.write_text(f"{HEAD}leaderElection: {{leaseDuration: 8s}}\nparallelism: 0\n")
    assert error_of("--config", config_file) == (
        '[leaderElection.leaseDuration: Invalid value: "10s": must be greater than '
        "`RenewDeadline`, parallelism: Invalid value: 0: "
        "should be an integer value greater than zero]"
    )
    assert error_of("--config", config_file, "--leader-elect-renew-deadline=5s") == (
        "parallelism: Invalid value: 0: should be an integer value greater than zero"
    )
    assert error_of("--config", config_file, "--leader-elect=false") == (
        "parallelism: Invalid value: 0: should be an integer value greater than zero"
    )


def test_without_a_file_only_the_elector_finds_errors() -> None:  # §2.1
    parsed = options("--leader-elect-lease-duration=5s")
    with pytest.raises(ConfigError) as raised:
        check_election(parsed.config.leader_election)
    assert str(raised.value) == (
        "couldn't create leader elector: leaseDuration must be greater than renewDeadline"
    )
    parsed = options("--leader-elect-resource-lock=endpoints")
    with pytest.raises(ConfigError) as raised:
        check_election(parsed.config.leader_election)
    assert str(raised.value) == (
        "couldn't create resource lock: endpoints lock is removed, migrate to leases"
    )


def test_values_of_labels_come_from_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "labels.yaml"
    path.write_text("scheduler_pending_pods,queue: active,gated\n")
    options = parse_options([f"--allow-metric-labels-manifest={path}"])
    assert isinstance(options, SchedulerOptions)
    assert options.metrics.allowed_labels == {"scheduler_pending_pods,queue": "active,gated"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("- a", "failed to parse allow list manifest: ", id="a-list"),
        pytest.param("a,b: {c: d}", "failed to parse allow list manifest: ", id="nested"),
        pytest.param("a: [", "failed to parse allow list manifest: ", id="no-yaml"),
        pytest.param("a: b", "invalid allow list mapping in manifest: [", id="no-label"),
    ],
)
def test_a_manifest_of_labels_that_cannot_be_used(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "labels.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        parse_options([f"--allow-metric-labels-manifest={path}"])
    start = f'metrics.allowListMappingManifest: Invalid value: "{path}": {problem}'
    assert str(caught.value).startswith(start)
