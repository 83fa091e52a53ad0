"""DynamicResources of v1.37 (spec 12 §10)."""

from kubestow.editions.v1_37.plugins.dynamic_resources.plugin import DynamicResourcesV137

__all__ = ["DynamicResourcesV137"]
