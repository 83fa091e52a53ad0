"""DynamicResources: gives devices to the pods that claim them (spec 08 part B).

`resolve` finds a pod's claims, `preparation` sorts them out, `filtering` asks `allocator` for
devices on each node (`pools`, `requests`, `search`, `results`), `binding` takes them and `writes`
says so to the API server. Claims made up for extended resources are in `extended_resources`.
"""

from kubestow.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
