"""DeviceTaintRules add taints to published devices (spec 12 §10.1)."""

from typing import Any

import msgspec
import pytest

from kubestow.api.decode import convert
from kubestow.api.device import DeviceTaintRule, ResourceSlice
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots
from kubestow.index.devices.taint_rules import TaintRules
from kubestow.testing.devices import make_device, make_slice


def make_rule(
    name: str = "rule", *, effect: str = "NoSchedule", **selector: str
) -> DeviceTaintRule:
    """A rule for devices of this driver, pool and name; for all if nothing is given."""
    spec = {"deviceSelector": selector, "taint": {"key": name, "effect": effect}}
    return convert(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


NO_SELECTOR = convert(
    DeviceTaintRule, {"metadata": {"name": "rule"}, "spec": {"taint": {"key": "rule"}}}
)


class Lab:
    def __init__(self, *rules: DeviceTaintRule) -> None:
        self.rules = ObjectStore[DeviceTaintRule]()
        for rule in rules:
            self.rules.put(rule)
        store = ObjectStore[ResourceSlice]()
        store.put(
            make_slice(
                make_device("a", taints=("own=1:NoExecute",)), make_device("b"), pool="p", name="s1"
            )
        )
        store.put(make_slice(make_device("a"), pool="q", name="s2"))
        self.slots = NodeSlots()
        self.inventory = DeviceInventory(store, self.slots)
        self.taint_rules = TaintRules(self.rules, self.inventory)

    def taints(self) -> dict[str, list[str]]:
        """The keys of the taints of each tainted device."""
        return {
            f"{device.pool[1]}/{device.device.name}": [taint.key for taint in device.taints]
            for published in self.inventory
            for device in published.devices
            if device.taints
        }


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(make_rule(), ["p/a", "p/b", "q/a"], id="an-empty-selector-matches-all"),
        # The recording dra-new-0028 has such a rule, and its taint acts.
        pytest.param(NO_SELECTOR, ["p/a", "p/b", "q/a"], id="no-selector-matches-all"),
        pytest.param(make_rule(driver="d.com"), ["p/a", "p/b", "q/a"], id="driver"),
        pytest.param(make_rule(driver="other"), [], id="other-driver"),
        pytest.param(make_rule(pool="q"), ["q/a"], id="pool"),
        pytest.param(make_rule(device="a"), ["p/a", "q/a"], id="device"),
        pytest.param(make_rule(pool="p", device="a"), ["p/a"], id="all-given-must-match"),
        pytest.param(make_rule(driver="d.com", pool="q", device="b"), [], id="one-does-not-match"),
    ],
)
def test_a_rule_taints_what_it_selects(rule: DeviceTaintRule, expected: list[str]) -> None:
    tainted = [device for device, taints in Lab(rule).taints().items() if "rule" in taints]
    assert tainted == expected


def test_taints_of_rules_follow_those_of_the_driver() -> None:
    assert Lab(make_rule("r1"), make_rule("r2", pool="p")).taints() == {
        "p/a": ["own", "r1", "r2"],
        "p/b": ["r1", "r2"],
        "q/a": ["r1"],
    }


def test_a_rule_that_changes_or_goes_no_longer_taints() -> None:
    lab = Lab(make_rule(pool="p"))
    lab.rules.put(make_rule(pool="q"))
    assert lab.taints() == {"p/a": ["own"], "q/a": ["rule"]}
    lab.rules.remove("rule")
    assert lab.taints() == {"p/a": ["own"]}


def test_without_rules_devices_have_their_own_taints() -> None:
    lab = Lab()
    assert lab.taints() == {"p/a": ["own"]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, make_rule(), ["s1", "s2"], id="added"),
        pytest.param(make_rule(pool="q"), None, ["s2"], id="deleted"),
        pytest.param(make_rule(pool="q"), make_rule(), ["s1"], id="selects-more"),
        pytest.param(make_rule(), make_rule(effect="None"), ["s1", "s2"], id="other-taint"),
        pytest.param(make_rule(), make_rule(), [], id="unchanged"),
        pytest.param(None, make_rule(pool="gone"), [], id="selects-nothing"),
    ],
)
def test_slices_whose_taints_change_are_those_of_an_event(
    old: Any, new: Any, expected: Any
) -> None:
    changed = Lab().taint_rules.changed_slices(old, new)
    assert [each.name for each in changed] == expected


def test_a_new_status_of_a_rule_changes_no_slice() -> None:
    rule = make_rule()
    newer = msgspec.structs.replace(
        rule, metadata=msgspec.structs.replace(rule.metadata, resource_version="2")
    )
    assert not list(Lab().taint_rules.changed_slices(rule, newer))
