"""Objects from files into a store: a dump of a cluster as it is, manifests as a server takes them.

An object with a UID was read from a server: it *stands*. It keeps its UID, age, status and all
fields, and neither admission nor a controller touches it before the scheduler's first decision. All
others are new: they go through admission, and controllers have acted on them by then.

    documents ──► load_cluster ──► settle_new ──► first decision ──► all controllers, and what they
                                                                     make of workloads that stand

Objects are in the store in the order of the documents, which is also the order of the nodes.
Not here: which documents are read (`manifests`), whole clusters with all controllers
(`cluster_file`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from kubestow import collector
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import LOADED_FIRST, MemoryCluster
from kubestow.apiserver.writes.defaults import apply_defaults
from kubestow.cluster.documents import value_at
from kubestow.errors import ApiError, InputError
from kubestow.simulator.embedded import INSTANT_S, Controller, run_part
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.loaded_claims import relink_claims
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.results import RefusedPods
from kubestow.simulator.standing import StandingObjects
from kubestow.simulator.volume_controller import VolumeController
from kubestow.simulator.workloads import Made, made_of_workloads

# In virtual time: by then controllers have acted on new objects, all pods that fit are placed, and
# so are those that controllers make after the first decision.
BEGUN_S: Final = 10 * INSTANT_S


class LoadedObjects(NamedTuple):
    """What was put into a store."""

    standing: StandingObjects
    # Whether there are others.
    has_new: bool
    # What controllers make of workloads, and the part of it that is yet to be made: of those that
    # stand.
    made: Sequence[Made]
    to_make: Sequence[Made]


def stands(raw: JsonObject) -> bool:
    """Whether an object was read from a server."""
    return bool(value_at(raw, "metadata", "uid"))


def load_cluster(store: MemoryCluster, documents: Sequence[Document | JsonObject]) -> LoadedObjects:
    """Create the objects, and the pods of new workloads; raises InputError with the place of one
    that cannot be created."""
    sourced = [
        document if isinstance(document, Document) else Document(document, f"document {number}")
        for number, document in enumerate(documents, start=1)
    ]
    uids: set[str] = set()
    with collector.paused():
        made = made_of_workloads(sourced)
        to_make = [each for each in made if stands(each.workload.raw)]
        created = [each.document for each in made if not stands(each.workload.raw)]
        ordered = sorted(
            [*sourced, *created], key=lambda one: one.raw.get("kind") not in LOADED_FIRST
        )
        store.take_uids(one.raw["metadata"]["uid"] for one in ordered if stands(one.raw))
        for document in ordered:
            uid = _create(store, document)
            if stands(document.raw):
                uids.add(uid)
        relink_claims(store, uids)
    standing = StandingObjects(uids, store.version)
    return LoadedObjects(standing, len(uids) < len(ordered), made, to_make)


def make(store: MemoryCluster, made: Sequence[Made]) -> list[RefusedPods]:
    """Create what controllers make of workloads; what is refused of each."""
    refused: dict[str, RefusedPods] = {}
    for each in made:
        try:
            _create(store, each.document)
        except InputError as error:
            raw = each.workload.raw
            owner = f"{raw['kind']}/{value_at(raw, 'metadata', 'name')}"
            known = refused.get(owner) or RefusedPods(
                owner=owner, message=str(error.__cause__ or error), pods=0
            )
            refused[owner] = msgspec.structs.replace(known, pods=known.pods + 1)
    return list(refused.values())


def count_pods(made: Sequence[Made]) -> int:
    """How many pods are among what is made."""
    return sum(each.document.raw["kind"] == "Pod" for each in made)


def _create(store: MemoryCluster, document: Document) -> str:
    """Create an object; its UID."""
    raw, is_standing = document.raw, stands(document.raw)
    try:
        if is_standing:
            # A server has filled in the defaults; a dump that was shortened by hand lacks some.
            (stored,) = store.load([apply_defaults(raw)], admission=False)
        else:
            (stored,) = store.load([raw])
    except ApiError as error:
        raise InputError(f"the cluster cannot be set up: {document.source}: {error}") from error
    return stored.uid


async def settle_new(store: MemoryCluster, loaded: LoadedObjects) -> None:
    """Let controllers act on the objects that are new, in virtual time."""
    if not loaded.has_new:
        return
    controllers = (
        VolumeController(store, standing=loaded.standing),
        EphemeralVolumeController(store, standing=loaded.standing),
        ResourceClaimController(store, standing=loaded.standing),
    )
    tasks = [asyncio.create_task(run_part(controller)) for controller in controllers]
    try:
        # Virtual time advances when nothing is left to do.
        await asyncio.sleep(INSTANT_S)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


class AfterFirstDecision:
    """Controllers that begin after the scheduler's first decision, or if there is none to make."""

    def __init__(self, controllers: Sequence[Controller], begin: Callable[[], None]) -> None:
        """`begin` is called before the controllers run."""
        self._controllers = controllers
        self._begin = begin
        self._decided = asyncio.Event()
        self._has_begun = False

    def decided(self) -> None:
        """To be called after the first decision."""
        self._decided.set()

    @property
    def is_busy(self) -> bool:
        return not self._has_begun or any(
            getattr(controller, "is_busy", False) for controller in self._controllers
        )

    async def run(self) -> None:
        with suppress(TimeoutError):
            # Virtual time advances when the scheduler has nothing to do.
            async with asyncio.timeout(INSTANT_S):
                await self._decided.wait()
        self._begin()
        self._has_begun = True
        await asyncio.gather(*map(run_part, self._controllers))


def pods_of(store: MemoryCluster) -> list[Pod]:
    """All pods, in the order in which they were created."""
    pods = (stored.typed for stored in store.objects_of(store.resources.of_type(Pod)))
    return [pod for pod in pods if isinstance(pod, Pod)]
