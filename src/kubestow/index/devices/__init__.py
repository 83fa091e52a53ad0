"""What is known of devices across the cluster: published, claimed, allocated.

Shared because two plugins read it: DynamicResources, which gives devices to pods, and
NodeResourcesFit, which scores nodes by how many are left.
"""

from kubestow.index.devices.counts import DeviceCounts
from kubestow.index.devices.known import KnownDevices

__all__ = ["DeviceCounts", "KnownDevices"]
