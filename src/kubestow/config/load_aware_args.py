"""The arguments of the plugin LoadAware, which upstream does not have, with their defaults.

Its kind is not part of the configuration format, so it is decoded like that of an out-of-tree
plugin. A module of its own, because a scheduler without the plugin does not load it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from kubestow.api.quantity import parse_quantity
from kubestow.config.field_errors import child, duplicate, forbidden, invalid, required, unsupported
from kubestow.config.plugin_args import CPU_AND_MEMORY, PluginArgs, ResourceSpec

T = TypeVar("T")

RESOURCES: Final = ("cpu", "memory")
STATISTICS: Final = ("latest", "average", "p95", "peak")
METRICS_API: Final = "MetricsAPI"
PROMETHEUS: Final = "Prometheus"
FILE: Final = "File"
SOURCES: Final = (METRICS_API, PROMETHEUS, FILE)
_PROVIDERS: Final = ("KubernetesMetricsServer", "Prometheus")
_SECONDS: Final = (1, 86_400)


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the arguments."""


def _given(default: Mapping[str, T]) -> Any:
    """A field with this default, which no other value shares."""
    return msgspec.field(default_factory=lambda: dict(default))


class LoadThresholds(_Part, frozen=True, kw_only=True):
    """Percent of what a node offers, by resource; a node above one gets no further pods."""

    average: Mapping[str, int] = _given({"cpu": 85, "memory": 90})
    p95: Mapping[str, int] = {}
    peak: Mapping[str, int] = {}


class LoadEstimate(_Part, frozen=True, kw_only=True):
    """What a pod is expected to use, until that is measured.

    enabled            without it pods count only once they are measured
    siblings           the mean of measured pods of the same workload comes first
    requests_percent   else the larger one of these shares of requests and limits
    limits_percent
    defaults           else this
    fade_seconds       how long after its placement a pod is fully measured; 0: historySeconds
    """

    enabled: bool = True
    siblings: bool = True
    requests_percent: Mapping[str, int] = msgspec.field(
        default_factory=lambda: {"cpu": 85, "memory": 70}
    )
    limits_percent: Mapping[str, int] = msgspec.field(
        default_factory=lambda: {"cpu": 30, "memory": 30}
    )
    defaults: Mapping[str, str] = msgspec.field(
        default_factory=lambda: {"cpu": "100m", "memory": "200Mi"}
    )
    fade_seconds: int = 0


class LoadSource(_Part, frozen=True, kw_only=True):
    """Where `kubestow run` reads measurements from.

    type               MetricsAPI (metrics.k8s.io), Prometheus or File
    pods               whether pods are measured as well, for estimates by workload
    address            of Prometheus: http://host:port or https://host:port/path
    token_file         a bearer token, read again for each request
    ca_file            certificates that its address is checked with
    node_label         of its series: the label with the name of the node
    path               of a file of measurements; read again when it changes
    """

    type: str = METRICS_API
    interval_seconds: int = 15
    timeout_seconds: int = 10
    pods: bool = True
    address: str = ""
    token_file: str = ""
    ca_file: str = ""
    insecure_skip_verify: bool = False
    node_label: str = "node"
    cpu_query: str = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[2m]))'
    memory_query: str = 'sum by (node) (container_memory_working_set_bytes{id="/"})'
    pod_cpu_query: str = (
        "sum by (namespace, pod) "
        '(rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[2m]))'
    )
    pod_memory_query: str = (
        "sum by (namespace, pod) "
        '(container_memory_working_set_bytes{container!="",container!="POD"})'
    )
    path: str = ""


class MetricProvider(_Part, frozen=True, kw_only=True):
    """Where Trimaran's plugins read from."""

    type: str = "KubernetesMetricsServer"
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool = False


class _Trimaran(_Part, frozen=True, kw_only=True):
    metric_provider: MetricProvider | None = None
    watcher_address: str = ""


class TargetLoadPacking(_Trimaran, frozen=True, kw_only=True):
    """The arguments of Trimaran's plugin of that name: fill nodes up to a share of their CPU."""

    default_requests: Mapping[str, str] = _given({"cpu": "1000m"})
    default_requests_multiplier: str = "1.5"
    target_utilization: int = 40


class LoadVariationRiskBalancing(_Trimaran, frozen=True, kw_only=True):
    """The arguments of Trimaran's plugin of that name: mean and deviation make the risk."""

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0


class LowRiskOverCommitment(_Trimaran, frozen=True, kw_only=True):
    """The arguments of Trimaran's plugin of that name: limits and load beyond requests make the
    risk.

    smoothing_window_size   over how many windows measurements are smoothed
    risk_limit_weights      the share of the risk by limits, 0 to 1, of the whole risk
    """

    smoothing_window_size: int = 5
    risk_limit_weights: Mapping[str, float] = _given({"cpu": 0.5, "memory": 0.5})


class LoadAwareArgs(PluginArgs, frozen=True, kw_only=True):
    """All arguments.

    statistic           what of the measurements scores are made of
    risk_percent        how much of their standard deviation counts as used
    hysteresis_percent  how far below a threshold a node must be to get pods again
    max_age_seconds     older measurements are not used
    history_seconds     over how much time statistics are made
    """

    thresholds: LoadThresholds = LoadThresholds()
    hysteresis_percent: int = 5
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    statistic: str = "average"
    risk_percent: int = 0
    estimate: LoadEstimate = LoadEstimate()
    max_age_seconds: int = 180
    history_seconds: int = 300
    source: LoadSource | None = None
    target_load_packing: TargetLoadPacking | None = None
    load_variation_risk_balancing: LoadVariationRiskBalancing | None = None
    low_risk_over_commitment: LowRiskOverCommitment | None = None

    @property
    def trimaran(self) -> _Trimaran | None:
        """The arguments of one of Trimaran's plugins, if scores are made as there."""
        return (
            self.target_load_packing
            or self.load_variation_risk_balancing
            or self.low_risk_over_commitment
        )


def source_of(args: LoadAwareArgs) -> LoadSource:
    """Where measurements come from: `source`, else the metric provider of Trimaran's arguments."""
    if args.source is not None:
        return args.source
    provider = None if args.trimaran is None else args.trimaran.metric_provider
    if provider is None or provider.type != PROMETHEUS:
        return LoadSource()
    return LoadSource(
        type=PROMETHEUS,
        address=provider.address,
        insecure_skip_verify=provider.insecure_skip_verify,
    )


# --- validation ---


def load_aware_errors(args: LoadAwareArgs, path: str = "") -> list[str]:
    """All errors of the arguments."""
    errors: list[str] = []
    for name in ("average", "p95", "peak"):
        given: Mapping[str, int] = getattr(args.thresholds, name)
        errors += _amounts(given, child(path, f"thresholds.{name}"), 1, 1000)
    errors += _number(args.hysteresis_percent, child(path, "hysteresisPercent"), 0, 100)
    errors += _number(args.risk_percent, child(path, "riskPercent"), 0, 1000)
    errors += _number(args.max_age_seconds, child(path, "maxAgeSeconds"), *_SECONDS)
    errors += _number(args.history_seconds, child(path, "historySeconds"), *_SECONDS)
    if args.statistic not in STATISTICS:
        errors.append(unsupported(child(path, "statistic"), args.statistic, STATISTICS))
    errors += _weights(args.resources, child(path, "resources"))
    errors += _estimate(args.estimate, child(path, "estimate"))
    if args.source is not None:
        errors += _source(args.source, child(path, "source"))
    return errors + _trimaran_errors(args, path)


def _number(value: int, path: str, least: int, most: int) -> list[str]:
    if least <= value <= most:
        return []
    return [invalid(path, value, f"not in valid range [{least}, {most}]")]


def _amounts(amounts: Mapping[str, int], path: str, least: int, most: int) -> list[str]:
    errors: list[str] = []
    for name, value in amounts.items():
        if name not in RESOURCES:
            errors.append(unsupported(path, name, RESOURCES))
        else:
            errors += _number(value, child(path, name), least, most)
    return errors


def _weights(resources: Sequence[ResourceSpec], path: str) -> list[str]:
    errors: list[str] = []
    if not resources:
        errors.append(required(path, "at least one resource must be scored"))
    seen: set[str] = set()
    for index, spec in enumerate(resources):
        at = f"{path}[{index}]"
        if spec.name not in RESOURCES:
            errors.append(unsupported(f"{at}.name", spec.name, RESOURCES))
        if spec.name in seen:
            errors.append(duplicate(f"{at}.name", spec.name))
        seen.add(spec.name)
        errors += _number(spec.weight, f"{at}.weight", 0, 100)
    return errors


def _estimate(estimate: LoadEstimate, path: str) -> list[str]:
    errors = _amounts(estimate.requests_percent, child(path, "requestsPercent"), 0, 1000)
    errors += _amounts(estimate.limits_percent, child(path, "limitsPercent"), 0, 1000)
    errors += _quantities(estimate.defaults, child(path, "defaults"))
    return errors + _number(estimate.fade_seconds, child(path, "fadeSeconds"), 0, _SECONDS[1])


def _quantities(quantities: Mapping[str, str], path: str) -> list[str]:
    errors: list[str] = []
    for name, text in quantities.items():
        if name not in RESOURCES:
            errors.append(unsupported(path, name, RESOURCES))
            continue
        try:
            is_good = parse_quantity(text).nano >= 0
        except ValueError as error:
            errors.append(invalid(child(path, name), text, str(error)))
            continue
        if not is_good:
            errors.append(invalid(child(path, name), text, "must be zero or positive"))
    return errors


def _source(source: LoadSource, path: str) -> list[str]:
    errors = _number(source.interval_seconds, child(path, "intervalSeconds"), 1, 3600)
    errors += _number(source.timeout_seconds, child(path, "timeoutSeconds"), 1, 300)
    if source.type not in SOURCES:
        errors.append(unsupported(child(path, "type"), source.type, SOURCES))
    if source.type == PROMETHEUS:
        errors += _address(source.address, child(path, "address"))
        for field in ("cpu_query", "memory_query"):
            if not getattr(source, field):
                errors.append(required(child(path, f"{field.partition('_')[0]}Query")))
    elif source.address:
        rule = f"is for type {PROMETHEUS}; others have no address"
        errors.append(forbidden(child(path, "address"), rule))
    if source.type == FILE and not source.path:
        errors.append(required(child(path, "path"), "the file of measurements"))
    return errors


def _address(address: str, path: str) -> list[str]:
    if not address:
        return [required(path, "such as http://prometheus.monitoring:9090")]
    try:
        parts = urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        return [invalid(path, address, "expected http://host:port or https://host:port")]
    if parts.username is not None or parts.query or parts.fragment:
        return [invalid(path, address, "must have no user, query or fragment; see tokenFile")]
    return []


def _trimaran_errors(args: LoadAwareArgs, path: str) -> list[str]:
    given = {
        "targetLoadPacking": args.target_load_packing,
        "loadVariationRiskBalancing": args.load_variation_risk_balancing,
        "lowRiskOverCommitment": args.low_risk_over_commitment,
    }
    named = {name: part for name, part in given.items() if part is not None}
    errors = [
        forbidden(child(path, name), f"scores are made in one way: leave out {first}")
        for first, name in zip(named, list(named)[1:], strict=False)
    ]
    for name, part in named.items():
        errors += _common(part, child(path, name))
    packing, balancing = args.target_load_packing, args.load_variation_risk_balancing
    if packing is not None:
        errors += _packing(packing, child(path, "targetLoadPacking"))
    if balancing is not None:
        at = child(path, "loadVariationRiskBalancing")
        errors += _float(balancing.safe_variance_margin, f"{at}.safeVarianceMargin")
        errors += _float(balancing.safe_variance_sensitivity, f"{at}.safeVarianceSensitivity")
    if args.low_risk_over_commitment is not None:
        errors += _low_risk(args.low_risk_over_commitment, child(path, "lowRiskOverCommitment"))
    return errors


def _common(part: _Trimaran, path: str) -> list[str]:
    errors: list[str] = []
    if part.watcher_address:
        rule = "the load watcher is not read; give a metricProvider or a source"
        errors.append(forbidden(child(path, "watcherAddress"), rule))
    provider, at = part.metric_provider, child(path, "metricProvider")
    if provider is None:
        return errors
    if provider.type not in _PROVIDERS:
        errors.append(unsupported(child(at, "type"), provider.type, _PROVIDERS))
    elif provider.type == PROMETHEUS:
        errors += _address(provider.address, child(at, "address"))
    if provider.token:
        rule = "a configuration has no secrets; give a source with a tokenFile"
        errors.append(forbidden(child(at, "token"), rule))
    return errors


def _packing(packing: TargetLoadPacking, path: str) -> list[str]:
    errors = _quantities(packing.default_requests, child(path, "defaultRequests"))
    errors += _number(packing.target_utilization, child(path, "targetUtilization"), 1, 99)
    at = child(path, "defaultRequestsMultiplier")
    try:
        multiplier = float(packing.default_requests_multiplier)
    except ValueError:
        return [*errors, invalid(at, packing.default_requests_multiplier, "expected a number")]
    return errors + _float(multiplier, at)


def _low_risk(low_risk: LowRiskOverCommitment, path: str) -> list[str]:
    errors = _number(low_risk.smoothing_window_size, child(path, "smoothingWindowSize"), 1, 1000)
    at = child(path, "riskLimitWeights")
    for name, weight in low_risk.risk_limit_weights.items():
        if name not in RESOURCES:
            errors.append(unsupported(at, name, RESOURCES))
        else:
            errors += _float(weight, child(at, name), most=1)
    return errors


def _float(value: float, path: str, *, most: int = 1000) -> list[str]:
    if math.isfinite(value) and 0 <= value <= most:
        return []
    shown = value if math.isfinite(value) else str(value)
    return [invalid(path, shown, f"not in valid range [0, {most}]")]
