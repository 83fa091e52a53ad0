"""Groups of pods: all members are tried together."""

from collections.abc import Iterator
from typing import Any, Final

from tools.hostile.objects import Case, Manifest, adder, pod, with_metadata

CASES: Final[list[Case]] = []
case = adder(CASES)


def _gang(members: list[Manifest]) -> Iterator[Manifest]:
    """The members arrive before the group, so that they are tried once, together."""
    yield from members
    policy = {"gang": {"minCount": len(members)}}
    document: Any = {
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    }
    yield Manifest("podgroups.scheduling.k8s.io", document)


def _member(number: int) -> Manifest:
    """Each has a label of its own, as a Job gives its pods."""
    made = pod(f"member-{number}", schedulingGroup={"podGroupName": "hostile"})
    return with_metadata(made, labels={"app": "hostile", "index": str(number)})


@case(2_000)
def members_of_a_group(size: int) -> Iterator[Manifest]:
    yield from _gang([_member(number) for number in range(size)])
