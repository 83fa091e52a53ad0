"""A change of the cluster that may make a pod fit, and how large it is.

A change is a set of typed objects as they would be. It is tried on the cluster itself, and written
as JSON Patch from the same objects (`patches`), so what is suggested is what was tried.

The size is the one order of all suggestions. It is a number; smaller changes come first. `SIZES`
has the base of each kind; amounts are added to it: one per percent of a request that is given up,
`SKEW_STEP` per step of `maxSkew`, `POD_STEP` per pod deleted. The size of two changes together is
the sum of both.
"""

from typing import Final

import msgspec

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.explain.cluster import key_of

ADD_LABEL: Final = "AddLabel"
ADD_NODE: Final = "AddNode"
ADD_TOLERATION: Final = "AddToleration"
CHANGE_HOST_PORT: Final = "ChangeHostPort"
CHANGE_NODE_AFFINITY: Final = "ChangeNodeAffinity"
CHANGE_NODE_SELECTOR: Final = "ChangeNodeSelector"
CHANGE_STORAGE_CLASS: Final = "ChangeStorageClass"
CORRECT_NAME: Final = "CorrectName"
CREATE_CLAIM: Final = "CreateClaim"
CREATE_CLASS: Final = "CreateStorageClass"
CREATE_RESOURCE_CLAIM: Final = "CreateResourceClaim"
DELETE_PODS: Final = "DeletePods"
DROP_DEVICE_SELECTOR: Final = "DropDeviceSelector"
DROP_HOST_PORT: Final = "DropHostPort"
DROP_NODE_AFFINITY: Final = "DropNodeAffinity"
DROP_NODE_SELECTOR: Final = "DropNodeSelector"
DROP_POD_AFFINITY: Final = "DropPodAffinity"
DROP_POD_ANTI_AFFINITY: Final = "DropPodAntiAffinity"
LOWER_DEVICE_COUNT: Final = "LowerDeviceCount"
LOWER_REQUEST: Final = "LowerRequest"
LOWER_STORAGE_REQUEST: Final = "LowerStorageRequest"
MOVE_POD: Final = "MovePod"
MOVE_VOLUME: Final = "MoveVolume"
RAISE_MAX_SKEW: Final = "RaiseMaxSkew"
RAISE_POD_LIMIT: Final = "RaisePodLimit"
RAISE_VOLUME_LIMIT: Final = "RaiseVolumeLimit"
REMOVE_GATES: Final = "RemoveSchedulingGates"
REMOVE_TAINT: Final = "RemoveTaint"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
UNCORDON: Final = "Uncordon"
WAIT: Final = "Wait"

SIZES: Final = {
    REMOVE_GATES: 0,
    # Nothing is given up.
    WAIT: 2,
    CORRECT_NAME: 5,
    # The pod gives up little, or nothing.
    ADD_TOLERATION: 10,
    LOWER_REQUEST: 10,
    RAISE_MAX_SKEW: 10,
    CHANGE_HOST_PORT: 15,
    UNCORDON: 15,
    ADD_LABEL: 20,
    CREATE_CLAIM: 20,
    CREATE_CLASS: 20,
    CREATE_RESOURCE_CLAIM: 20,
    LOWER_DEVICE_COUNT: 20,
    LOWER_STORAGE_REQUEST: 20,
    CHANGE_NODE_SELECTOR: 25,
    CHANGE_NODE_AFFINITY: 25,
    # A node serves more than it was set up for.
    REMOVE_TAINT: 30,
    RAISE_POD_LIMIT: 30,
    RAISE_VOLUME_LIMIT: 30,
    # The pod gives up a rule.
    SCHEDULE_ANYWAY: 35,
    DROP_HOST_PORT: 40,
    DROP_NODE_SELECTOR: 40,
    DROP_NODE_AFFINITY: 40,
    DROP_DEVICE_SELECTOR: 40,
    DROP_POD_AFFINITY: 45,
    DROP_POD_ANTI_AFFINITY: 45,
    # Others are concerned, or data.
    CHANGE_STORAGE_CLASS: 50,
    MOVE_POD: 60,
    MOVE_VOLUME: 70,
    DELETE_PODS: 80,
    ADD_NODE: 150,
}
SKEW_STEP: Final = 5
POD_STEP: Final = 10
# All expressions of a node affinity instead of one.
WHOLE_RULE: Final = 15
# A claim gets another volume, and its data have to be copied.
NEW_VOLUME: Final = 40
# Tolerating a taint that the control plane sets, as for a node that is not ready: it says that the
# node has a problem.
SYSTEM_TAINT: Final = 60


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """Objects as they would be.

    kind      a key of `SIZES`, or two of them joined by "+"
    text      what to do, as the start of a sentence
    pod       the pod that is to fit, changed or not
    objects   other objects that are changed or new
    removed   objects that are deleted
    size      how large the change is
    others    how many other nodes a change of the same kind may be made to instead
    """

    kind: str
    text: str
    pod: Pod
    objects: tuple[ApiObject, ...] = ()
    removed: tuple[ApiObject, ...] = ()
    size: int = 0
    others: int = 0

    def put(self) -> tuple[ApiObject, ...]:
        """All objects to put, the pod included."""
        return (self.pod, *self.objects)


def make_remedy(
    kind: str,
    text: str,
    pod: Pod,
    *,
    objects: tuple[ApiObject, ...] = (),
    removed: tuple[ApiObject, ...] = (),
    amount: int = 0,
    others: int = 0,
) -> Remedy:
    """A change of one kind; `amount` is added to the kind's size."""
    return Remedy(
        kind=kind,
        text=text,
        pod=pod,
        objects=objects,
        removed=removed,
        size=SIZES[kind] + amount,
        others=others,
    )


def joined(first: Remedy, second: Remedy) -> Remedy:
    """Both changes; the second was found with the first one made."""
    later = {key_of(each) for each in second.objects}
    return Remedy(
        kind=f"{first.kind}+{second.kind}",
        text=f"{first.text}, and {second.text}",
        pod=second.pod,
        objects=(*(each for each in first.objects if key_of(each) not in later), *second.objects),
        removed=(*first.removed, *second.removed),
        size=first.size + second.size,
        others=0,
    )


def rank(change: Remedy) -> tuple[int, str, str]:
    """What suggestions are sorted by."""
    return change.size, change.kind, change.text
