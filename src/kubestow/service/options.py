"""A command line in kube-scheduler's style as one validated whole (spec 09 §1 steps 1 to 8, §2).

    arguments ── flags ──► gates ──► logging ──► everything else ──► configuration, flags on top

Order matters, because a user sees the first step that fails: a flag that does not parse ends it at
once, errors of values are collected, and only then is the configuration file read. Nothing above
`SchedulerOptions` reads flags except to show them.

Not here: `--help` (`commands.run`), loading plugins from outside (`plugins.loading`), connecting,
serving.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec
from msgspec import field

from kubestow.api.decode import is_map
from kubestow.config.decoding import load_config
from kubestow.config.defaults import complete_config
from kubestow.config.documents import read_document
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.field_errors import forbidden, invalid, raise_if_any
from kubestow.config.flags import ParsedFlags, apply_flags, parse_flags
from kubestow.config.scalars import Duration
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config, validate_config
from kubestow.editions import CORE
from kubestow.editions.edition import Edition
from kubestow.editions.options import EditionOptions, edition_options, with_named_lock
from kubestow.errors import ConfigError
from kubestow.files.reading import read_file

PROGRAM: Final = "kube-scheduler"

# How many minor versions back the oldest is that can be emulated.
_EMULATED_MINORS: Final = 3
_TLS_VERSIONS: Final = ("", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
_METRIC: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_LABEL_KEY: Final = re.compile(f"{_METRIC},{_LABEL}")
_LABEL_KEYS_EXPECTED: Final = (
    f'must have keys with format `metricName,labelName` where metricName matches "{_METRIC}" and '
    f'labelName matches "{_LABEL}"'
)
_LABELS: Final = "metrics.allowListMapping"
_MANIFEST: Final = "metrics.allowListMappingManifest"


class RequestedText(NamedTuple):
    """The answer to `--version`, instead of options."""

    text: str


class SniCertificate(NamedTuple):
    """A certificate for clients that request one of these names; by default its own names."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()


class _FlagOptions(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Values of flags: a field has the name of its flag, or gives it."""

    @classmethod
    def of(cls, flags: ParsedFlags) -> Self:
        # Not strict: numbers in lists are strings.
        return msgspec.convert(flags.values, cls, strict=False)


class ServingOptions(_FlagOptions, frozen=True, kw_only=True):
    bind_address: str
    # 0 serves nothing.
    port: int = field(name="secure-port")
    cert_dir: str
    cert_file: str = field(name="tls-cert-file")
    key_file: str = field(name="tls-private-key-file")
    sni_texts: tuple[str, ...] = field(name="tls-sni-cert-key")
    cipher_suites: tuple[str, ...] = field(name="tls-cipher-suites")
    curve_preferences: tuple[int, ...] = field(name="tls-curve-preferences")
    # `VersionTLS10` to `VersionTLS13`; empty means TLS 1.2.
    min_version: str = field(name="tls-min-version")
    permit_port_sharing: bool

    @property
    def sni_certificates(self) -> tuple[SniCertificate, ...]:
        return tuple(map(_sni_certificate, self.sni_texts))


class AuthenticationOptions(_FlagOptions, frozen=True, kw_only=True):
    kubeconfig: str = field(name="authentication-kubeconfig")
    skip_lookup: bool = field(name="authentication-skip-lookup")
    tolerate_lookup_failure: bool = field(name="authentication-tolerate-lookup-failure")
    token_cache_ttl: Duration = field(name="authentication-token-webhook-cache-ttl")
    client_ca_file: str
    requestheader_client_ca_file: str
    requestheader_allowed_names: tuple[str, ...]
    requestheader_extra_prefixes: tuple[str, ...] = field(name="requestheader-extra-headers-prefix")
    requestheader_groups: tuple[str, ...] = field(name="requestheader-group-headers")
    requestheader_uids: tuple[str, ...] = field(name="requestheader-uid-headers")
    requestheader_usernames: tuple[str, ...] = field(name="requestheader-username-headers")


class AuthorizationOptions(_FlagOptions, frozen=True, kw_only=True):
    kubeconfig: str = field(name="authorization-kubeconfig")
    # Exact paths; a `*` at the end matches anything.
    always_allow_paths: tuple[str, ...] = field(name="authorization-always-allow-paths")
    allow_cache_ttl: Duration = field(name="authorization-webhook-cache-authorized-ttl")
    deny_cache_ttl: Duration = field(name="authorization-webhook-cache-unauthorized-ttl")


class MetricsOptions(_FlagOptions, frozen=True, kw_only=True):
    disabled: tuple[str, ...] = field(name="disabled-metrics")
    # Hidden metrics are shown, if it is not empty: only the version before is allowed.
    hidden_since: str = field(name="show-hidden-metrics-for-version")
    # `metric,label` → the values it may have, separated by commas.
    allowed_labels: Mapping[str, str] = field(name="allow-metric-labels")


class LoggingOptions(_FlagOptions, frozen=True, kw_only=True):
    format: str = field(name="logging-format")
    flush_frequency: Duration = field(name="log-flush-frequency")
    verbosity: int = field(name="v")
    # `pattern=N,pattern=N`
    vmodule: str
    is_text_split: bool = field(name="log-text-split-stream")
    is_json_split: bool = field(name="log-json-split-stream")

    @property
    def is_stream_split(self) -> bool:
        return self.is_json_split if self.format == "json" else self.is_text_split


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of a scheduler process. The configuration is complete and, if it came from a
    file, validated; without a file `config.connection.check_election` is not called yet."""

    config: SchedulerConfig
    gates: FeatureGates
    # Overrides the address of the API server.
    master: str
    pod_max_in_unschedulable_pods: Duration
    attempt_budget: Duration
    # The file of a recording; empty for none.
    record: str
    record_bytes_max: int
    # Whether files that exist are overwritten.
    force: bool
    # Whether the page is served.
    page: bool
    serving: ServingOptions
    authentication: AuthenticationOptions
    authorization: AuthorizationOptions
    metrics: MetricsOptions
    logging: LoggingOptions
    config_file: str
    write_config_to: str
    emulated_version: str
    reported_version: str
    choice: EditionOptions
    # For the log of all flags and `/flagz`.
    flags: ParsedFlags


def parse_options(
    arguments: Sequence[str], *, program: str = PROGRAM, edition: Edition = CORE
) -> SchedulerOptions | RequestedText:
    """The options in a command line (without the program's name). `edition` is for one that names
    none.

    Raises ConfigError with all errors as upstream prints them; FlagError if a flag does not parse.
    """
    flags = parse_flags(arguments)
    if any(flags.arguments):
        got = " ".join(f'"{argument}"' for argument in flags.arguments)
        raise ConfigError(f'"{program}" does not take any arguments, got [{got}]')
    choice = edition_options(flags, edition)
    gates = choice.gates if choice.edition.is_modern else DEFAULT_GATES
    versions = _Versions.of(flags, gates.edition)
    answer = _version_text(flags, gates.edition)
    if answer is not None:
        return answer
    logging = LoggingOptions.of(flags)
    raise_if_any(_logging_errors(logging, flags, gates))
    raise_if_any(_option_errors(flags, gates, versions))
    return SchedulerOptions(
        config=_config(flags, gates, choice),
        gates=gates,
        master=flags.text("master"),
        pod_max_in_unschedulable_pods=flags.duration("pod-max-in-unschedulable-pods-duration"),
        attempt_budget=flags.duration("attempt-budget"),
        record=flags.text("record"),
        record_bytes_max=flags.number("record-size-mib") << 20,
        force=flags.switch("force"),
        page=flags.switch("page"),
        serving=ServingOptions.of(flags),
        authentication=AuthenticationOptions.of(flags),
        authorization=AuthorizationOptions.of(flags),
        metrics=msgspec.structs.replace(
            MetricsOptions.of(flags), allowed_labels=_allowed_labels(flags)
        ),
        logging=logging,
        config_file=flags.text("config"),
        write_config_to=flags.text("write-config-to"),
        emulated_version=versions.emulated,
        reported_version=_reported_version(flags, gates.edition),
        choice=choice,
        flags=flags,
    )


# --- the configuration ---


def _config(flags: ParsedFlags, gates: FeatureGates, choice: EditionOptions) -> SchedulerConfig:
    path = flags.text("config")
    profile = choice.profile()
    if not path:
        # Spec 09 §2.1: without a file the defaults with flags applied are not validated.
        config = complete_config(SchedulerConfig(profiles=(profile,)), gates)
        return with_named_lock(apply_flags(config, flags, is_from_file=False), flags)
    defaults = None if choice.edition.is_modern else profile.plugins
    config = apply_flags(load_config(path, gates, defaults), flags, is_from_file=True)
    check_config(config, gates, is_older=defaults is not None)
    return config


# --- versions ---


class _Versions(NamedTuple):
    minor: int
    emulated: str
    min_compatibility: str  # empty if not set

    @classmethod
    def of(cls, flags: ParsedFlags, edition: Edition) -> "_Versions":
        emulated = _version_of("emulated-version", flags) or f"1.{edition.minor}"
        return cls(edition.minor, emulated, _version_of("min-compatibility-version", flags))

    def errors(self) -> list[str]:
        errors: list[str] = []
        oldest = self.minor - _EMULATED_MINORS
        if not oldest <= _minor_of(self.emulated) <= self.minor:
            between = f"[1.{oldest}, 1.{self.minor}.0]"
            errors.append(f"emulation version {self.emulated} is not between {between}")
        compatible = self.min_compatibility
        if compatible and not oldest <= _minor_of(compatible) <= _minor_of(self.emulated):
            between = f"[1.{oldest}, {self.emulated}]"
            errors.append(f"minCompatibilityVersion version {compatible} is not between {between}")
        return errors


def _version_of(name: str, flags: ParsedFlags) -> str:
    """The version a flag sets for Kubernetes; empty if it sets none."""
    version = ""
    for entry in flags.texts(name):
        component, separator, value = entry.strip().rpartition("=")
        if separator and component != "kube":
            raise ConfigError(f"component not registered: {component}")
        if not re.fullmatch(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?", value):
            raise ConfigError(f'illegal version string "{value}"')
        version = value.removeprefix("v")
    return version


def _minor_of(version: str) -> int:
    """The minor number; -1, which is never allowed, of another major version."""
    major, minor = version.split(".")[:2]
    return int(minor) if major == "1" else -1


def _version_text(flags: ParsedFlags, edition: Edition) -> RequestedText | None:
    wanted = flags.text("version")
    if wanted == "true":
        return RequestedText(f"Kubernetes {edition.release}")
    if wanted == "raw":
        parts = (
            f'Major:"1", Minor:"{edition.minor}", GitVersion:"{edition.release}", '
            f'Compiler:"{sys.implementation.name}", Platform:"{sys.platform}"'
        )
        return RequestedText(f"version.Info{{{parts}}}")
    return None


def _reported_version(flags: ParsedFlags, edition: Edition) -> str:
    version = flags.text("version")
    return version if version.startswith("v") else edition.release


# --- what is checked before the configuration is read ---


def _option_errors(flags: ParsedFlags, gates: FeatureGates, versions: _Versions) -> list[str]:
    return [
        *versions.errors(),
        *gates.dependency_errors(),
        *validate_config(complete_config(SchedulerConfig(), gates), gates),
        *_serving_errors(flags),
        *_authentication_errors(flags),
        *_metrics_errors(flags, gates.edition),
        *_budget_errors(flags),
        *_recording_errors(flags),
        *_page_errors(flags),
    ]


def _budget_errors(flags: ParsedFlags) -> list[str]:
    budget = flags.duration("attempt-budget")
    if budget.seconds < 0:
        return [f"--attempt-budget {budget} must be 0, for no limit, or more"]
    return []


def _recording_errors(flags: ParsedFlags) -> list[str]:
    size_mib = flags.number("record-size-mib")
    return [] if size_mib > 0 else [f"--record-size-mib {size_mib} must be 1 or more"]


def _page_errors(flags: ParsedFlags) -> list[str]:
    if flags.switch("page") and not flags.number("secure-port"):
        return ["--page needs the port that --secure-port 0 turns off"]
    return []


def _serving_errors(flags: ParsedFlags) -> list[str]:
    errors: list[str] = []
    port, limits = flags.number("secure-port"), "65535, inclusive."
    if port > 65535:
        # Spec 09 §2: upstream's text, although 0 is allowed.
        errors.append(
            f"--secure-port {port} must be between 1 and {limits} It cannot be turned off with 0"
        )
    elif port < 0:
        errors.append(
            f"--secure-port {port} must be between 0 and {limits} 0 for turning off secure port"
        )
    version = flags.text("tls-min-version")
    if version not in _TLS_VERSIONS:
        errors.append(f'unknown tls version "{version}"')
    return errors


def _authentication_errors(flags: ParsedFlags) -> list[str]:
    kinds = ("username", "uid", "group")
    names = [f"requestheader-{kind}-headers" for kind in kinds]
    names += ["requestheader-extra-headers-prefix", "requestheader-allowed-names"]
    return [
        f'empty value in "{name}"'
        for name in names
        if any(not text.strip() for text in flags.texts(name))
    ]


def _allowed_labels(flags: ParsedFlags) -> Mapping[str, str]:
    """`metric,label` → the values it may have, of the flag or of the file that one names.

    Raises ConfigError if the file cannot be used.
    """
    path = flags.text("allow-metric-labels-manifest")
    return _read_manifest(path) if path else flags.pairs("allow-metric-labels")


def _metrics_errors(flags: ParsedFlags, edition: Edition) -> list[str]:
    errors: list[str] = []
    previous = f"1.{edition.minor - 1}"
    version = flags.text("show-hidden-metrics-for-version")
    if version not in ("", previous):
        rule = f"must be omitted or have the value '{previous}'; only the previous minor version is"
        errors.append(invalid("metrics.showHiddenMetricsForVersion", version, f"{rule} allowed"))
    names = flags.texts("disabled-metrics")
    wrong = next((name for name in names if not re.fullmatch(_METRIC, name)), None)
    if wrong is not None:
        rule = f'must be fully qualified metric names matching "^{_METRIC}$", got "{wrong}"'
        errors.append(invalid("metrics.disabledMetrics", list(names), rule))
    labels, path = flags.pairs("allow-metric-labels"), flags.text("allow-metric-labels-manifest")
    if not _are_label_keys(labels):
        errors.append(invalid(_LABELS, labels, _LABEL_KEYS_EXPECTED))
    if path:
        try:
            _read_manifest(path)
        except ConfigError as error:
            errors.append(str(error))
    if labels and path:
        both = {"allowListMapping": labels, "allowListMappingManifest": path}
        rule = "cannot specify both allowListMapping and allowListMappingManifest"
        errors.append(invalid("metrics", both, rule))
    return errors


def _read_manifest(path: str) -> dict[str, str]:
    try:
        value: Any = read_document(read_file(path)).value
    except OSError as error:
        reason = f"open {path}: {(error.strerror or str(error)).lower()}"
        detail = f"failed to read allow list manifest: {reason}"
        raise ConfigError(invalid(_MANIFEST, path, detail)) from error
    except ConfigError as error:
        detail = f"failed to parse allow list manifest: {error}"
        raise ConfigError(invalid(_MANIFEST, path, detail)) from error
    found: dict[str, Any] = dict(value) if is_map(value) else {}
    if (value is not None and not is_map(value)) or any(
        not isinstance(each, str) for each in found.values()
    ):
        detail = "failed to parse allow list manifest: expected a map of texts"
        raise ConfigError(invalid(_MANIFEST, path, detail))
    if not _are_label_keys(found):
        rule = invalid(_MANIFEST, found, _LABEL_KEYS_EXPECTED)
        detail = f"invalid allow list mapping in manifest: [{rule}]"
        raise ConfigError(invalid(_MANIFEST, path, detail))
    return found


def _are_label_keys(labels: Mapping[str, str]) -> bool:
    return all(map(_LABEL_KEY.fullmatch, labels))


def _logging_errors(options: LoggingOptions, flags: ParsedFlags, gates: FeatureGates) -> list[str]:
    errors: list[str] = []
    if options.format not in ("text", "json"):
        errors.append(invalid("format", options.format, "Unsupported log format"))
    elif options.format == "json" and not gates.enabled("LoggingBetaOptions"):
        rule = "Log format json is disabled, see LoggingBetaOptions feature"
        errors.append(forbidden("format", rule))
    if options.flush_frequency <= 0:
        rule = "Must be greater than zero"
        errors.append(invalid("flushFrequency", options.flush_frequency, rule))
    if options.vmodule and options.format != "text":
        errors.append(forbidden("vmodule", "Only supported for text log format"))
    if not gates.enabled("LoggingAlphaOptions"):
        rule = "Feature LoggingAlphaOptions is disabled"
        for kind in ("text", "json"):
            if flags.switch(f"log-{kind}-split-stream"):
                errors.append(forbidden(f"options.{kind}.splitStream", rule))
            if flags.text(f"log-{kind}-info-buffer-size") != "0":
                errors.append(forbidden(f"options.{kind}.infoBufferSize", rule))
    return errors


def _sni_certificate(text: str) -> SniCertificate:
    files, _, names = text.partition(":")
    cert_file, _, key_file = files.partition(",")
    stripped = tuple(name.strip() for name in names.split(",") if name.strip())
    return SniCertificate(cert_file.strip(), key_file.strip(), stripped)
