"""Benchmark workloads and their measurement: deciding alone, in one process (spec 10 §6).

`workloads` builds the clusters and pods of upstream's benchmark suite, `many_shapes` one of our
own, `measure` runs them, `upstream` has the figures of kube-scheduler for comparison.
"""

from kubestow.simulator.bench.measure import Measurement, measure
from kubestow.simulator.bench.workloads import WORKLOADS, Workload

__all__ = ["WORKLOADS", "Measurement", "Workload", "measure"]
