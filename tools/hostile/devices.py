"""Hostile claims for devices, and the slices they are about."""

from collections.abc import Iterator
from typing import Any, Final

from kubestow.api.meta import JsonObject
from tools.hostile.objects import Case, Manifest, adder, pod

CASES: Final[list[Case]] = []
case = adder(CASES)

_DRIVER: Final = "devices.example.com"
_CLASS: Final = "any"
_DEVICES_PER_SLICE: Final = 128
_NOTHING: Final = 'device.driver == "none"'


def _class() -> Manifest:
    return Manifest(
        "deviceclasses.resource.k8s.io", {"metadata": {"name": _CLASS}, "spec": {"selectors": []}}
    )


def _slices(count: int) -> Iterator[Manifest]:
    """Devices that every node can use, in one pool; each has another attribute."""
    slice_count = -(-count // _DEVICES_PER_SLICE)
    for index in range(slice_count):
        first = index * _DEVICES_PER_SLICE
        devices = [
            {"name": f"device-{number}", "attributes": {"number": {"int": number}}}
            for number in range(first, min(first + _DEVICES_PER_SLICE, count))
        ]
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": slice_count}
        spec = {"driver": _DRIVER, "pool": pool, "allNodes": True, "devices": devices}
        yield Manifest(
            "resourceslices.resource.k8s.io",
            {"metadata": {"name": f"slice-{index}"}, "spec": spec},
        )


def _request(name: str, *expressions: str, count: int = 1) -> JsonObject:
    exactly: dict[str, Any] = {
        "deviceClassName": _CLASS,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": expression}} for expression in expressions],
    }
    return {"name": name, "exactly": exactly}


def _claim(*requests: JsonObject, name: str = "hostile", **more: Any) -> Manifest:
    return Manifest(
        "resourceclaims.resource.k8s.io",
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [*requests], **more}},
        },
    )


def _claiming_pod(*claims: str) -> Manifest:
    return pod(
        resourceClaims=[
            {"name": f"claim-{index}", "resourceClaimName": claim}
            for index, claim in enumerate(claims)
        ]
    )


def _costly_expression() -> str:
    """More than half of the 1,000,000 units that an evaluation may cost. More is refused, because
    an API server estimates the cost from above."""
    body = "[0,1,2,3,4].all(w, v0 * v1 + v2 * w >= 0)"
    for level in range(4):
        body = f"[0,1,2,3,4,5,6,7,8,9].all(v{level}, {body})"
    return f"{body} && {_NOTHING}"


@case(128)
def device_selectors_near_the_cost_limit(size: int) -> Iterator[Manifest]:
    yield _class()
    yield from _slices(size)
    yield _claim(_request("r", _costly_expression()))
    yield _claiming_pod("hostile")


@case(128)
def device_selectors_with_patterns(size: int) -> Iterator[Manifest]:
    text = "a" * 60 + "!"
    yield _class()
    yield from _slices(size)
    yield _claim(_request("r", f'"{text}".matches("(a+)+$") && {_NOTHING}'))
    yield _claiming_pod("hostile")


@case(4_096)
def devices_that_no_request_selects(size: int) -> Iterator[Manifest]:
    yield _class()
    yield from _slices(size)
    selectors = [f'device.attributes["{_DRIVER}"].number >= 0'] * 31
    requests = [_request(f"r-{index}", *selectors, _NOTHING) for index in range(32)]
    yield _claim(*requests)
    yield _claiming_pod("hostile")


@case(128)
def requests_that_need_one_attribute(size: int) -> Iterator[Manifest]:
    """No two devices have it in common: every combination fails."""
    yield _class()
    yield from _slices(size)
    requests = [_request(f"r-{index}") for index in range(32)]
    yield _claim(*requests, constraints=[{"requests": [], "matchAttribute": f"{_DRIVER}/number"}])
    yield _claiming_pod("hostile")


@case(500)
def claims_of_one_pod(size: int) -> Iterator[Manifest]:
    yield _class()
    yield from _slices(1_024)
    names = [f"claim-{index}" for index in range(size)]
    for name in names:
        yield _claim(_request("r", count=2), name=name)
    yield _claiming_pod(*names)


@case(1_600)
def opaque_parameters_nested(size: int) -> Iterator[Manifest]:
    parameters: JsonObject = {}
    for _ in range(size):
        parameters = {"a": parameters}
    opaque = {"driver": _DRIVER, "parameters": parameters}
    yield _class()
    yield from _slices(1)
    yield _claim(_request("r"), config=[{"requests": ["r"], "opaque": opaque}])
    yield _claiming_pod("hostile")


def _attribute(name: str, value: int) -> JsonObject:
    return {name: {"int": value}}


@case(32)
def combinations_of_devices_that_all_fail(size: int) -> Iterator[Manifest]:
    """Every request selects every device, and no two of them are alike: all orders are tried."""
    devices = [
        {"name": f"device-{number}", "attributes": {**_attribute("a", number % 3)}}
        for number in range(size)
    ]
    spec = {
        "driver": _DRIVER,
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        "devices": devices,
    }
    yield _class()
    yield Manifest("resourceslices.resource.k8s.io", {"metadata": {"name": "slice"}, "spec": spec})
    requests = [_request(f"r-{number}") for number in range(size // 2)]
    constraints = [
        {"requests": [f"r-{number}", f"r-{number + 1}"], "distinctAttribute": f"{_DRIVER}/a"}
        for number in range(size // 2 - 1)
    ]
    last = {"requests": [f"r-{size // 2 - 1}"], "matchAttribute": f"{_DRIVER}/none"}
    yield _claim(*requests, constraints=[*constraints, last])
    yield _claiming_pod("hostile")


@case(64)
def devices_that_share_counters(size: int) -> Iterator[Manifest]:
    """Each device draws another amount from a counter, which never suffices for all requests."""
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "set", "counters": {"memory": {"value": f"{size * size // 8}"}}}]
    devices = [
        {
            "name": f"device-{number}",
            "consumesCounters": [
                {
                    "counterSet": "set",
                    "counters": {"memory": {"value": f"{size + number * 7 % size}"}},
                }
            ],
        }
        for number in range(size)
    ]
    common: dict[str, Any] = {"driver": _DRIVER, "pool": pool, "allNodes": True}
    yield _class()
    for name, more in (
        ("counters", {"sharedCounters": counters}),
        ("devices", {"devices": devices}),
    ):
        yield Manifest(
            "resourceslices.resource.k8s.io",
            {"metadata": {"name": name}, "spec": {**common, **more}},
        )
    requests = [_request(f"r-{number}") for number in range(size // 4)]
    yield _claim(*requests)
    yield _claiming_pod("hostile")
