"""Resource names and the resource vector.

The scheduler counts cpu in thousandths and everything else in whole units, and silently drops names
it has no class for (spec 01 §2). Both rules are only here.

Not here: how a pod's list is computed (`requests`), the same numbers as columns (`cache.columns`).
"""

from functools import lru_cache
from typing import Final

from kubestow.api.labels import qualified_name_errors
from kubestow.api.meta import ResourceList
from kubestow.api.quantity import Quantity, wrap_int64

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGEPAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

_NATIVE_MARK: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."

# Of this many names it is known what they are: more than nodes with resources of their own.
_KINDS_MAX: Final = 16_384


class Resources:
    """What a pod requests or a node offers, as signed 64-bit counters.

    A scalar that is present with 0 differs from one that is absent (spec 01 §2.2).
    """

    __slots__ = ("allowed_pods", "ephemeral_storage", "memory", "milli_cpu", "scalar")

    def __init__(
        self,
        *,
        milli_cpu: int = 0,
        memory: int = 0,
        ephemeral_storage: int = 0,
        allowed_pods: int = 0,
        scalar: dict[str, int] | None = None,
    ) -> None:
        self.milli_cpu = milli_cpu
        self.memory = memory
        self.ephemeral_storage = ephemeral_storage
        self.allowed_pods = allowed_pods
        self.scalar: dict[str, int] = {} if scalar is None else scalar

    @classmethod
    def from_list(cls, resource_list: ResourceList | None) -> "Resources":
        resources = cls()
        if resource_list:
            resources.add_list(resource_list)
        return resources

    def add_list(self, resource_list: ResourceList) -> None:
        for name, quantity in resource_list.items():
            if name == CPU:
                self.milli_cpu = wrap_int64(self.milli_cpu + quantity.milli_value())
            elif name == MEMORY:
                self.memory = wrap_int64(self.memory + quantity.value())
            elif name == EPHEMERAL_STORAGE:
                self.ephemeral_storage = wrap_int64(self.ephemeral_storage + quantity.value())
            elif name == PODS:
                self.allowed_pods = wrap_int64(self.allowed_pods + quantity.value())
            elif is_scalar(name):
                self.scalar[name] = wrap_int64(self.scalar.get(name, 0) + quantity.value())

    def set_max(self, resource_list: ResourceList) -> None:
        """Raise each counter to the list's value. `pods` is unchanged (spec 01 §2.2)."""
        for name, quantity in resource_list.items():
            if name == CPU:
                self.milli_cpu = max(self.milli_cpu, quantity.milli_value())
            elif name == MEMORY:
                self.memory = max(self.memory, quantity.value())
            elif name == EPHEMERAL_STORAGE:
                self.ephemeral_storage = max(self.ephemeral_storage, quantity.value())
            elif is_scalar(name):
                self.scalar[name] = max(self.scalar.get(name, 0), quantity.value())

    def clone(self) -> "Resources":
        return Resources(
            milli_cpu=self.milli_cpu,
            memory=self.memory,
            ephemeral_storage=self.ephemeral_storage,
            allowed_pods=self.allowed_pods,
            scalar=dict(self.scalar),
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Resources)
            and self.milli_cpu == other.milli_cpu
            and self.memory == other.memory
            and self.ephemeral_storage == other.ephemeral_storage
            and self.allowed_pods == other.allowed_pods
            and self.scalar == other.scalar
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Resources({fields})"


def amount(name: str, quantity: Quantity) -> int:
    """A quantity in the unit its resource is counted in."""
    return quantity.milli_value() if name == CPU else quantity.value()


def is_native(name: str) -> bool:
    return "/" not in name or is_prefixed_native(name)


def is_prefixed_native(name: str) -> bool:
    # Anywhere in the name, so `mykubernetes.io/x` is native too.
    return _NATIVE_MARK in name


@lru_cache(_KINDS_MAX)
def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith(_QUOTA_PREFIX):
        return False
    return not qualified_name_errors(_QUOTA_PREFIX + name)


def is_hugepage(name: str) -> bool:
    return name.startswith(HUGEPAGES_PREFIX)


def is_attachable_volume(name: str) -> bool:
    return name.startswith(ATTACHABLE_VOLUMES_PREFIX)


@lru_cache(_KINDS_MAX)
def is_scalar(name: str) -> bool:
    """Whether the vector counts the name among its scalars."""
    return (
        is_extended(name)
        or is_hugepage(name)
        or is_prefixed_native(name)
        or is_attachable_volume(name)
    )


def is_dra_extended(name: str) -> bool:
    """Whether devices may be allocated for the resource."""
    return is_extended(name) or name.startswith(DEVICE_CLASS_PREFIX)


def amount_of(name: str, resources: Resources) -> int:
    """One resource's part of a vector; 0 for a name it lacks."""
    match name:
        case "cpu":
            return resources.milli_cpu
        case "memory":
            return resources.memory
        case "ephemeral-storage":
            return resources.ephemeral_storage
        case _:
            return resources.scalar.get(name, 0)
