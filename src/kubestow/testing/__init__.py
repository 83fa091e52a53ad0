"""Builders and clocks for tests, public so that plugin authors can use them too.

The one folder outside the layers: it may import anything.
"""

from kubestow.testing.builders import (
    make_container,
    make_node,
    make_node_affinity,
    make_pod,
    make_port,
    make_resources,
    make_taint,
    make_term,
)
from kubestow.testing.snapshots import make_cache, make_snapshot

__all__ = [
    "make_cache",
    "make_container",
    "make_node",
    "make_node_affinity",
    "make_pod",
    "make_port",
    "make_resources",
    "make_snapshot",
    "make_taint",
    "make_term",
]
