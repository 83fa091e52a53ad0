"""A scheduler and the volume controllers together bind pods with claims of every kind."""

import asyncio

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.simulator.volume_controller import VolumeController

ZONE = "topology.kubernetes.io/zone"
PLUGINS = (
    "PrioritySort",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "DefaultBinder",
)


def config() -> SchedulerConfig:
    enabled = tuple(PluginRef(name) for name in PLUGINS)
    points = PluginSet(enabled=enabled, disabled=(PluginRef("*"),))
    return SchedulerConfig(profiles=(ProfileConfig(plugins=Plugins(multi_point=points)),))


def node(name: str, zone: str) -> JsonObject:
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone}},
        "status": {"capacity": size, "allocatable": size},
    }


def storage_class(name: str, provisioner: str, mode: str) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def claim_spec(class_name: str) -> JsonObject:
    return {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }


def claim(name: str, class_name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": claim_spec(class_name),
    }


def pod(name: str, volume: JsonObject) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "nginx"}],
            "volumes": [{"name": "data", **volume}],
        },
    }


def claimant(name: str, claim_name: str) -> JsonObject:
    return pod(name, {"persistentVolumeClaim": {"claimName": claim_name}})


LOCAL_VOLUME: JsonObject = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/mnt"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
                ]
            }
        },
    },
}
DOCUMENTS: list[JsonObject] = [
    node("n1", "a"),
    node("n2", "b"),
    storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    storage_class("later", "csi.example.com", "WaitForFirstConsumer"),
    storage_class("now", "csi.example.com", "Immediate"),
    LOCAL_VOLUME,
    claim("on-disk", "local"),
    claim("made", "later"),
    claim("at-once", "now"),
    claimant("static", "on-disk"),
    claimant("dynamic", "made"),
    claimant("immediate", "at-once"),
    pod("ephemeral", {"ephemeral": {"volumeClaimTemplate": {"spec": claim_spec("later")}}}),
    claimant("second", "no-such-claim"),
]


def test_every_claim_ends_up_bound_and_every_pod_where_its_volume_is() -> None:
    async def run() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock)
        store.load(DOCUMENTS)
        controllers = (VolumeController(store), EphemeralVolumeController(store))
        cluster = EmbeddedCluster(store, config(), clock, controllers=controllers)
        async with cluster.running():
            assert await cluster.settle(limit_s=60)
            # The wait for volumes polls once a second.
            assert clock.monotonic_s() < 5
        placed: dict[str, str] = {}
        for stored in store.list(PODS).items:
            assert isinstance(stored.typed, Pod)
            placed[stored.name] = stored.typed.spec.node_name
        assert placed.pop("second") == ""
        assert all(placed.values())
        assert placed["static"] == "n2"
        for stored in store.list(PERSISTENT_VOLUME_CLAIMS).items:
            assert isinstance(stored.typed, PersistentVolumeClaim)
            assert stored.typed.status.phase == "Bound"
        for name, user in (("made", "dynamic"), ("ephemeral-data", "ephemeral")):
            found = store.get(PERSISTENT_VOLUME_CLAIMS, "default", name).typed
            assert isinstance(found, PersistentVolumeClaim)
            volume = store.get(PERSISTENT_VOLUMES, "", found.spec.volume_name).typed
            assert isinstance(volume, PersistentVolume)
            assert volume.spec.node_affinity is not None
            assert volume.spec.node_affinity.required is not None
            (term,) = volume.spec.node_affinity.required.node_selector_terms
            assert term.match_expressions[0].values == ({"n1": "a", "n2": "b"}[placed[user]],)

    run_in_virtual_time(run())


def test_a_binding_that_waits_for_a_volume_ends_with_the_cluster() -> None:
    async def go() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock)
        pod: JsonObject = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {
                "containers": [{"name": "c", "image": "app"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            },
        }
        claim: JsonObject = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": claim_spec("late"),
        }
        late = storage_class("late", "example.com/disks", "WaitForFirstConsumer")
        store.load([node("n1", "a"), late, claim, pod])
        cluster = EmbeddedCluster(store, config(), clock)  # No controller makes the volume.
        async with cluster.running():
            await asyncio.sleep(5)
            assert not cluster.scheduler.tasks.is_idle
        assert cluster.scheduler.tasks.is_idle

    run_in_virtual_time(go())
