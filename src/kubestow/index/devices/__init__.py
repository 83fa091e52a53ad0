"""The devices of the cluster: published, claimed, allocated.

Shared because two plugins read it: DynamicResources, which allocates devices, and
NodeResourcesFit, which scores nodes by how many are left.
"""

from kubestow.index.devices.counts import DeviceCounts
from kubestow.index.devices.known import KnownDevices

__all__ = ["DeviceCounts", "KnownDevices"]
