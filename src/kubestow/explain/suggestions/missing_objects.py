"""Objects that the pod needs and that do not exist: claims, and classes of storage or devices."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kubestow.api.device import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import ResourceRequirements, Volume
from kubestow.api.quantity import parse_quantity
from kubestow.api.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
)
from kubestow.api.volume_claims import STORAGE, WAIT_FOR_FIRST_CONSUMER, claim_class, named_claims
from kubestow.close_names import close_names
from kubestow.explain.suggestions.devices import with_request
from kubestow.explain.suggestions.pod_parts import with_spec
from kubestow.explain.suggestions.remedy import (
    CORRECT_NAME,
    CREATE_CLAIM,
    CREATE_CLASS,
    CREATE_RESOURCE_CLAIM,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.stuck_pod import StuckPod

_PLUGINS: Final = ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone")
_DEVICES: Final = "DynamicResources"
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_SIZE: Final = "1Gi"
CLASSES_TRIED: Final = 8


def create_missing(stuck: StuckPod) -> Iterator[Remedy]:
    """The claims or classes whose absence rejects the pod before any node is looked at."""
    if stuck.rejected_early == _DEVICES:
        yield from _missing_for_devices(stuck)
    if stuck.rejected_early not in _PLUGINS:
        return
    namespace, claims = stuck.pod.metadata.namespace, stuck.cluster.objects.persistent_volume_claims
    names = list(dict.fromkeys(named_claims(stuck.pod)))
    missing = [name for name in names if claims.get(namespace, name) is None]
    if missing:
        known = [each.metadata.name for each in claims.list_namespace(namespace)]
        yield from _other_claims(stuck, missing, known)
        yield from _new_claims(stuck, missing)
    else:
        yield from _new_classes(stuck, names)


def _other_claims(stuck: StuckPod, missing: list[str], known: list[str]) -> Iterator[Remedy]:
    for name in missing:
        for meant in close_names(name, known)[:1]:
            volumes = tuple(_renamed(each, name, meant) for each in stuck.pod.spec.volumes)
            pod = with_spec(stuck.pod, volumes=volumes)
            if stuck.fits(pod):
                text = f"use the claim {meant} instead of {name}"
                yield make_remedy(CORRECT_NAME, text, pod)


def _renamed(volume: Volume, name: str, meant: str) -> Volume:
    source = volume.persistent_volume_claim
    if source is None or source.claim_name != name:
        return volume
    changed = msgspec.structs.replace(source, claim_name=meant)
    return msgspec.structs.replace(volume, persistent_volume_claim=changed)


def _new_claims(stuck: StuckPod, missing: list[str]) -> Iterator[Remedy]:
    """Claims of the default class, else of the first with which the pod fits."""
    for storage_class in _classes(stuck)[:CLASSES_TRIED]:
        name = storage_class.metadata.name
        new = tuple(_claim(stuck.pod.metadata.namespace, each, name) for each in missing)
        if stuck.fits_with(*new):
            noun = "claim" if len(missing) == 1 else "claims"
            text = (
                f"create the {noun} {', '.join(missing)} with the storage class {name}, of {_SIZE} "
                "or the size that is needed"
            )
            yield make_remedy(CREATE_CLAIM, text, stuck.pod, objects=new)
            return


def _claim(namespace: str, name: str, class_name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        api_version="v1",
        kind="PersistentVolumeClaim",
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PersistentVolumeClaimSpec(
            access_modes=("ReadWriteOnce",),
            storage_class_name=class_name,
            resources=ResourceRequirements(requests={STORAGE: parse_quantity(_SIZE)}),
        ),
    )


def _new_classes(stuck: StuckPod, names: list[str]) -> Iterator[Remedy]:
    """The class of the pod's claims, made as another one."""
    objects, namespace = stuck.cluster.objects, stuck.pod.metadata.namespace
    found = (objects.persistent_volume_claims.get(namespace, name) for name in names)
    claims = [each for each in found if each is not None and not each.spec.volume_name]
    wanted = sorted({claim_class(each) for each in claims} - {""})
    missing = [each for each in wanted if objects.storage_classes.get(each) is None]
    for like in _classes(stuck)[:CLASSES_TRIED] if missing else ():
        new = tuple(
            msgspec.structs.replace(like, metadata=ObjectMeta(name=name)) for name in missing
        )
        if stuck.fits_with(*new):
            text = f"create the storage class {', '.join(missing)}, as {like.metadata.name} is"
            yield make_remedy(CREATE_CLASS, text, stuck.pod, objects=new)
            return


def _classes(stuck: StuckPod) -> list[StorageClass]:
    """Classes that wait for their first pod, the default one first."""
    classes = [
        each
        for each in stuck.cluster.objects.storage_classes
        if each.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    ]
    return sorted(
        classes,
        key=lambda each: (
            each.metadata.annotations.get(_DEFAULT_CLASS) != "true",
            each.metadata.name,
        ),
    )


# --- devices ---


def _missing_for_devices(stuck: StuckPod) -> Iterator[Remedy]:
    namespace, claims = stuck.pod.metadata.namespace, stuck.cluster.objects.resource_claims
    named = (each.resource_claim_name for each in stuck.pod.spec.resource_claims)
    names = list(dict.fromkeys(name for name in named if name))
    missing = [name for name in names if claims.get(namespace, name) is None]
    if not missing:
        yield from _other_device_classes(stuck, names)
        return
    known = [each.metadata.name for each in claims.list_namespace(namespace)]
    for name in missing:
        for meant in close_names(name, known)[:1]:
            entries = tuple(
                msgspec.structs.replace(each, resource_claim_name=meant)
                if each.resource_claim_name == name
                else each
                for each in stuck.pod.spec.resource_claims
            )
            pod = with_spec(stuck.pod, resource_claims=entries)
            if stuck.fits(pod):
                text = f"use the ResourceClaim {meant} instead of {name}"
                yield make_remedy(CORRECT_NAME, text, pod)
    yield from _new_resource_claims(stuck, missing)


def _new_resource_claims(stuck: StuckPod, missing: list[str]) -> Iterator[Remedy]:
    """Claims for one device of the first class with which the pod fits."""
    classes = sorted(each.metadata.name for each in stuck.cluster.objects.device_classes)
    for name in classes[:CLASSES_TRIED]:
        exactly = ExactDeviceRequest(device_class_name=name, allocation_mode="ExactCount", count=1)
        devices = DeviceClaim(requests=(DeviceRequest(name="device", exactly=exactly),))
        new = tuple(
            ResourceClaim(
                api_version="resource.k8s.io/v1",
                kind="ResourceClaim",
                metadata=ObjectMeta(name=each, namespace=stuck.pod.metadata.namespace),
                spec=ResourceClaimSpec(devices=devices),
            )
            for each in missing
        )
        if stuck.fits_with(*new):
            noun = "ResourceClaim" if len(missing) == 1 else "ResourceClaims"
            text = (
                f"create the {noun} {', '.join(missing)} for one device of class {name}, or as "
                "many as are needed"
            )
            yield make_remedy(CREATE_RESOURCE_CLAIM, text, stuck.pod, objects=new)
            return


def _other_device_classes(stuck: StuckPod, names: list[str]) -> Iterator[Remedy]:
    """Requests of a class that does not exist, with the name of one that is close."""
    objects, namespace = stuck.cluster.objects, stuck.pod.metadata.namespace
    known = [each.metadata.name for each in objects.device_classes]
    for name in names:
        claim = objects.resource_claims.get(namespace, name)
        for index, request in enumerate(() if claim is None else claim.spec.devices.requests):
            given = "" if request.exactly is None else request.exactly.device_class_name
            if claim is None or request.exactly is None or given in known:
                continue
            for meant in close_names(given, known)[:1]:
                exactly = msgspec.structs.replace(request.exactly, device_class_name=meant)
                changed = with_request(claim, index, exactly)
                if stuck.fits_with(changed):
                    text = f"use the device class {meant} instead of {given} in the claim {name}"
                    yield make_remedy(CORRECT_NAME, text, stuck.pod, objects=(changed,))
