"""Builders, clocks and runs of single plugins for tests; public, for plugin authors too.

Beside the names below, `devices`, `storage` and `topology` build devices and their claims, volumes
and theirs, affinity and spread constraints. `plugin_check` is `kubestow plugin check`.

The one folder outside the layers: it may import anything.
"""

from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing.builders import (
    make_container,
    make_node,
    make_node_affinity,
    make_pod,
    make_pod_group,
    make_port,
    make_resources,
    make_taint,
    make_term,
)
from kubestow.testing.clock import ManualClock
from kubestow.testing.handles import RecordedEvents, make_handle
from kubestow.testing.plugin_runs import run_filter, run_hint, run_pre_filter, run_score
from kubestow.testing.profiles import make_plugin, make_profile
from kubestow.testing.simulations import make_simulation, simulate
from kubestow.testing.snapshots import make_cache, make_snapshot

__all__ = [
    "ManualClock",
    "RecordedEvents",
    "make_cache",
    "make_container",
    "make_handle",
    "make_node",
    "make_node_affinity",
    "make_plugin",
    "make_pod",
    "make_pod_group",
    "make_port",
    "make_profile",
    "make_resources",
    "make_simulation",
    "make_snapshot",
    "make_taint",
    "make_term",
    "run_filter",
    "run_hint",
    "run_in_virtual_time",
    "run_pre_filter",
    "run_score",
    "simulate",
]
