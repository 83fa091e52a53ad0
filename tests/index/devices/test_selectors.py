"""Devices seen through expressions (spec 08 B8)."""

import gc
import weakref
from concurrent.futures import Future
from itertools import count
from typing import Any, NoReturn

import msgspec
import pytest

from kubestow.api.device import Device, DeviceAttribute
from kubestow.index.devices.inventory import PublishedDevice, PublishedSlice
from kubestow.index.devices.selectors import (
    COSTLY_MATCHES_MAX,
    MATCHES_MAX,
    SelectorFailure,
    selects,
)
from kubestow.testing.devices import make_device, make_slice

DEVICE = make_device(
    "dev",
    attributes={"model": "a100", "d.com/numa": 1, "fw": "v1.2.0", "o.org/secure": True},
    capacity={"memory": "40Gi"},
)


def publish(device: Device, *, allows_lists: bool = False) -> PublishedDevice:
    return PublishedSlice(make_slice(device), allows_lists=allows_lists).devices[0]


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        pytest.param('device.driver == "d.com"', True, id="B8-driver"),
        pytest.param(
            'device.attributes["d.com"].model == "a100" && device.attributes["d.com"].numa < 2',
            True,
            id="B8-attributes",
        ),
        pytest.param('device.attributes["o.org"].secure', True, id="B8-dynamic-bool"),
        pytest.param(
            'device.attributes["d.com"].fw.isGreaterThan(semver("1.1.9"))', True, id="B8-version"
        ),
        pytest.param(
            'device.capacity["d.com"].memory.compareTo(quantity("40Gi")) >= 0',
            True,
            id="B8-quantity",
        ),
        pytest.param('"y" in device.attributes["x.io"]', False, id="B8-id-in-unknown-domain"),
        pytest.param('"x.io" in device.attributes', False, id="B8-unknown-domain"),
        pytest.param('has(device.attributes["d.com"].rev)', False, id="B8-has"),
        pytest.param("device.allowMultipleAllocations", False, id="B8-not-shareable"),
        pytest.param(
            'device.attributes["d.com"].rev == "x" || device.driver == "d.com"',
            True,
            id="B8-error-is-dropped",
        ),
        pytest.param('device.attributes["d.com"].numa == "1"', False, id="B8-types-differ"),
        pytest.param('device.attributes["d.com"].model.includes("a100")', True, id="includes"),
        pytest.param('"domain" in device.capacity', False, id="capacity-domain"),
        pytest.param(f'"{"a" * 36}!".matches("(a+)+$")', False, id="pattern-that-backtracks"),
        pytest.param("lists.range(49).includes(47)", True, id="includes-among-the-first"),
        pytest.param('device.capacity["x.io"].size() == 0', True, id="empty-domain"),
    ],
)
def test_expression_selects(expression: str, result: bool) -> None:
    assert selects(expression, publish(DEVICE)) is result


_NOT_BOOL = "CEL runtime error: CEL result of type"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        pytest.param(
            'device.attributes["x.io"].y', "CEL runtime error: no such key: y", id="B8-missing"
        ),
        pytest.param(
            'device.attributes["a.com"].x > 1',
            "CEL runtime error: no such key: x",
            id="B13-9-missing-domain",
        ),
        pytest.param(
            "lists.range(49).includes(48)",
            "CEL runtime error: 'includes' function cannot be applied to lists longer than "
            "48 values",
            id="includes-of-too-many",
        ),
        pytest.param(
            "lists.range(300000).all(i, true) || true",
            "CEL runtime error: operation cancelled: actual cost limit exceeded",
            id="B8-cost",
        ),
        pytest.param(
            "1",
            "CEL compile error: must evaluate to bool or the unknown type, not int",
            id="B8-not-a-condition",
        ),
        pytest.param(
            'device.attributes["d.com"].model',
            f"{_NOT_BOOL} string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
            id="B8-text",
        ),
        pytest.param(
            'device.attributes["d.com"].numa',
            f"{_NOT_BOOL} int could not be converted to bool: "
            "unsupported type conversion from 'int' to bool",
            id="B8-int",
        ),
        pytest.param(
            'device.attributes["d.com"].fw',
            f"{_NOT_BOOL} kubernetes.Semver could not be converted to bool: "
            "type conversion error from 'Semver' to 'bool'",
            id="B8-version",
        ),
    ],
)
def test_expression_fails(expression: str, text: str) -> None:
    published = publish(DEVICE)
    for _ in range(2):  # The second answer comes from memory.
        with pytest.raises(SelectorFailure) as caught:
            selects(expression, published)
        assert str(caught.value) == text


def test_unknown_fields_of_the_device_do_not_compile() -> None:
    with pytest.raises(SelectorFailure, match="undefined field 'name'"):
        selects("device.name == 'a'", publish(DEVICE))


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (DeviceAttribute(), "attribute odd: unsupported attribute value"),
        (
            DeviceAttribute(version_value="1"),
            "attribute odd: parse semantic version: No Major.Minor.Patch elements found",
        ),
    ],
)
def test_one_odd_attribute_fails_every_selector(attribute: DeviceAttribute, text: str) -> None:
    published = publish(Device(name="dev", attributes={"odd": attribute}))
    with pytest.raises(SelectorFailure, match=f"^CEL runtime error: {text}$"):
        selects("true", published)


def test_lists_can_be_asked_for_what_they_include() -> None:
    device = Device(name="dev", attributes={"tags": DeviceAttribute(string_values=("a", "b"))})
    expression = 'device.attributes["d.com"].tags.includes("b")'
    assert selects(expression, publish(device, allows_lists=True))


def test_lists_need_their_gate() -> None:
    device = Device(name="dev", attributes={"tags": DeviceAttribute(string_values=("a", "b"))})
    text = "^CEL runtime error: attribute tags: unsupported attribute value$"
    with pytest.raises(SelectorFailure, match=text):
        selects("true", publish(device))


def test_answers_are_asked_once_per_content() -> None:
    published = publish(DEVICE)
    expression = 'device.driver == "d.com"'
    assert selects(expression, published)
    published.content.matches[expression] = False
    assert not selects(expression, published)
    assert not selects(expression, publish(msgspec.structs.replace(DEVICE, name="other")))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(publish(Device(name="dev")), id="attributes"),
        pytest.param(publish(DEVICE, allows_lists=True), id="gate-of-lists"),
        pytest.param(
            publish(msgspec.structs.replace(DEVICE, allow_multiple_allocations=True)),
            id="shareable",
        ),
        pytest.param(
            publish(
                msgspec.structs.replace(
                    DEVICE, capacity=make_device("d", capacity={"memory": "7Mi"}).capacity
                )
            ),
            id="capacity",
        ),
    ],
)
def test_devices_that_expressions_distinguish_share_no_answers(other: PublishedDevice) -> None:
    assert publish(DEVICE).content is publish(DEVICE).content
    assert other.content is not publish(DEVICE).content


def test_contents_are_freed_with_their_last_device() -> None:
    published = publish(Device(name="dev", attributes={"n": DeviceAttribute(int_value=771)}))
    content = weakref.ref(published.content)
    del published
    gc.collect()
    assert content() is None


def test_answers_are_kept_with_the_device_up_to_a_limit() -> None:
    published = publish(DEVICE)
    for number in range(MATCHES_MAX + 5):
        assert selects(f'device.driver == "d.com" || {number} > 0', published)
        assert len(published.content.matches) <= MATCHES_MAX


# --- expressions that take long ---


def costly(number: int) -> str:
    """About a tenth of the limit."""
    values = "[0,1,2,3,4,5,6,7,8,9]"
    return f"{values}.all(a, {values}.all(b, {values}.all(c, {values}.all(d, a + {number} > 0))))"


_NUMBERS = count()


def publish_new() -> PublishedDevice:
    """A device about which nothing has been asked."""
    return publish(make_device("dev", attributes={"number": next(_NUMBERS)}))


class WaitsError(Exception):
    def __init__(self, awaited: "Future[Any]") -> None:
        self.awaited = awaited


class Waits:
    may_wait = True

    def wait_for(self, awaited: "Future[Any]") -> NoReturn:
        raise WaitsError(awaited)


def test_a_costly_expression_is_evaluated_beside_the_attempt() -> None:
    device = publish_new()
    with pytest.raises(WaitsError) as raised:
        selects(costly(1), device, Waits())
    raised.value.awaited.result()
    assert selects(costly(1), device, Waits())
    assert device.content.costly_matches == {costly(1): True}


def test_a_cheap_expression_is_evaluated_at_once() -> None:
    device = publish_new()
    assert selects('device.driver == "d.com"', device, Waits())
    assert not device.content.costly_matches


def test_an_attempt_that_cannot_wait_evaluates_at_once() -> None:
    device = publish_new()
    assert selects(costly(1), device)
    assert not device.content.costly_matches


def test_the_limit_of_the_cost_counts_for_costly_expressions() -> None:
    values = "[0,1,2,3,4,5,6,7,8,9]"
    over = f"{values}.all(x, {costly(1)} && {costly(2)})"
    device = publish_new()
    with pytest.raises(WaitsError) as raised:
        selects(over, device, Waits())
    raised.value.awaited.result()
    with pytest.raises(SelectorFailure, match="actual cost limit exceeded"):
        selects(over, device, Waits())


def test_costly_answers_are_kept_up_to_a_limit() -> None:
    device = publish_new()
    device.content.costly_matches |= {
        f"expression {number}": True for number in range(COSTLY_MATCHES_MAX)
    }
    with pytest.raises(WaitsError) as raised:
        selects(costly(1), device, Waits())
    raised.value.awaited.result()
    assert [*device.content.costly_matches] == [costly(1)]
