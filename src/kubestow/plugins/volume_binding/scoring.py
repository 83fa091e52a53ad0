"""Scores nodes by the utilization of their storage with the pod (spec 07 §2.7).

Behind the gate StorageCapacityScoring, which is off by default.
"""

from collections.abc import Iterable

import numpy as np

from kubestow.api.volume_claims import claim_class, offered_storage, requested_storage
from kubestow.plugins._shared.curve import MAX_UTILIZATION, UtilizationCurve
from kubestow.plugins.volume_binding.delayed import VolumePlan

# Per storage class: the requested size, and the capacity.
Use = dict[str, tuple[int, int]]


def score_of(plan: VolumePlan, curve: UtilizationCurve) -> int:
    """The mean score of the classes the pod would use, rounded half away from zero."""
    use = _use_of(plan)
    if not use:
        return 0
    # Scores are not negative, so that half away from zero is half up; sums this small are exact.
    return int(_total(use.values(), curve) / len(use) + 0.5)


def _use_of(plan: VolumePlan) -> Use:
    use: Use = {}
    for claim, volume in plan.bindings:
        name = volume.spec.storage_class_name
        requested, capacity = use.get(name, (0, 0))
        requested += requested_storage(claim).value()
        use[name] = requested, capacity + offered_storage(volume).value()
    if use:
        # Spec 07 §2.7: if any volume is matched, provisioned ones do not count.
        return use
    for claim, reported in plan.provisions:
        if reported is None:
            continue
        name = claim_class(claim)
        requested = use.get(name, (0, 0))[0] + requested_storage(claim).value()
        # The capacity is for the whole class, so it is not summed per claim.
        use[name] = requested, 0 if reported.capacity is None else reported.capacity.value()
    return use


def _total(uses: Iterable[tuple[int, int]], curve: UtilizationCurve) -> int:
    utilizations = [
        MAX_UTILIZATION
        if capacity == 0 or requested > capacity
        else requested * MAX_UTILIZATION // capacity
        for requested, capacity in uses
    ]
    return int(curve.scores(np.array(utilizations, np.int64)).sum())
