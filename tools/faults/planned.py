"""The parts of a plan: objects, configuration, and single actions."""

from typing import Literal, NamedTuple

import msgspec

from kubestow.editions.edition import Version
from tools.faults.fault import Fault


class PlannedPod(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks for."""

    cpu_milli: int
    priority: int = 0
    app: str = "web"
    zone: str = ""
    is_apart: bool = False  # not on a node with a pod of the same app
    is_spread: bool = False
    is_gated: bool = False
    volume_class: str = ""
    grace_s: int = 0
    hold_s: float = 0.0  # at Permit
    prepare_s: float = 0.0  # in PreBind
    group: str = ""


class PlannedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod group asks for; the last three have no effect while their gates are off."""

    min_count: int | None = None  # None: a basic group
    topology_key: str = ""
    priority: int = 0
    is_evicted_whole: bool = False


class PlannedNode(msgspec.Struct, frozen=True, kw_only=True):
    cpu_milli: int
    pods: int
    zone: str


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How the schedulers of a run are configured."""

    has_plugin: bool = False
    extender: Literal["", "ignorable", "required"] = ""
    uses_wire: bool = False  # HTTP as bytes, instead of calls of the API server in memory
    gates: tuple[str, ...] = ()  # feature gates that are on besides the default ones
    edition: Version = Version.V1_36  # of the schedulers and the API server


PlannedValue = PlannedPod | PlannedGroup | PlannedNode | Fault | float | str | None


class PlannedAction(NamedTuple):
    """One thing that happens: `what` names a method of the simulation.

    A strike happens when a replica reaches the moment that it names, `seconds` later.
    """

    at_s: float
    what: str
    name: str
    value: PlannedValue = None
    seconds: float = 0.0
    rate: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.at_s:7.2f} s  {self.what} {self.name}"]
        if self.value is not None:
            parts.append(str(self.value))
        if self.rate:
            parts.append(f"at a rate of {self.rate:.2f}")
        if self.seconds:
            parts.append(f"for {self.seconds:.1f} s")
        return " ".join(parts)
