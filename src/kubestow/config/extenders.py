"""The configuration of extenders (spec 09 §3.5.9, 04 §13.1).

Not here: calling them (`engine.extenders`).
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kubestow.api.labels import qualified_name_errors
from kubestow.api.resources import is_extended
from kubestow.config.field_errors import invalid
from kubestow.config.scalars import Duration, Int64, seconds

DEFAULT_TIMEOUT: Final = seconds(5)


class ExtenderTLSConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where both a file and data are given, the data count."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ManagedResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    # Whether NodeResourcesFit leaves the resource to the extender.
    ignored_by_scheduler: bool = False


class ExtenderConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An empty verb means that the extender is not called for it."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration()
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def timeout_s(self) -> float:
        """How long one whole request may take."""
        return (self.http_timeout or DEFAULT_TIMEOUT).seconds


def in_call_order(extenders: Iterable[ExtenderConfig]) -> list[ExtenderConfig]:
    """Ignorable extenders last."""
    return sorted(extenders, key=lambda extender: extender.ignorable)


def resources_ignored_by_scheduler(extenders: Iterable[ExtenderConfig]) -> tuple[str, ...]:
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )


def validate_extenders(extenders: Sequence[ExtenderConfig], path: str) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        at = f"{path}[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            rule = "must have a positive weight applied to it"
            errors.append(invalid(f"{at}.weight", extender.weight, rule))
        for number, resource in enumerate(extender.managed_resources):
            where = f"{at}.managedResources[{number}].name"
            errors += _resource_name_errors(where, resource.name)
            if resource.name in seen:
                rule = "duplicate extender managed resource name"
                errors.append(invalid(where, resource.name, rule))
            seen.add(resource.name)
    binder_count = sum(1 for extender in extenders if extender.bind_verb)
    if binder_count > 1:
        found = f"found {binder_count} extenders implementing bind"
        errors.append(invalid(path, found, "only one extender can implement bind"))
    return errors


def _resource_name_errors(path: str, name: str) -> list[str]:
    problems = qualified_name_errors(name)
    if not problems and not is_extended(name):
        problems = ["is an invalid extended resource name"]
    return [invalid(path, name, problem) for problem in problems]
