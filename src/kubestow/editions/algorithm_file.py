"""A file that says which rules an older scheduler has, in place of its flags (spec 09 §13.1).

It is a Policy, or the KubeSchedulerConfiguration v1alpha1 of the time, whose `algorithmSource`
names a provider, the file of a Policy or a ConfigMap that has one.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from kubestow.api.decode import is_map, quoted
from kubestow.config.documents import plain, read_document
from kubestow.editions.flags import AlgorithmOptions
from kubestow.errors import ConfigError
from kubestow.files.reading import read_file

_KIND: Final = "KubeSchedulerConfiguration"
_API_VERSIONS: Final = ("componentconfig/v1alpha1", "kubescheduler.config.k8s.io/v1alpha1")
_DEFAULTS: Final = AlgorithmOptions()


class _Entry(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
): ...


class _File(_Entry, frozen=True, kw_only=True):
    path: str


class _ConfigMap(_Entry, frozen=True, kw_only=True):
    name: str
    namespace: str = _DEFAULTS.policy_configmap_namespace


class _PolicySource(_Entry, frozen=True, kw_only=True):
    file: _File | None = None
    config_map: _ConfigMap | None = None


class _Source(_Entry, frozen=True, kw_only=True):
    provider: str | None = None
    policy: _PolicySource | None = None


class _Config(_Entry, frozen=True, kw_only=True):
    kind: str
    api_version: str
    scheduler_name: str = _DEFAULTS.scheduler_name
    hard_pod_affinity_symmetric_weight: int = _DEFAULTS.hard_pod_affinity_symmetric_weight
    algorithm_source: _Source = _Source()


def load_algorithm_options(path: Path) -> AlgorithmOptions:
    """What the file says; raises ConfigError that names it."""
    try:
        document = plain(read_document(read_file(path)).value)
    except OSError as error:
        raise ConfigError(f'cannot read "{path}": {error.strerror or error}') from error
    except ConfigError as error:
        raise ConfigError(f'"{path}": {error}') from error
    kind = document.get("kind", "Policy") if is_map(document) else None
    if kind == "Policy":
        return AlgorithmOptions(policy_config_file=str(path))
    if kind != _KIND:
        raise ConfigError(f'"{path}": kind is {quoted(kind)}, expected Policy or {_KIND}')
    try:
        return _options_of(document)
    except (ConfigError, msgspec.ValidationError) as error:
        raise ConfigError(f'"{path}": {error}') from error


def _options_of(document: Any) -> AlgorithmOptions:
    config = msgspec.convert(document, _Config)
    if config.api_version not in _API_VERSIONS:
        raise ConfigError(
            f"apiVersion is {quoted(config.api_version)}, expected {' or '.join(_API_VERSIONS)}; "
            "newer ones are given with --config"
        )
    source = config.algorithm_source
    policy = source.policy or _PolicySource()
    if sum(given is not None for given in (source.provider, policy.file, policy.config_map)) > 1:
        raise ConfigError("algorithmSource has more than one of provider, file and configMap")
    options = AlgorithmOptions(
        scheduler_name=config.scheduler_name,
        hard_pod_affinity_symmetric_weight=config.hard_pod_affinity_symmetric_weight,
        algorithm_provider=source.provider or _DEFAULTS.algorithm_provider,
        policy_config_file="" if policy.file is None else policy.file.path,
    )
    if policy.config_map is None:
        return options
    return msgspec.structs.replace(
        options,
        policy_configmap=policy.config_map.name,
        policy_configmap_namespace=policy.config_map.namespace,
    )
