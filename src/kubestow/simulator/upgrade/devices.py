"""Which devices a pod gets on its node, and the configuration that is written for their drivers."""

from typing import Final, NamedTuple

from kubestow.api.device import DeviceAllocationConfiguration
from kubestow.engine.decision import Decision
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt

_PLUGIN: Final = "DynamicResources"


class DevicesOfPod(NamedTuple):
    """In the order of claims and requests."""

    names: tuple[str, ...]
    config: tuple[DeviceAllocationConfiguration, ...]

    def text(self, other: "DevicesOfPod") -> str:
        names = ", ".join(self.names)
        if self.names != other.names:
            return names
        requests = ("+".join(each.requests) or "all" for each in self.config)
        return f"{names}, configuration for requests {', '.join(requests) or 'none'}"


def taken_devices(decision: Decision) -> DevicesOfPod:
    """What was reserved for the pod of a decision."""
    attempt: DeviceAttempt | None = decision.state.get(_PLUGIN)
    found = [] if attempt is None else [attempt.reserved[key] for key in sorted(attempt.reserved)]
    names = (
        f"{one.request}={one.driver}/{one.pool}/{one.device}"
        for result in found
        for one in result.devices.results
    )
    return DevicesOfPod(tuple(names), tuple(c for result in found for c in result.devices.config))
