"""Benchmark workloads and their measurement: deciding alone, in one process (spec 10 §6).

`workloads` builds the clusters and pods of upstream's benchmark suite, `many_shapes` one of our
own, `unlike` variants of all of them; `measure` runs them, `upstream` has the figures of
kube-scheduler for comparison.
"""

from kubestow.simulator.bench.measure import Measurement, measure
from kubestow.simulator.bench.unlike import ALL_WORKLOADS, plain_name
from kubestow.simulator.bench.workloads import WORKLOADS, Workload

__all__ = ["ALL_WORKLOADS", "WORKLOADS", "Measurement", "Workload", "measure", "plain_name"]
