"""DynamicResources: allocates devices to the pods that claim them (spec 08 part B).

`resolve` finds a pod's claims, `preparation` checks them, `filtering` asks `allocator` for devices
on each node (`pools`, `requests`, `search`, `results`), `binding` takes them and `writes` writes to
the API server. Claims created for extended resources are in `extended_resources`.
"""

from kubestow.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
