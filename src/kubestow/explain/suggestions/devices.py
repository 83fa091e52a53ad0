"""Changes of the device claims of a pod: fewer devices, or one selector less.

`change_devices` finds those that help alone, `pairs_of_device_changes` two that help together. One
filter judges all devices of a pod, so what is in the way cannot be counted as `first_steps` counts
it. But a change only ever asks for less. So all of them are made, and each is taken back by itself:
on a node where the pod then fits no more that one is needed, and two changes can be enough only
where no third one is.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import msgspec
import numpy as np

from kubestow.api.device import EXACT_COUNT, ExactDeviceRequest, ResourceClaim
from kubestow.api.pod import Pod, resource_claim_names
from kubestow.arrays import BoolArray, IntpArray
from kubestow.explain.suggestions.remedy import (
    DROP_DEVICE_SELECTOR,
    LOWER_DEVICE_COUNT,
    Remedy,
    joined,
    make_remedy,
)
from kubestow.explain.suggestions.stuck_pod import StuckPod

PLUGIN: Final = "DynamicResources"
# Nodes on which a number of devices is looked for first, and nodes that pairs are looked for on:
# altogether, and of one pair.
ROWS_FIRST: Final = 256
ROWS_OF_PAIR: Final = 32
# Changes of which pairs are made, pairs that are tried, and pairs that are enough.
CHANGES_PAIRED: Final = 32
PAIRS_TRIED: Final = 64
PAIRS_FOUND: Final = 8

_COUNT: Final = -1
# Claims that are changed alike: those made from one template, or one claim.
_Claims = tuple[tuple[ResourceClaim, ...], ...]


def change_devices(stuck: StuckPod) -> Iterator[Remedy]:
    """Changes of each request of the pod's claims that has no devices yet."""
    if stuck.rejected_early != PLUGIN and not stuck.is_blocked_by(PLUGIN):
        return
    claims = _claims_without_devices(stuck)
    for change in _changes_of(claims):
        found = _smallest(stuck, claims, change)
        if found is not None:
            yield found


def pairs_of_device_changes(stuck: StuckPod) -> Iterator[Remedy]:
    """Two of these changes that help together, of a pod that none helps alone."""
    if not stuck.is_blocked_by(PLUGIN):
        return
    claims = _claims_without_devices(stuck)
    # A lower number is a smaller change than a selector.
    changes = sorted(_loosening(claims), key=lambda each: not each.is_count)[:CHANGES_PAIRED]
    if len(changes) < 2:
        return
    rows = _rows_that_may_fit(stuck, claims, changes)
    if len(rows) == 0:
        return
    needed = _needed(stuck, claims, changes, rows)
    found = tried = 0
    for pair in combinations(changes, 2):
        left = np.zeros(len(rows), np.bool_)
        for each in changes:
            if each not in pair:
                left |= needed[each]
        if left.all():
            continue
        tried += 1
        both = _pair(stuck, claims, pair, _some(rows[~left], ROWS_OF_PAIR))
        if both is not None:
            yield both
            found += 1
        if tried == PAIRS_TRIED or found == PAIRS_FOUND:
            return


def template_of(pod: Pod, claim: ResourceClaim) -> str:
    """The template from which the claim was made for the pod; "" if it was not."""
    names = resource_claim_names(pod)
    for entry in pod.spec.resource_claims:
        if names.get(entry.name) == claim.metadata.name:
            return entry.resource_claim_template_name or ""
    return ""


def with_least_devices(stuck: StuckPod) -> tuple[ResourceClaim, ...]:
    """The pod's claims as they are with all changes made."""
    claims = _claims_without_devices(stuck)
    return _new(claims, _loosest(claims, list(_loosening(claims))))


# --- Claims ---------------------------------------------------------------------------------------


class _DeviceChange(NamedTuple):
    """A change of one request: one selector less, or fewer devices if `selector` is `_COUNT`."""

    claim: int
    request: int
    selector: int

    @property
    def is_count(self) -> bool:
        return self.selector == _COUNT

    def request_in(self, claims: _Claims) -> ExactDeviceRequest:
        exactly = claims[self.claim][0].spec.devices.requests[self.request].exactly
        assert exactly is not None
        return exactly

    def made(self, claims: _Claims, count: int = 1) -> _Claims:
        """The claims with this change; `count` is the lower number of devices."""
        old = self.request_in(claims)
        if self.is_count:
            new = msgspec.structs.replace(old, count=count)
        else:
            kept = (*old.selectors[: self.selector], *old.selectors[self.selector + 1 :])
            new = msgspec.structs.replace(old, selectors=kept)
        alike = tuple(with_request(each, self.request, new) for each in claims[self.claim])
        return (*claims[: self.claim], alike, *claims[self.claim + 1 :])


def _claims_without_devices(stuck: StuckPod) -> _Claims:
    pod, claims = stuck.pod, stuck.cluster.objects.resource_claims
    by_source: dict[tuple[str, str], list[ResourceClaim]] = {}
    for name in dict.fromkeys(resource_claim_names(pod).values()):
        claim = claims.get(pod.metadata.namespace, name)
        if claim is not None and claim.status.allocation is None:
            template = template_of(pod, claim)
            source = (template, "") if template else ("", name)
            by_source.setdefault(source, []).append(claim)
    return tuple(map(tuple, by_source.values()))


def _changes_of(claims: _Claims) -> Iterator[_DeviceChange]:
    for number, (claim, *_) in enumerate(claims):
        for index, request in enumerate(claim.spec.devices.requests):
            if request.exactly is None:
                continue
            if _is_for_a_number(request.exactly) and request.exactly.count > 1:
                yield _DeviceChange(number, index, _COUNT)
            for selector in range(len(request.exactly.selectors)):
                yield _DeviceChange(number, index, selector)


def _loosening(claims: _Claims) -> Iterator[_DeviceChange]:
    """Changes that ask for less: not those of requests for all devices, which are more without a
    selector."""
    return (each for each in _changes_of(claims) if _is_for_a_number(each.request_in(claims)))


def _is_for_a_number(exactly: ExactDeviceRequest) -> bool:
    # A request without a mode is for an exact number, and without a number for one.
    return exactly.allocation_mode in ("", EXACT_COUNT)


def _loosest(claims: _Claims, changes: Collection[_DeviceChange]) -> _Claims:
    """The claims with all of these changes, each as far as it goes."""
    # From the last selector of a request to its first, so that numbers stay valid.
    for change in sorted(changes, key=lambda each: -each.selector):
        claims = change.made(claims)
    return claims


def _new(before: _Claims, after: _Claims) -> tuple[ResourceClaim, ...]:
    """The claims that differ."""
    pairs = zip(before, after, strict=True)
    return tuple(claim for old, new in pairs if old is not new for claim in new)


def with_request(claim: ResourceClaim, index: int, exactly: ExactDeviceRequest) -> ResourceClaim:
    devices = claim.spec.devices
    changed = msgspec.structs.replace(devices.requests[index], exactly=exactly)
    requests = (*devices.requests[:index], changed, *devices.requests[index + 1 :])
    spec = msgspec.structs.replace(
        claim.spec, devices=msgspec.structs.replace(devices, requests=requests)
    )
    return msgspec.structs.replace(claim, spec=spec)


# --- One change -----------------------------------------------------------------------------------


def _smallest(
    stuck: StuckPod,
    claims: _Claims,
    change: _DeviceChange,
    *,
    beside: tuple[_DeviceChange, ...] = (),
) -> Remedy | None:
    """The smallest form of a change with which the pod fits; None if it fits with none.

    `beside` are changes that are made as well, as far as they go; the result is without them.
    """

    def fits(where: StuckPod, count: int) -> bool:
        return where.fits_with(*_new(claims, _loosest(change.made(claims, count), beside)))

    if not change.is_count:
        return _remedy(stuck, claims, change) if fits(stuck, 0) else None
    count = _largest_count(stuck, fits, change.request_in(claims).count)
    return _remedy(stuck, claims, change, count) if count > 0 else None


def _remedy(stuck: StuckPod, claims: _Claims, change: _DeviceChange, count: int = 0) -> Remedy:
    claim, old = claims[change.claim][0], change.request_in(claims)
    template = template_of(stuck.pod, claim)
    owner = f"the claim template {template}" if template else f"the claim {claim.metadata.name}"
    name = f"request {claim.spec.devices.requests[change.request].name} in {owner}"
    new = _new(claims, change.made(claims, count))
    if change.is_count:
        text = f"lower the number of devices of {name} from {old.count} to {count}"
        given_up = -(-100 * (old.count - count) // old.count)
        return make_remedy(LOWER_DEVICE_COUNT, text, stuck.pod, objects=new, amount=given_up)
    selector = old.selectors[change.selector]
    expression = "" if selector.cel is None else f" {selector.cel.expression}"
    text = f"drop the selector{expression} of {name}"
    return make_remedy(DROP_DEVICE_SELECTOR, text, stuck.pod, objects=new)


def _largest_count(stuck: StuckPod, fits: Callable[[StuckPod, int], bool], count: int) -> int:
    """The largest smaller number with which the pod fits; 0 if none does.

    Devices are searched node by node, so of many nodes a part is looked at first.
    """
    rows = np.arange(len(stuck.snapshot))[stuck.rows]
    found, some = 0, _some(rows, ROWS_FIRST)
    if len(some) < len(rows):
        part = StuckPod(stuck.cluster, stuck.pod, some)
        found = _bisect(lambda each: fits(part, each), 0, count)
    if found + 1 < count and fits(stuck, found + 1):
        found = _bisect(lambda each: fits(stuck, each), found + 1, count)
    return found


def _some(rows: IntpArray, most: int) -> IntpArray:
    return rows[:: max(-(-len(rows) // most), 1)]


def _bisect(fits: Callable[[int], bool], fitting: int, failing: int) -> int:
    """The largest number that fits, which is at least `fitting` and below `failing`."""
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting


# --- Two changes ----------------------------------------------------------------------------------


def _rows_that_may_fit(
    stuck: StuckPod, claims: _Claims, changes: Sequence[_DeviceChange]
) -> IntpArray:
    """Nodes that only devices keep the pod from, and on which it fits with all changes made."""
    blocked = StuckPod(stuck.cluster, stuck.pod, stuck.blockers.rows_within((PLUGIN,)))
    return _some(_feasible(blocked, claims, changes), ROWS_FIRST)


def _needed(
    stuck: StuckPod, claims: _Claims, changes: Sequence[_DeviceChange], rows: IntpArray
) -> dict[_DeviceChange, BoolArray]:
    """For each change bool[k]: nodes on which the pod does not fit with the others alone."""
    part = StuckPod(stuck.cluster, stuck.pod, rows)
    needed = dict[_DeviceChange, BoolArray]()
    for change in changes:
        others = [each for each in changes if each != change]
        needed[change] = ~np.isin(rows, _feasible(part, claims, others))
    return needed


def _feasible(stuck: StuckPod, claims: _Claims, changes: Collection[_DeviceChange]) -> IntpArray:
    with stuck.cluster.changed(*_new(claims, _loosest(claims, changes))):
        return stuck.feasible(stuck.pod)


def _pair(
    stuck: StuckPod, claims: _Claims, pair: tuple[_DeviceChange, _DeviceChange], rows: IntpArray
) -> Remedy | None:
    # As in `_loosest`; of two selectors the number of the second stays valid.
    first, second = sorted(pair, key=lambda each: -each.selector)
    cluster = stuck.cluster
    made = _smallest(StuckPod(cluster, stuck.pod, rows), claims, first, beside=(second,))
    if made is None:
        return None
    with cluster.changed(*made.put()):
        then = StuckPod(cluster, made.pod, rows)
        last = _smallest(then, _claims_without_devices(then), second)
    return None if last is None else joined(made, last)
