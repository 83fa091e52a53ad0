"""Watches of pods with some traits: what they read is what a test of each pod would let pass."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, is_terminal
from kubestow.apiserver import traits
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import Watch, WatchEvent
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError
from kubestow.testing.clock import ManualClock

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}


def of(event: WatchEvent) -> Pod:
    pod = event.object
    assert isinstance(pod, Pod)
    return pod


def is_active(event: WatchEvent) -> bool:
    return of(event).spec.node_name != "" and not is_terminal(of(event))


SLOW: dict[int, Callable[[WatchEvent], bool]] = {
    traits.EXISTS: lambda event: True,
    traits.GONE: lambda event: event.type == "DELETED",
    traits.PLACED: lambda event: of(event).spec.node_name != "",
    traits.ACTIVE: is_active,
    traits.ENDING: lambda event: of(event).metadata.deletion_timestamp is not None,
    traits.ENDED: lambda event: is_terminal(of(event)),
    traits.FINALIZED: lambda event: bool(of(event).metadata.finalizers),
    traits.HAS_VOLUMES: lambda event: bool(of(event).spec.volumes),
    traits.HAS_CLAIMS: lambda event: bool(of(event).spec.resource_claims),
}


def pod(number: int, variant: int) -> JsonObject:
    metadata: JsonObject = {"name": f"p{number}", "namespace": "default"}
    spec: JsonObject = {"containers": [{"name": "c", "image": "i"}]}
    if variant & 1:
        metadata["finalizers"] = ["example.com/keep"]
    if variant & 2:
        spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    if variant & 4:
        spec["resourceClaims"] = [{"name": "r", "resourceClaimName": "r"}]
    return {"metadata": metadata, "spec": spec}


def write(cluster: MemoryCluster, step: tuple[str, int, int]) -> None:
    """Do one step, if the pod is there and allows it."""
    verb, number, variant = step
    key = "default", f"p{number}"
    try:
        match verb:
            case "create":
                cluster.create(PODS, pod(number, variant))
            case "bind":
                cluster.bind(*key, "n")
            case "end":
                patch = {"status": {"phase": "Failed" if variant & 1 else "Succeeded"}}
                cluster.patch(PODS, *key, patch, "merge", subresource="status")
            case _:
                cluster.delete(PODS, *key, grace_period_s=0 if variant & 1 else 30)
    except ApiError:
        pass


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "bind", "end", "delete"]),
        st.integers(0, 3),
        st.integers(0, 7),
    ),
    max_size=30,
)


def read(watch: Watch) -> list[tuple[str, int]]:
    return [(event.type, event.stored.version) for event in watch.events_nowait()]


@given(before=STEPS, after=STEPS, wanted=st.sets(st.sampled_from(sorted(SLOW)), min_size=1))
def test_a_watch_reads_the_pods_that_have_one_of_its_traits(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]], wanted: set[int]
):
    cluster = MemoryCluster(ManualClock())
    for step in before:
        write(cluster, step)
    slow = cluster.watch(PODS, concerns=lambda event: any(SLOW[trait](event) for trait in wanted))
    watch = cluster.watch(PODS, traits=sum(wanted))
    for step in after:
        write(cluster, step)
    assert read(watch) == read(slow)


def test_a_pod_that_loses_its_owners_is_read_once_more():
    cluster = MemoryCluster(ManualClock())
    document = pod(1, 0)
    document["metadata"]["ownerReferences"] = [OWNER]
    cluster.create(PODS, document)
    watch = cluster.watch(PODS, traits=traits.OWNED)
    cluster.patch(PODS, "default", "p1", {"metadata": {"ownerReferences": None}}, "merge")
    cluster.bind("default", "p1", "n")
    assert [type for type, _ in read(watch)] == ["ADDED", "MODIFIED"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_watch_can_read_other_traits_from_now_on(is_first: bool):
    cluster = MemoryCluster(ManualClock())
    watch = cluster.watch(PODS, traits=traits.NO_PODS)
    if not is_first:
        cluster.create(PODS, pod(1, 0))
    watch.read_traits(traits.ANY)
    cluster.create(PODS, pod(2, 0))
    watch.read_traits(traits.NO_PODS)
    cluster.create(PODS, pod(3, 0))
    assert [event.stored.name for event in watch.events_nowait()] == ["p2"]
