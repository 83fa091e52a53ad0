"""Groups in the words of other APIs, read into the same `Group`, by choice.

    scheduling.x-k8s.io/v1alpha1   PodGroup of scheduler-plugins; pods name it by a label
    scheduling.k8s.io/v1beta1      PodGroup of Kubernetes v1.37; pods name it as in v1.36

A field that is not read is named in a warning, once.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from kubestow.api.decode import convert, is_list, is_map
from kubestow.api.group import GangOptions, Group, GroupKey, group_of
from kubestow.api.meta import Int32, JsonObject, Object
from kubestow.api.pod import PodResourceClaim
from kubestow.api.pod_group import (
    AnyPodGroup,
    BasicPolicy,
    DisruptionMode,
    PodGroup,
    PodGroupSpec,
    PodGroupV1Beta1,
    SchedulerPluginsPodGroup,
    SchedulingConstraints,
    SchedulingPolicy,
    WorkloadReference,
)
from kubestow.api.quantity import Quantity
from kubestow.errors import DecodeError

log = logging.getLogger(__name__)

SCHEDULER_PLUGINS: Final = "scheduling.x-k8s.io/v1alpha1"
V1BETA1: Final = "scheduling.k8s.io/v1beta1"
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
# Of unknown fields, how many are named before the log has enough of them.
NAMED_FIELDS_MAX: Final = 100


class Dialect(NamedTuple):
    """How an API describes groups; `label` is that of pods which names theirs, if there is one."""

    api_version: str
    cls: type[AnyPodGroup]
    label: str
    # The spec of the object, and the rules that it means.
    spec: type[Object]
    read: "Callable[[Any, Any, GangOptions], Group]"


class DialectReader:
    """Reads groups of some dialects, and warns of fields that are not read."""

    def __init__(self, options: GangOptions) -> None:
        self._options = options
        self.dialects = tuple(DIALECTS[name] for name in options.dialects)
        self.labels = tuple(dialect.label for dialect in self.dialects if dialect.label)
        self._named: set[str] = set()

    def read(self, dialect: Dialect, pod_group: AnyPodGroup) -> Group | None:
        """The rules of a group; None if the object does not make sense, which is logged."""
        document = pod_group.spec
        assert isinstance(document, dict), pod_group
        try:
            spec = convert(dialect.spec, document)
        except DecodeError as error:
            meta = pod_group.metadata
            log.warning("the pod group %s/%s is not used: %s", meta.namespace, meta.name, error)
            return None
        self._warn(dialect, pod_group, document)
        return dialect.read(pod_group, spec, self._options)

    def _warn(self, dialect: Dialect, pod_group: AnyPodGroup, document: JsonObject) -> None:
        for path in unknown_fields(document, dialect.spec):
            field = f"{dialect.api_version} {path}"
            if field not in self._named and len(self._named) < NAMED_FIELDS_MAX:
                self._named.add(field)
                meta = pod_group.metadata
                log.warning(
                    'the field "spec.%s" of PodGroup %s (%s) is not known and has no effect',
                    path,
                    f"{meta.namespace}/{meta.name}",
                    dialect.api_version,
                )


def unknown_fields(document: JsonObject, cls: type[msgspec.Struct]) -> Iterator[str]:
    """The paths of fields that the type does not have."""
    info = msgspec.inspect.type_info(cls)
    assert isinstance(info, msgspec.inspect.StructType)
    return _unknown(document, info, "")


def _unknown(value: object, kind: msgspec.inspect.Type, path: str) -> Iterator[str]:
    match kind:
        case msgspec.inspect.UnionType():
            for one in kind.types:
                if isinstance(one, msgspec.inspect.StructType | msgspec.inspect.VarTupleType):
                    yield from _unknown(value, one, path)
        case msgspec.inspect.StructType() if is_map(value):
            kinds = {field.encode_name: field.type for field in kind.fields}
            for key, entry in value.items():
                at = f"{path}.{key}" if path else key
                if key in kinds:
                    yield from _unknown(entry, kinds[key], at)
                else:
                    yield at
        case msgspec.inspect.VarTupleType() if is_list(value):
            for entry in value:
                yield from _unknown(entry, kind.item_type, path)
        case _:
            return


# --- scheduler-plugins ---


class SchedulerPluginsSpec(Object, frozen=True, kw_only=True):
    min_member: Int32 = 0
    min_resources: dict[str, Quantity] = {}
    schedule_timeout_seconds: Int32 | None = None


def _read_scheduler_plugins(
    pod_group: SchedulerPluginsPodGroup, spec: SchedulerPluginsSpec, options: GangOptions
) -> Group:
    # The fields that upstream's object has as well mean the same.
    gang = group_of(PodGroup(metadata=pod_group.metadata), options)
    return gang._replace(
        min_count=spec.min_member,
        timeout_s=spec.schedule_timeout_seconds or options.timeout_s,
        min_resources=tuple(sorted(spec.min_resources.items())),
    )


# --- v1.37 ---


class SpecV1Beta1(Object, frozen=True, kw_only=True):
    workload_ref: WorkloadReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy(basic=BasicPolicy())
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


def read_v1beta1(pod_group: PodGroupV1Beta1, spec: SpecV1Beta1, options: GangOptions) -> Group:
    is_whole = spec.disruption_mode is not None and spec.disruption_mode.all is not None
    known = PodGroupSpec(
        scheduling_policy=spec.scheduling_policy,
        scheduling_constraints=spec.scheduling_constraints,
        resource_claims=spec.resource_claims,
        disruption_mode="PodGroup" if is_whole else "Pod",
        priority_class_name=spec.priority_class_name,
        priority=spec.priority,
    )
    return group_of(PodGroup(metadata=pod_group.metadata, spec=known), options)


DIALECTS: Final = {
    dialect.api_version: dialect
    for dialect in (
        Dialect(
            SCHEDULER_PLUGINS,
            SchedulerPluginsPodGroup,
            POD_GROUP_LABEL,
            SchedulerPluginsSpec,
            _read_scheduler_plugins,
        ),
        Dialect(V1BETA1, PodGroupV1Beta1, "", SpecV1Beta1, read_v1beta1),
    )
}


def key_of_object(subject: object) -> GroupKey | None:
    """The group whose rules the object has; None for any other object."""
    if isinstance(subject, AnyPodGroup):
        return GroupKey(subject.metadata.namespace, subject.metadata.name)
    return None
