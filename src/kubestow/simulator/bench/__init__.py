"""Benchmark workloads and their measurement, in one process (spec 10 §6).

`workloads` builds the clusters and pods of upstream's benchmark suite, `many_shapes` those of one
more, `unlike` variants of all of them. `measure` times deciding alone, `throughput` whole
simulations. `measurement` is what they return, `machine` how calm the machine was, `upstream` has
kube-scheduler's figures.
"""

from kubestow.simulator.bench.measure import measure
from kubestow.simulator.bench.measurement import Comparison, Measurement, compare, median_of
from kubestow.simulator.bench.unlike import variant_of
from kubestow.simulator.bench.workloads import WORKLOADS, Variant, Workload

__all__ = [
    "WORKLOADS",
    "Comparison",
    "Measurement",
    "Variant",
    "Workload",
    "compare",
    "measure",
    "median_of",
    "variant_of",
]
