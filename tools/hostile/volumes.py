"""Pods with very many claims, beside very many volumes."""

from collections.abc import Iterator
from typing import Any, Final

from tools.hostile.objects import (
    HOSTNAME,
    Case,
    Manifest,
    adder,
    expression,
    pod,
)

CASES: Final[list[Case]] = []
case = adder(CASES)

_CLASS: Final = "static"


_DRIVER: Final = "csi.example.com"


def _class(provisioner: str = "kubernetes.io/no-provisioner") -> Manifest:
    return Manifest(
        "storageclasses.storage.k8s.io",
        {
            "metadata": {"name": _CLASS},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def _volume(
    number: int, *expressions: Any, labels: Any = None, claim: str = "", **spec: Any
) -> Manifest:
    term = {"matchExpressions": list(expressions)}
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim}
    return Manifest(
        "persistentvolumes",
        {
            "metadata": {"name": f"volume-{number}", "labels": labels or {}},
            "spec": {
                "capacity": {"storage": f"{number + 1}Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": _CLASS,
                "local": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                **spec,
            },
            "status": {"phase": "Available"},
        },
    )


def _claim(number: int, selector: Any = None, size: str = "") -> Manifest:
    return Manifest(
        "persistentvolumeclaims",
        {
            "metadata": {"name": f"claim-{number}", "namespace": "default"},
            "spec": {
                "storageClassName": _CLASS,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size or f"{number % 7 + 1}Gi"}},
                **({} if selector is None else {"selector": selector}),
            },
        },
    )


def _claiming_pod(size: int) -> Iterator[Manifest]:
    """A pod with these claims, and one more that no volume is large enough for: no volume
    controller is there to bind the others."""
    yield _claim(size, size="1Pi")
    yield pod(
        volumes=[
            {"name": f"v-{number}", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}
            for number in range(size + 1)
        ]
    )


@case(800)
def claims_and_volumes(size: int) -> Iterator[Manifest]:
    """Every node reaches every volume, and each volume says so in another way."""
    yield _class()
    for number in range(2 * size):
        yield _volume(
            number, expression(HOSTNAME, "Exists"), expression(f"key-{number}", "DoesNotExist")
        )
    for number in range(size):
        yield _claim(number)
    yield from _claiming_pod(size)


@case(400)
def claims_with_selectors_and_volumes(size: int) -> Iterator[Manifest]:
    """Each claim selects by other labels, each volume has others."""
    yield _class()
    for number in range(2 * size):
        labels = {"disk": f"disk-{number}", "kind": "disk"}
        yield _volume(number, expression(HOSTNAME, "Exists"), labels=labels)
    for number in range(size):
        selector = {
            "matchExpressions": [
                expression("disk", "NotIn", f"disk-{number}"),
                expression("kind", "Exists"),
            ]
        }
        yield _claim(number, selector)
    yield from _claiming_pod(size)


@case(4_000)
def claims_and_local_volumes(size: int) -> Iterator[Manifest]:
    """Each volume on another node; no node has enough."""
    yield _class()
    for number in range(size):
        yield _volume(number, expression(HOSTNAME, "In", f"node-{number}"))
    for number in range(size // 40):
        yield _claim(number)
    yield from _claiming_pod(size // 40)


@case(400)
def claims_with_volumes_of_their_own(size: int) -> Iterator[Manifest]:
    """Each volume is meant for one claim, and out of reach of some other nodes."""
    yield _class()
    for number in range(size):
        yield _volume(
            number + 7, expression(HOSTNAME, "NotIn", f"node-{number}"), claim=f"claim-{number}"
        )
        yield _claim(number)
    yield from _claiming_pod(size)


@case(4_000)
def volumes_that_each_exclude_a_node(size: int) -> Iterator[Manifest]:
    yield _class()
    for number in range(size):
        yield _volume(number, expression(HOSTNAME, "NotIn", f"node-{number}"))
    for number in range(2):
        yield _claim(number)
    yield from _claiming_pod(2)


@case(4_000)
def capacities_that_each_exclude_a_node(size: int) -> Iterator[Manifest]:
    """Storage drivers report how much is left where; none has enough for one of the claims."""
    yield _class(_DRIVER)
    driver: Any = {"metadata": {"name": _DRIVER}, "spec": {"storageCapacity": True}}
    yield Manifest("csidrivers.storage.k8s.io", driver)
    for number in range(size):
        yield Manifest(
            "csistoragecapacities.storage.k8s.io",
            {
                "metadata": {"name": f"capacity-{number}", "namespace": "default"},
                "storageClassName": _CLASS,
                "capacity": f"{number + 1}Gi",
                "nodeTopology": {
                    "matchExpressions": [expression(HOSTNAME, "NotIn", f"node-{number}")]
                },
            },
        )
    for number in range(2):
        yield _claim(number)
    yield from _claiming_pod(2)
