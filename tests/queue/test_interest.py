"""Listeners of an event, compared with a walk over all registrations (spec 02 §6.1, §8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.framework.events import (
    ASSIGNED_POD_ADD,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Resource,
)
from kubestow.framework.hints import HintRegistration
from kubestow.queue.interest import Interest

FULL = Action.ADD | Action.DELETE | Action.UPDATE


def node(action: Action, plugin: str) -> HintRegistration:
    return HintRegistration(ClusterEvent(Resource.NODE, action), plugin, None)


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        pytest.param((Resource.NODE, 9), (Resource.NODE, 8), True, id="Q6.1-1"),
        pytest.param((Resource.NODE, 8), (Resource.NODE, 32764), False, id="Q6.1-2"),
        pytest.param((Resource.POD, 32764), ("UnschedulablePod", 4096), True, id="Q6.1-3"),
        pytest.param((Resource.POD, 515), ("AssignedPod", 32764), False, id="Q6.1-4"),
        pytest.param((Resource.NODE, 32767), ("*", 32767), False, id="Q6.1-5"),
        pytest.param(("*", 32767), ("a.b.c", 1), True, id="Q6.1-6"),
        pytest.param(("*", 1), (Resource.NODE, 1), True, id="Q6.1-7"),
        pytest.param(
            (Resource.RESOURCE_CLAIM, 32765), (Resource.RESOURCE_CLAIM, 32764), True, id="Q6.1-8"
        ),
    ],
)
def test_listeners_are_those_whose_registration_matches(
    registered: tuple[str, int], incoming: tuple[str, int], matches: bool
) -> None:
    registration = ClusterEvent(registered[0], Action(registered[1]))
    interest = Interest({"p": [HintRegistration(registration, "A", None)]})
    audience = interest.audience_of(ClusterEvent(incoming[0], Action(incoming[1])))
    listeners = audience.listeners_of("p", interest.mask_of(["A"]))
    assert listeners is not None
    assert bool(listeners.all) is matches
    # A wildcard applies to all pods without registrations.
    assert audience.is_interesting is (matches or audience.is_wildcard)


def test_an_event_is_interesting_if_any_profile_registered_for_it() -> None:
    interest = Interest({"one": [], "two": [node(Action.ADD, "A")]})
    assert interest.audience_of(NODE_ADD).is_interesting
    assert not interest.audience_of(ASSIGNED_POD_ADD).is_interesting
    assert interest.audience_of(UNSCHEDULABLE_TIMEOUT).is_interesting
    assert Interest({}).audience_of(UNSCHEDULABLE_TIMEOUT).is_interesting


def test_registrations_count_for_their_own_profile() -> None:
    interest = Interest({"one": [node(Action.ADD, "B")], "two": [node(Action.ADD, "A")]})
    audience = interest.audience_of(NODE_ADD)
    mask = interest.mask_of(["A"])
    assert audience.may_help("two", mask)
    assert not audience.may_help("one", mask)
    assert audience.may_help("unknown", mask)
    assert audience.listeners_of("unknown", mask) is None


def test_pods_without_rejectors_and_wildcards_are_always_candidates() -> None:
    interest = Interest({"p": [node(Action.ADD, "A")]})
    assert interest.audience_of(NODE_ADD).may_help("p", 0)
    assert interest.audience_of(UNSCHEDULABLE_TIMEOUT).may_help("p", interest.mask_of(["X"]))


def test_registrations_of_a_gate_count_in_any_profile() -> None:
    interest = Interest({"one": [node(Action.ADD, "A")], "two": [node(Action.ADD, "A")]})
    assert interest.events_of("A") == (NODE_ADD,)
    assert interest.events_of("B") == ()
    assert interest.audience_of(NODE_ADD).concerns_gated_by("A")
    assert not interest.audience_of(NODE_ADD).concerns_gated_by("B")
    assert not interest.audience_of(ASSIGNED_POD_ADD).concerns_gated_by("A")
    assert interest.audience_of(UNSCHEDULABLE_TIMEOUT).concerns_gated_by("B")


PLUGINS = ("A", "B", "C", "D")
EVENTS = st.builds(
    ClusterEvent,
    st.sampled_from((Resource.NODE, Resource.POD, Resource.ASSIGNED_POD, Resource.WILDCARD)),
    st.sampled_from((*Action, Action.UPDATE, Action.ALL, FULL)),
)
HINT_MAPS = st.dictionaries(
    st.sampled_from(("p", "q")),
    st.lists(st.builds(HintRegistration, EVENTS, st.sampled_from(PLUGINS), st.none()), max_size=8),
)


@given(HINT_MAPS, EVENTS, st.sets(st.sampled_from(PLUGINS)), st.sampled_from(("p", "q")))
def test_masks_give_what_a_walk_over_all_registrations_gives(
    hint_maps: dict[str, list[HintRegistration]],
    event: ClusterEvent,
    rejectors: set[str],
    profile: str,
) -> None:
    interest = Interest(hint_maps)
    audience, mask = interest.audience_of(event), interest.mask_of(rejectors)
    assert audience.is_interesting == (
        event.is_wildcard
        or any(one.event.matches(event) for many in hint_maps.values() for one in many)
    )
    listeners = audience.listeners_of(profile, mask)
    if profile not in hint_maps:
        assert listeners is None
        return
    expected = [
        one.plugin
        for one in hint_maps[profile]
        if one.event.matches(event) and one.plugin in rejectors
    ]
    assert listeners is not None
    assert [listener.plugin for listener in listeners.all] == expected
    if rejectors and not event.is_wildcard:
        assert audience.may_help(profile, mask) == bool(expected)
