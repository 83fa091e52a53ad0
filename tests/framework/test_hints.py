"""Which events a profile's plugins are registered for (spec 02 §6.4, §7.1)."""

from collections.abc import Sequence

import pytest

from kubestow.api.pod import Pod
from kubestow.errors import ConfigError, PluginError
from kubestow.framework.events import Action, EventRegistration, Hint, Resource, on
from kubestow.framework.hints import (
    HintRegistration,
    build_hint_map,
    can_reject,
)

DEFAULTS = [
    "PodAll",
    "NodeAll",
    "PersistentVolumeAll",
    "PersistentVolumeClaimAll",
    "storage.k8s.io/CSINodeAll",
    "storage.k8s.io/CSIDriverAll",
    "storage.k8s.io/CSIStorageCapacityAll",
    "storage.k8s.io/StorageClassAll",
    "resource.k8s.io/ResourceClaimAll",
    "resource.k8s.io/DeviceClassAll",
]


class Filters:
    """A plugin that can reject pods and says nothing on events."""

    name = "Filters"

    def filter(self) -> None: ...


class Registers(Filters):
    name = "Registers"

    def __init__(self, *registrations: EventRegistration) -> None:
        self.registrations = registrations

    def events(self) -> Sequence[EventRegistration]:
        return self.registrations


def hint(pod: Pod, old: object, new: object) -> Hint:
    return Hint.SKIP


def shown(hint_map: Sequence[HintRegistration]) -> list[tuple[str, str]]:
    return [(registration.plugin, registration.event.label) for registration in hint_map]


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_filter", "filter", "reserve", "permit"])
def test_a_plugin_that_can_reject_pods_is_asked(point: str) -> None:
    plugin = type("Any", (), {"name": "Any", point: lambda self: None})()
    assert can_reject(plugin)
    assert len(build_hint_map([plugin])) == len(DEFAULTS)


@pytest.mark.parametrize("point", ["score", "pre_score", "bind", "less", "post_filter"])
def test_a_plugin_that_cannot_registers_nothing(point: str) -> None:
    plugin = type(
        "Any",
        (),
        {"name": "Any", point: lambda self: None, "events": lambda self: [on("Node", Action.ADD)]},
    )()
    assert not can_reject(plugin)
    assert build_hint_map([plugin]) == ()


def test_a_plugin_without_events_gets_the_default_list() -> None:
    hint_map = build_hint_map([Filters()])
    assert shown(hint_map) == [("Filters", label) for label in DEFAULTS]
    assert all(registration.hint is None for registration in hint_map)


def test_a_plugin_that_needs_no_events_gets_none() -> None:
    assert build_hint_map([Registers()]) == ()


def test_a_plugin_that_fails_aborts_the_start() -> None:
    class Broken(Filters):
        def events(self) -> Sequence[EventRegistration]:
            raise PluginError("no events today")

    text = 'registering events of plugin "Filters": PluginError: no events today'
    with pytest.raises(ConfigError, match=text):
        build_hint_map([Broken()])


def test_hints_are_kept_in_the_order_of_registration() -> None:
    plugin = Registers(on("Pod", Action.DELETE, hint), on("Node", Action.DELETE))
    first, second = build_hint_map([plugin])
    assert (first.plugin, first.event.label, first.hint) == ("Registers", "PodDelete", hint)
    assert second.hint is None


@pytest.mark.parametrize(
    ("registrations", "is_added"),
    [
        pytest.param([on(Resource.NODE, Action.ADD, hint)], True, id="add"),
        pytest.param(
            [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, hint)], True, id="add-label"
        ),
        pytest.param(
            [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, hint)], False, id="has-taint"
        ),
        pytest.param(
            [on(Resource.NODE, Action.ADD), on(Resource.NODE, Action.UPDATE_NODE_TAINT)],
            False,
            id="has-taint-apart",
        ),
        pytest.param([on(Resource.NODE, Action.UPDATE_NODE_LABEL)], False, id="no-add"),
        pytest.param([on(Resource.POD, Action.ADD)], False, id="not-a-node"),
        pytest.param([on(Resource.NODE, Action.ALL)], False, id="all"),
    ],
)
def test_a_registration_for_new_nodes_includes_taints(
    registrations: list[EventRegistration], is_added: bool
) -> None:
    automatic = build_hint_map([Registers(*registrations)])[len(registrations) :]
    assert [(one.event.label, one.hint) for one in automatic] == (
        [("NodeUpdateNodeTaint", None)] if is_added else []
    )


def test_extenders_come_first_as_a_plugin_of_their_own() -> None:
    hint_map = build_hint_map([Registers(on("Pod", Action.DELETE))], has_extenders=True)
    assert shown(hint_map) == [
        *(("Extender", label) for label in DEFAULTS),
        ("Registers", "PodDelete"),
    ]
