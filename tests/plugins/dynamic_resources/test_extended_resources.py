"""The claim made up for extended resources (spec 08 B11)."""

import pytest

from kubestow.api.decode import to_document
from kubestow.api.device import ResourceClaim
from kubestow.api.pod import Container, Pod
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.claims import EXTENDED_RESOURCE_ANNOTATION, Claims
from kubestow.index.devices.inventory import PoolKey
from kubestow.plugins.dynamic_resources.extended_resources import (
    SPECIAL_NAME,
    is_in_memory,
    special_claim,
    special_requests,
)
from kubestow.testing import make_container, make_pod
from kubestow.testing.devices import make_claim

GPU = "example.com/gpu"
NIC = "example.com/nic"


def container(name: str, *, sidecar: bool = False, **amounts: int) -> Container:
    names = {"gpu": GPU, "nic": NIC, "cpu": "cpu"}
    return make_container(
        name,
        requests={names[key]: amount for key, amount in amounts.items()},
        restart_policy="Always" if sidecar else None,
    )


def requests_of(
    init: list[Container], regular: list[Container], *resources: str
) -> tuple[dict[str, int], list[str]]:
    pod = make_pod(containers=regular, init_containers=init)
    requests, mappings = special_requests(
        pod, resources or (GPU,), lambda resource: f"class-of-{resource}"
    )
    counts = {r.name: r.exactly.count for r in requests if r.exactly is not None}
    return counts, [f"{m.container_name}:{m.request_name}" for m in mappings]


def test_init_containers_reuse_devices_of_later_ones() -> None:
    counts, mappings = requests_of([container("init", gpu=3)], [container("c", gpu=2)])
    assert counts == {"container-0-request-0": 1, "container-1-request-0": 2}
    assert mappings == [
        "c:container-1-request-0",
        "init:container-1-request-0",
        "init:container-0-request-0",
    ]


def test_mappings_are_grouped_by_resource() -> None:
    _, mappings = requests_of([container("i", gpu=2)], [container("m", gpu=1, nic=1)], NIC, GPU)
    assert mappings == [
        "m:container-1-request-0",
        "i:container-1-request-0",
        "i:container-0-request-0",
        "m:container-1-request-1",
    ]


def test_the_index_counts_all_requests_of_the_container() -> None:
    counts, _ = requests_of([], [container("c", gpu=2, cpu=1)])
    assert counts == {"container-0-request-1": 2}


@pytest.mark.parametrize(
    ("init", "regular", "counts", "mappings"),
    [
        pytest.param(
            [container("a", gpu=3), container("b", gpu=5), container("c", gpu=5)],
            [container("m", gpu=2)],
            {"container-1-request-0": 3, "container-3-request-0": 2},
            [
                "m:container-3-request-0",
                "a:container-3-request-0",
                "a:container-1-request-0",
                "b:container-3-request-0",
                "b:container-1-request-0",
                "c:container-3-request-0",
                "c:container-1-request-0",
            ],
            id="only-the-largest-remainder-first-on-ties",
        ),
        pytest.param(
            [container("side", sidecar=True, gpu=2), container("init", gpu=2)],
            [container("m", gpu=1)],
            {
                "container-0-request-0": 2,
                "container-1-request-0": 1,
                "container-2-request-0": 1,
            },
            [
                "side:container-0-request-0",
                "m:container-2-request-0",
                "init:container-2-request-0",
                "init:container-1-request-0",
            ],
            id="sidecars-that-run-already-are-not-reused",
        ),
        pytest.param(
            [container("init", gpu=1)],
            [container("m", gpu=2), container("n", gpu=2)],
            {"container-1-request-0": 2, "container-2-request-0": 2},
            [
                "m:container-1-request-0",
                "n:container-2-request-0",
                "init:container-1-request-0",
            ],
            id="until-covered",
        ),
        pytest.param(
            [],
            [container("m", gpu=0), container("n", gpu=1)],
            {"container-1-request-0": 1},
            ["n:container-1-request-0"],
            id="nothing-asked-nothing-mapped",
        ),
    ],
)
def test_requests_by_container(
    init: list[Container], regular: list[Container], counts: dict[str, int], mappings: list[str]
) -> None:
    assert requests_of(init, regular) == (counts, mappings)


def test_requests_are_sorted_by_name_as_text() -> None:
    regular = [container(f"c{n}", gpu=1, nic=1) for n in range(11)]
    counts, _ = requests_of([], regular, GPU, NIC)
    assert list(counts)[:4] == [
        "container-0-request-0",
        "container-0-request-1",
        "container-1-request-0",
        "container-1-request-1",
    ]
    assert list(counts)[4] == "container-10-request-0"


def special(pod: Pod, *stored: ResourceClaim) -> ResourceClaim:
    store = ObjectStore[ResourceClaim]()
    for claim in stored:
        store.put(claim)
    return special_claim(pod, Claims(store, AllocatedDevices(ignore)))


def ignore(pool: PoolKey) -> None:
    """Nothing about pools is kept here."""


def test_a_new_claim_exists_in_memory_only() -> None:
    pod = make_pod("web")
    claim = special(pod)
    assert claim.metadata.name == SPECIAL_NAME
    assert claim.metadata.generate_name == "web-extended-resources-"
    assert claim.metadata.annotations == {EXTENDED_RESOURCE_ANNOTATION: "true"}
    (owner,) = claim.metadata.owner_references
    assert to_document(owner) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "uid": pod.metadata.uid,
        "controller": True,
    }
    assert is_in_memory(claim)


def test_a_claim_left_over_from_before_is_found() -> None:
    pod = make_pod("web")
    marked = {EXTENDED_RESOURCE_ANNOTATION: "true"}
    left = make_claim("web-extended-resources-x", owner=pod, annotations=marked)
    assert special(pod, make_claim("other", owner=pod), left) is left
    renamed = make_pod("web2", uid=pod.metadata.uid)
    assert is_in_memory(special(renamed, left))
