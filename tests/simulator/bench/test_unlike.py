"""In the variants no two measured pods are alike, and everything else is as in the workload."""

from dataclasses import replace

import pytest

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod
from kubestow.simulator.bench import WORKLOADS, Variant, Workload, variant_of
from kubestow.simulator.bench.workloads import Cluster

SIZE = (20, 40, 30)
UNLIKE = (Variant.UNLIKE, Variant.ALL_UNLIKE)


def built(workload: Workload, variant: Variant) -> Cluster:
    return variant_of(workload, variant).build(*SIZE)


def requests_of(pod: Pod) -> ResourceList:
    return pod.spec.containers[0].resources.requests or {}


@pytest.mark.parametrize("variant", UNLIKE)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_only_the_measured_pods_are_changed(workload: Workload, variant: Variant) -> None:
    plain, unlike = built(workload, Variant.PLAIN), built(workload, variant)
    assert replace(unlike, measured=plain.measured) == plain
    labels = {tuple(pod.metadata.labels.items()) for pod in unlike.measured}
    owners = {pod.metadata.owner_references[0].uid for pod in unlike.measured}
    assert len(labels) == len(owners) == len(plain.measured)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_requests_are_changed_only_where_that_is_asked_for(workload: Workload) -> None:
    plain = built(workload, Variant.PLAIN).measured
    unlike = built(workload, Variant.UNLIKE).measured
    assert [requests_of(pod) for pod in unlike] == [requests_of(pod) for pod in plain]
    for before, after in zip(plain, built(workload, Variant.ALL_UNLIKE).measured, strict=True):
        assert requests_of(before).keys() == requests_of(after).keys()
        limits = after.spec.containers[0].resources.limits or {}
        assert all(
            amount <= limits.get(name, amount) for name, amount in requests_of(after).items()
        )


def test_amounts_do_not_repeat() -> None:
    basic = next(workload for workload in WORKLOADS if workload.name == "SchedulingBasic")
    pods = variant_of(basic, Variant.ALL_UNLIKE).build(2, 0, 500).measured
    assert len({tuple(requests_of(pod).values()) for pod in pods}) == 500


def test_titles_say_the_variant() -> None:
    titles = [variant_of(WORKLOADS[0], variant).title for variant in Variant]
    assert titles == ["SchedulingBasic", "SchedulingBasic/Unlike", "SchedulingBasic/AllUnlike"]
