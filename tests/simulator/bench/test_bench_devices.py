"""The workload with devices is the one of spec 10 §4.6, and claims are written between pods."""

from collections import Counter

from kubestow.api.device import ResourceClaim
from kubestow.clock import SystemClock
from kubestow.simulator.bench import WORKLOADS, Workload, measure
from kubestow.simulator.bench.devices import DEVICES_PER_NODE
from kubestow.simulator.bench.measure import Bench

CLAIMS = next(each for each in WORKLOADS if each.name == "SchedulingWithResourceClaimTemplate")


def _small(nodes: int, init_pods: int, measured_pods: int) -> Workload:
    return Workload(
        name=CLAIMS.name,
        nodes=nodes,
        init_pods=init_pods,
        measured_pods=measured_pods,
        build=CLAIMS.build,
    )


def test_the_last_pod_takes_the_last_device() -> None:
    assert CLAIMS.nodes * DEVICES_PER_NODE == CLAIMS.init_pods + CLAIMS.measured_pods
    result = measure(_small(3, 15, 16), check_every=1)
    assert result.init_pods == 15
    assert result.scheduled == 15
    assert (result.checked, result.differing) == (16, 0)


def test_every_claim_is_written_before_the_next_pod() -> None:
    cluster = CLAIMS.build(2, 0, 20)
    bench = Bench(cluster, percentage=100, clock=SystemClock())
    claims = bench.objects.resource_claims
    given: Counter[tuple[str, str]] = Counter()
    for pod in cluster.measured:
        info = bench.enqueue(pod)
        decision = bench.cycle(info)
        before = _claim_of(bench, pod.metadata.name)
        assert before.status.allocation is None
        bench.pre_bind(info, decision)
        claim = _claim_of(bench, pod.metadata.name)
        assert claim.status.allocation is not None
        [result] = claim.status.allocation.devices.results
        assert result.pool == decision.node_name
        given[result.pool, result.device] += 1
        assert [consumer.uid for consumer in claim.status.reserved_for] == [pod.metadata.uid]
    assert len(claims) == 20
    assert set(given.values()) == {1}
    assert len(given) == 20


def _claim_of(bench: Bench, pod_name: str) -> ResourceClaim:
    claim = bench.objects.resource_claims.get("measured", f"{pod_name}-resource")
    assert claim is not None
    return claim
