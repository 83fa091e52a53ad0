"""Every command-line flag of the scheduler (spec 09 §2), with kind, default and help.

Not here: how a command line is read and what it overrides (`flags`).
"""

from enum import StrEnum
from typing import Final, NamedTuple

from kubestow.config.connection import PROTOBUF
from kubestow.config.flag_kinds import (
    BOOL,
    CERT_KEYS,
    DURATION,
    FLOAT32,
    INT,
    INT32,
    INT32_LIST,
    IP,
    LEVEL,
    MODULE_LEVELS,
    PAIRS,
    QUANTITY,
    REPEATED,
    STRING,
    STRINGS,
    VERSION,
    FlagKind,
    FlagValue,
)
from kubestow.config.scalars import seconds


class Section(StrEnum):
    """The headings of the usage, in this order."""

    MISC = "Misc"
    SECURE_SERVING = "Secure serving"
    AUTHENTICATION = "Authentication"
    AUTHORIZATION = "Authorization"
    DEPRECATED = "Deprecated"
    LEADER_ELECTION = "Leader election"
    FEATURE_GATE = "Feature gate"
    METRICS = "Metrics"
    LOGS = "Logs"
    GLOBAL = "Global"


class Flag(NamedTuple):
    section: Section
    name: str
    kind: FlagKind
    default: FlagValue
    help: str
    shorthand: str = ""


_IGNORED: Final = "Ignored when --config is given."
_LEASE: Final = "Only used with leader election."
_ALPHA: Final = "Needs the feature gate LoggingAlphaOptions."

FLAGS: Final[tuple[Flag, ...]] = (
    Flag(Section.MISC, "config", STRING, "", "The configuration file."),
    Flag(
        Section.MISC,
        "write-config-to",
        STRING,
        "",
        "Write the configuration with all defaults to this file and exit.",
    ),
    Flag(
        Section.MISC,
        "master",
        STRING,
        "",
        "Address of the API server; overrides that of a kubeconfig.",
    ),
    Flag(
        Section.MISC,
        "attempt-budget",
        DURATION,
        seconds(10),
        "How long one attempt to schedule a pod may take before it fails and other pods go on; "
        "0 is no limit. kube-scheduler does not have this flag.",
    ),
    Flag(
        Section.MISC,
        "record",
        STRING,
        "",
        "Write what the scheduler sees and decides to this file, for kubestow replay. Environment "
        "variables, commands and secrets are left out. kube-scheduler does not have this flag.",
    ),
    Flag(
        Section.MISC,
        "record-size-mib",
        INT,
        512,
        "How large the file of --record and the one before it may become together. "
        "kube-scheduler does not have this flag.",
    ),
    Flag(
        Section.SECURE_SERVING,
        "bind-address",
        IP,
        "0.0.0.0",
        "Address to serve HTTPS on; 0.0.0.0 or :: for all interfaces and address families.",
    ),
    Flag(
        Section.SECURE_SERVING,
        "secure-port",
        INT,
        10259,
        "Port to serve HTTPS on; 0 serves nothing.",
    ),
    Flag(Section.SECURE_SERVING, "disable-http2-serving", BOOL, False, "Serve HTTP/1.1 only."),
    Flag(
        Section.SECURE_SERVING,
        "cert-dir",
        STRING,
        "",
        "Directory whose kube-scheduler.crt and kube-scheduler.key are used, or made if missing. "
        "Ignored when --tls-cert-file and --tls-private-key-file are given.",
    ),
    Flag(Section.SECURE_SERVING, "tls-cert-file", STRING, "", "Certificate to serve with."),
    Flag(
        Section.SECURE_SERVING,
        "tls-private-key-file",
        STRING,
        "",
        "Private key that belongs to --tls-cert-file.",
    ),
    Flag(Section.SECURE_SERVING, "tls-cipher-suites", STRINGS, (), "Cipher suites to offer."),
    Flag(
        Section.SECURE_SERVING,
        "tls-curve-preferences",
        INT32_LIST,
        (),
        "Key exchange mechanisms to offer, by number, best first.",
    ),
    Flag(
        Section.SECURE_SERVING,
        "tls-min-version",
        STRING,
        "",
        "Oldest TLS version to accept: VersionTLS10 to VersionTLS13; empty means TLS 1.2.",
    ),
    Flag(
        Section.SECURE_SERVING,
        "tls-sni-cert-key",
        CERT_KEYS,
        (),
        "Certificate and key for some names: crt,key[:name,name]. May be repeated.",
    ),
    Flag(
        Section.SECURE_SERVING,
        "http2-max-streams-per-connection",
        INT,
        0,
        "Streams a client may have open on one connection; 0 means 100.",
    ),
    Flag(Section.SECURE_SERVING, "permit-port-sharing", BOOL, False, "Bind with SO_REUSEPORT."),
    Flag(Section.SECURE_SERVING, "permit-address-sharing", BOOL, False, "Bind with SO_REUSEADDR."),
    Flag(
        Section.AUTHENTICATION,
        "authentication-kubeconfig",
        STRING,
        "",
        "kubeconfig of the API server that reviews tokens; by default the in-cluster one, if any.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "authentication-skip-lookup",
        BOOL,
        False,
        "Do not look the authentication settings up in the cluster.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "authentication-token-webhook-cache-ttl",
        DURATION,
        seconds(10),
        "How long reviews of tokens are cached.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "authentication-tolerate-lookup-failure",
        BOOL,
        True,
        "Go on, and treat all requests as anonymous, when the look-up fails.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "client-ca-file",
        STRING,
        "",
        "Certificate authorities whose client certificates are accepted.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "requestheader-allowed-names",
        STRINGS,
        (),
        "Names in client certificates that may pass on user names in headers; empty means any.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "requestheader-client-ca-file",
        STRING,
        "",
        "Certificate authorities of clients that may pass on user names in headers.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "requestheader-extra-headers-prefix",
        STRINGS,
        ("x-remote-extra-",),
        "Prefixes of headers with more about the user.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "requestheader-group-headers",
        STRINGS,
        ("x-remote-group",),
        "Headers with the user's groups.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "requestheader-uid-headers",
        STRINGS,
        (),
        "Headers with the user's UID.",
    ),
    Flag(
        Section.AUTHENTICATION,
        "requestheader-username-headers",
        STRINGS,
        ("x-remote-user",),
        "Headers with the user's name.",
    ),
    Flag(
        Section.AUTHORIZATION,
        "authorization-kubeconfig",
        STRING,
        "",
        "kubeconfig of the API server that reviews access; by default the in-cluster one, if any.",
    ),
    Flag(
        Section.AUTHORIZATION,
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that need no authorization; a * at the end matches anything.",
    ),
    Flag(
        Section.AUTHORIZATION,
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        seconds(10),
        "How long a permission is cached.",
    ),
    Flag(
        Section.AUTHORIZATION,
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        seconds(10),
        "How long a refusal is cached.",
    ),
    Flag(
        Section.DEPRECATED,
        "kubeconfig",
        STRING,
        "",
        f"DEPRECATED: kubeconfig of the cluster to schedule for. {_IGNORED}",
    ),
    Flag(
        Section.DEPRECATED,
        "profiling",
        BOOL,
        True,
        f"DEPRECATED: serve profiles under /debug/pprof/. {_IGNORED}",
    ),
    Flag(
        Section.DEPRECATED,
        "contention-profiling",
        BOOL,
        True,
        f"DEPRECATED: profile waiting as well, if --profiling is on. {_IGNORED}",
    ),
    Flag(
        Section.DEPRECATED,
        "kube-api-content-type",
        STRING,
        PROTOBUF,
        f"DEPRECATED: content type of requests to the API server. {_IGNORED}",
    ),
    Flag(
        Section.DEPRECATED,
        "kube-api-qps",
        FLOAT32,
        50.0,
        f"DEPRECATED: requests per second to the API server. {_IGNORED}",
    ),
    Flag(
        Section.DEPRECATED,
        "kube-api-burst",
        INT32,
        100,
        f"DEPRECATED: requests to the API server that may come at once. {_IGNORED}",
    ),
    Flag(
        Section.DEPRECATED,
        "pod-max-in-unschedulable-pods-duration",
        DURATION,
        seconds(300),
        "DEPRECATED: how long a pod waits at most before it is tried again without an event.",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect",
        BOOL,
        True,
        "Schedule only while holding the lease, so that a second scheduler can stand by.",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect-lease-duration",
        DURATION,
        seconds(15),
        f"How long others wait after the last renewal before they take over. {_LEASE}",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect-renew-deadline",
        DURATION,
        seconds(10),
        f"How long the leader tries to renew before it gives up; less than the lease. {_LEASE}",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect-retry-period",
        DURATION,
        seconds(2),
        f"Time between two tries. {_LEASE}",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect-resource-lock",
        STRING,
        "leases",
        f"Kind of the lock; only leases works. {_LEASE}",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect-resource-name",
        STRING,
        "kube-scheduler",
        f"Name of the lock. {_LEASE}",
    ),
    Flag(
        Section.LEADER_ELECTION,
        "leader-elect-resource-namespace",
        STRING,
        "kube-system",
        f"Namespace of the lock. {_LEASE}",
    ),
    Flag(
        Section.FEATURE_GATE,
        "feature-gates",
        REPEATED,
        (),
        "Gates to turn on or off: Name=true,Other=false. May be repeated.",
    ),
    Flag(
        Section.FEATURE_GATE,
        "emulated-version",
        STRINGS,
        (),
        "Version to behave as: [kube=]1.36.",
    ),
    Flag(
        Section.FEATURE_GATE,
        "min-compatibility-version",
        STRINGS,
        (),
        "Oldest version of other components to work with: [kube=]1.35.",
    ),
    Flag(
        Section.METRICS,
        "show-hidden-metrics-for-version",
        STRING,
        "",
        "Show metrics hidden since this version; only the previous minor version is allowed.",
    ),
    Flag(
        Section.METRICS,
        "disabled-metrics",
        STRINGS,
        (),
        "Metrics to leave out, by their full names.",
    ),
    Flag(
        Section.METRICS,
        "allow-metric-labels",
        PAIRS,
        {},
        "Allowed values of a label, others become unexpected: metric,label='v1,v2'.",
    ),
    Flag(
        Section.METRICS,
        "allow-metric-labels-manifest",
        STRING,
        "",
        "File with the content of --allow-metric-labels.",
    ),
    Flag(Section.LOGS, "logging-format", STRING, "text", "How to log: text or json."),
    Flag(
        Section.LOGS,
        "log-flush-frequency",
        DURATION,
        seconds(5),
        "Maximum time between two flushes of the log.",
    ),
    Flag(Section.LOGS, "v", LEVEL, 0, "How much to log: 0 little, 10 everything.", "v"),
    Flag(
        Section.LOGS,
        "vmodule",
        MODULE_LEVELS,
        "",
        "How much to log for single modules: pattern=N,pattern=N. Text format only.",
    ),
    Flag(
        Section.LOGS,
        "log-text-split-stream",
        BOOL,
        False,
        f"Text format: errors to standard error, the rest to standard output. {_ALPHA}",
    ),
    Flag(
        Section.LOGS,
        "log-text-info-buffer-size",
        QUANTITY,
        "0",
        f"Text format with split streams: buffer for lines that are no errors. {_ALPHA}",
    ),
    Flag(
        Section.LOGS,
        "log-json-split-stream",
        BOOL,
        False,
        f"JSON format: errors to standard error, the rest to standard output. {_ALPHA}",
    ),
    Flag(
        Section.LOGS,
        "log-json-info-buffer-size",
        QUANTITY,
        "0",
        f"JSON format with split streams: buffer for lines that are no errors. {_ALPHA}",
    ),
    Flag(
        Section.GLOBAL,
        "version",
        VERSION,
        "false",
        "Print the version and exit; raw prints all of it, vX.Y.Z sets the reported version.",
    ),
    Flag(Section.GLOBAL, "help", BOOL, False, "Print this and exit.", "h"),
)
