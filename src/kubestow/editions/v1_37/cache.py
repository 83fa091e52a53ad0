"""The cache of v1.37."""

from kubestow.cache.cache import Cache
from kubestow.editions.v1_37.api.pod_info import PodInfoV137


class CacheV137(Cache):
    """Pods that are being resized take their footprint from their node (spec 12 §6)."""

    info_of = PodInfoV137
