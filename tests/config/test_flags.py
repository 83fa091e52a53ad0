"""How a command line is read, and what it overrides (spec 09 §2)."""

import pytest

from kubestow.config.decoding import decode_config
from kubestow.config.defaults import complete_config
from kubestow.config.flag import format_value
from kubestow.config.flag_table import FLAGS, Section
from kubestow.config.flags import ParsedFlags, apply_flags, parse_flags
from kubestow.config.scalars import Duration, seconds
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import FlagError

# Spec 09 §2, row by row: section, flag, default as text.
TABLE = """
misc config
misc write-config-to
misc master
misc attempt-budget 10s
misc force false
misc record
misc record-size-mib 512
misc page false
secure-serving bind-address 0.0.0.0
secure-serving secure-port 10259
secure-serving disable-http2-serving false
secure-serving cert-dir
secure-serving tls-cert-file
secure-serving tls-private-key-file
secure-serving tls-cipher-suites []
secure-serving tls-curve-preferences []
secure-serving tls-min-version
secure-serving tls-sni-cert-key []
secure-serving http2-max-streams-per-connection 0
secure-serving permit-port-sharing false
secure-serving permit-address-sharing false
authentication authentication-kubeconfig
authentication authentication-skip-lookup false
authentication authentication-token-webhook-cache-ttl 10s
authentication authentication-tolerate-lookup-failure true
authentication client-ca-file
authentication requestheader-allowed-names []
authentication requestheader-client-ca-file
authentication requestheader-extra-headers-prefix [x-remote-extra-]
authentication requestheader-group-headers [x-remote-group]
authentication requestheader-uid-headers []
authentication requestheader-username-headers [x-remote-user]
authorization authorization-kubeconfig
authorization authorization-always-allow-paths [/healthz,/readyz,/livez]
authorization authorization-webhook-cache-authorized-ttl 10s
authorization authorization-webhook-cache-unauthorized-ttl 10s
deprecated kubeconfig
deprecated profiling true
deprecated contention-profiling true
deprecated kube-api-content-type application/vnd.kubernetes.protobuf
deprecated kube-api-qps 50
deprecated kube-api-burst 100
deprecated pod-max-in-unschedulable-pods-duration 5m0s
leader-election leader-elect true
leader-election leader-elect-lease-duration 15s
leader-election leader-elect-renew-deadline 10s
leader-election leader-elect-retry-period 2s
leader-election leader-elect-resource-lock leases
leader-election leader-elect-resource-name kube-scheduler
leader-election leader-elect-resource-namespace kube-system
feature-gate feature-gates []
feature-gate emulated-version []
feature-gate min-compatibility-version []
metrics show-hidden-metrics-for-version
metrics disabled-metrics []
metrics allow-metric-labels []
metrics allow-metric-labels-manifest
logs logging-format text
logs log-flush-frequency 5s
logs v 0
logs vmodule
logs log-text-split-stream false
logs log-json-split-stream false
logs log-text-info-buffer-size 0
logs log-json-info-buffer-size 0
older-schedulers compatibility
older-schedulers algorithm-provider DefaultProvider
older-schedulers policy-config-file
older-schedulers policy-configmap
older-schedulers policy-configmap-namespace kube-system
older-schedulers use-legacy-policy-config false
older-schedulers scheduler-name default-scheduler
older-schedulers hard-pod-affinity-symmetric-weight 1
older-schedulers lock-object-name kube-scheduler
older-schedulers lock-object-namespace kube-system
global version false
global help false
"""


def section_name(section: Section) -> str:
    return section.value.lower().replace(" ", "-")


def test_the_flags_are_those_of_the_specification() -> None:
    rows = {tuple(line.split(maxsplit=2)) for line in TABLE.strip().splitlines()}
    found = {
        tuple(f"{section_name(f.section)} {f.name} {format_value(f.default)}".split(maxsplit=2))
        for f in FLAGS
    }
    assert found == rows
    assert len(FLAGS) == len(rows)


def test_every_flag_is_explained() -> None:
    assert all(flag.help.endswith(".") for flag in FLAGS)


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        pytest.param(["--config=a.yaml"], "config", "a.yaml", id="equals"),
        pytest.param(["--config", "a.yaml"], "config", "a.yaml", id="next-argument"),
        pytest.param(["--config", "--v=2"], "config", "--v=2", id="next-argument-like-a-flag"),
        pytest.param(["--config="], "config", "", id="empty"),
        pytest.param(["--config=a=b"], "config", "a=b", id="first-equals-counts"),
        pytest.param(["--secure_port=1"], "secure-port", 1, id="underscore"),
        pytest.param(["--leader-elect"], "leader-elect", True, id="switch"),
        pytest.param(["--leader-elect=false"], "leader-elect", False, id="switch-off"),
        pytest.param(["--profiling=F"], "profiling", False, id="switch-letter"),
        pytest.param(["--config=a", "--config=b"], "config", "b", id="the-last-counts"),
        pytest.param(["-v=2"], "v", 2, id="short-equals"),
        pytest.param(["-v", "2"], "v", 2, id="short-next"),
        pytest.param(["-v2"], "v", 2, id="short-joined"),
        pytest.param(["--v", "10"], "v", 10, id="long"),
        pytest.param(["-hv3"], "v", 3, id="short-switches-join"),
        pytest.param(["--secure-port=0x10"], "secure-port", 16, id="hexadecimal"),
        pytest.param(["--secure-port=010"], "secure-port", 8, id="octal"),
        pytest.param(["--kube-api-qps=-1"], "kube-api-qps", -1.0, id="negative-rate"),
        pytest.param(["--kube-api-qps=.5e1"], "kube-api-qps", 5.0, id="float"),
        pytest.param(
            ["--log-flush-frequency=1m"], "log-flush-frequency", seconds(60), id="duration"
        ),
        pytest.param(["--bind-address=::"], "bind-address", "::", id="ipv6"),
        pytest.param(
            ["--disabled-metrics=a,b", "--disabled-metrics=c"],
            "disabled-metrics",
            ("a", "b", "c"),
            id="list",
        ),
        pytest.param(['--disabled-metrics="a,b",c'], "disabled-metrics", ("a,b", "c"), id="csv"),
        pytest.param(
            ["--requestheader-group-headers=g"],
            "requestheader-group-headers",
            ("g",),
            id="list-replaces-its-default",
        ),
        pytest.param(
            ["--tls-curve-preferences=29,23"],
            "tls-curve-preferences",
            ("29", "23"),
            id="numbers",
        ),
        pytest.param(
            ["--tls-sni-cert-key=a,b:x,y", "--tls-sni-cert-key=c,d"],
            "tls-sni-cert-key",
            ("a,b:x,y", "c,d"),
            id="certificates",
        ),
        pytest.param(
            ["--allow-metric-labels=m,l=v1,v2", "--allow-metric-labels=m,k=v"],
            "allow-metric-labels",
            {"m,l": "v1,v2", "m,k": "v"},
            id="pairs",
        ),
        pytest.param(
            ['--allow-metric-labels="m,l=v1","m,k=v2"'],
            "allow-metric-labels",
            {"m,l": "v1", "m,k": "v2"},
            id="several-pairs",
        ),
        pytest.param(
            ["--feature-gates=A=true,B=false", "--feature-gates=C=true"],
            "feature-gates",
            ("A=true,B=false", "C=true"),
            id="gates",
        ),
        pytest.param(["--vmodule=a*=2,b=3"], "vmodule", "a*=2,b=3", id="modules"),
        pytest.param(
            ["--log-text-info-buffer-size=1Mi"], "log-text-info-buffer-size", "1Mi", id="quantity"
        ),
        pytest.param(["--version"], "version", "true", id="version"),
        pytest.param(["--version=raw"], "version", "raw", id="version-raw"),
        pytest.param(["--version=v1.2.3"], "version", "v1.2.3", id="version-set"),
    ],
)
def test_a_flag_and_its_value(arguments: list[str], name: str, value: object) -> None:
    flags = parse_flags(arguments)
    assert flags.values[name] == value
    assert name in flags.given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--x"], "unknown flag: --x"),
        (["--x_y=1"], "unknown flag: --x_y"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["--=x"], "bad flag syntax: --=x"),
        (["---x"], "bad flag syntax: ---x"),
        (["--config"], "flag needs an argument: --config"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (
            ["--leader-elect=maybe"],
            'invalid argument "maybe" for "--leader-elect" flag: '
            'strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (
            ["-v=x"],
            'invalid argument "x" for "-v, --v" flag: '
            'strconv.ParseUint: parsing "x": invalid syntax',
        ),
        (
            ["--v=-1"],
            'invalid argument "-1" for "-v, --v" flag: '
            'strconv.ParseUint: parsing "-1": invalid syntax',
        ),
        (
            ["--kube-api-burst=2147483648"],
            'invalid argument "2147483648" for "--kube-api-burst" flag: '
            'strconv.ParseInt: parsing "2147483648": value out of range',
        ),
        (
            ["--kube-api-qps=fast"],
            'invalid argument "fast" for "--kube-api-qps" flag: '
            'strconv.ParseFloat: parsing "fast": invalid syntax',
        ),
        (
            ["--kube-api-qps=1e39"],
            'invalid argument "1e39" for "--kube-api-qps" flag: '
            'strconv.ParseFloat: parsing "1e39": value out of range',
        ),
        (
            ["--leader-elect-lease-duration=15"],
            'invalid argument "15" for "--leader-elect-lease-duration" flag: '
            'time: missing unit in duration "15"',
        ),
        (
            ["--bind-address=localhost"],
            'invalid argument "localhost" for "--bind-address" flag: '
            'failed to parse IP: "localhost"',
        ),
        (
            ["--tls-sni-cert-key=a"],
            'invalid argument "a" for "--tls-sni-cert-key" flag: '
            "expected comma separated certificate and key file paths",
        ),
        (
            ["--allow-metric-labels=a"],
            'invalid argument "a" for "--allow-metric-labels" flag: '
            "a must be formatted as key=value",
        ),
        (
            ["--version=perhaps"],
            'invalid argument "perhaps" for "--version" flag: '
            'strconv.ParseBool: parsing "perhaps": invalid syntax',
        ),
    ],
)
def test_what_does_not_parse(arguments: list[str], message: str) -> None:
    with pytest.raises(FlagError) as raised:
        parse_flags(arguments)
    assert str(raised.value) == message


def test_the_first_error_ends_the_reading() -> None:
    with pytest.raises(FlagError, match="unknown flag: --x"):
        parse_flags(["--x", "--leader-elect=maybe"])


@pytest.mark.parametrize(
    ("arguments", "others"),
    [
        (["a", "--v=2", "b"], ("a", "b")),
        (["--leader-elect", "false"], ("false",)),
        (["--", "--v=2"], ("--v=2",)),
        (["-"], ("-",)),
    ],
)
def test_what_is_no_flag(arguments: list[str], others: tuple[str, ...]) -> None:
    assert parse_flags(arguments).arguments == others


def test_flags_are_shown_by_name() -> None:
    lines = list(parse_flags(["--v=2", "--disabled-metrics=a,b"]).lines())
    assert len(lines) == len(FLAGS)
    assert [line.partition("=")[0] for line in lines] == sorted(flag.name for flag in FLAGS)
    assert 'v="2"' in lines
    assert 'disabled-metrics="[a,b]"' in lines
    assert 'leader-elect-lease-duration="15s"' in lines
    assert 'bind-address="0.0.0.0"' in lines


# --- precedence (§2.1) ---

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def with_file(text: str, *arguments: str) -> SchedulerConfig:
    config = decode_config((HEAD + text).encode())
    return apply_flags(config, parse_flags(arguments), is_from_file=True)


def without_file(*arguments: str) -> SchedulerConfig:
    flags = parse_flags(arguments)
    return apply_flags(complete_config(SchedulerConfig()), flags, is_from_file=False)


def test_the_file_has_the_kubeconfig() -> None:  # example 1
    config = with_file("clientConnection: {kubeconfig: b.conf}", "--kubeconfig=a.conf")
    assert config.client_connection.kubeconfig == "b.conf"


def durations(config: SchedulerConfig) -> list[str]:
    election = config.leader_election
    return [str(d) for d in (election.lease_duration, election.renew_deadline)] + [
        str(election.retry_period)
    ]


def test_flags_set_what_the_file_lacks() -> None:  # example 2
    config = with_file("", "--leader-elect=false", "--leader-elect-lease-duration=2h")
    assert not config.leader_election.leader_elect
    assert durations(config) == ["2h0m0s", "10s", "2s"]


def test_flags_override_the_file_one_by_one() -> None:  # example 3
    config = with_file(
        "leaderElection: {leaseDuration: 1h}",
        "--leader-elect-renew-deadline=5s",
        "--leader-elect-retry-period=1s",
    )
    assert durations(config) == ["1h0m0s", "5s", "1s"]


def test_rates_are_the_files() -> None:  # example 5
    assert without_file("--kube-api-qps=50").client_connection.qps == 50
    config = with_file("clientConnection: {qps: 20}", "--kube-api-qps=50")
    assert config.client_connection.qps == 20


def test_a_flag_with_its_default_value_counts_as_given() -> None:
    config = with_file("leaderElection: {leaseDuration: 1h}", "--leader-elect-lease-duration=15s")
    assert config.leader_election.lease_duration == seconds(15)


ALL = (
    "--kubeconfig=a",
    "--profiling=false",
    "--contention-profiling=false",
    "--kube-api-content-type=application/json",
    "--kube-api-qps=1",
    "--kube-api-burst=2",
    "--leader-elect=false",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=5s",
    "--leader-elect-resource-lock=lock",
    "--leader-elect-resource-name=name",
    "--leader-elect-resource-namespace=namespace",
)


def test_without_a_file_all_of_them_count() -> None:
    config = without_file(*ALL)
    connection, election = config.client_connection, config.leader_election
    assert (config.enable_profiling, config.enable_contention_profiling) == (False, False)
    assert (connection.kubeconfig, connection.content_type) == ("a", "application/json")
    assert (connection.qps, connection.burst) == (1, 2)
    assert not election.leader_elect
    assert durations(config) == ["3s", "4s", "5s"]
    assert (election.resource_lock, election.resource_name) == ("lock", "name")
    assert election.resource_namespace == "namespace"


def test_with_a_file_only_those_of_leader_election_count() -> None:
    config, plain = with_file("", *ALL), with_file("")
    assert config.client_connection == plain.client_connection
    assert config.enable_profiling
    assert config.enable_contention_profiling
    assert config.leader_election == without_file(*ALL).leader_election


def test_without_flags_nothing_changes() -> None:
    assert without_file() == complete_config(SchedulerConfig())


def test_values_have_the_type_that_is_asked_for() -> None:
    flags: ParsedFlags = parse_flags([])
    assert flags.text("config") == ""
    assert flags.number("secure-port") == 10259
    assert flags.switch("leader-elect")
    assert isinstance(flags.duration("log-flush-frequency"), Duration)
    assert flags.texts("requestheader-username-headers") == ("x-remote-user",)
    assert flags.pairs("allow-metric-labels") == {}
    with pytest.raises(AssertionError):
        flags.text("secure-port")
