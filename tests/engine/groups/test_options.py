"""The configuration of the plugin Gangs."""

from typing import Any

import pytest
from tests.engine.groups.play import GANG, Play, own_mode

from kubestow.api.group import AS_UPSTREAM, GangOptions
from kubestow.errors import ConfigError


def options_of(*profiles: dict[str, Any], gates: tuple[str, ...] = GANG) -> GangOptions:
    first, *others = profiles
    others = [
        {"schedulerName": f"s{number}", **profile} for number, profile in enumerate(others, 1)
    ]
    with Play(config=first, profiles=others, gates=gates) as play:
        groups = play.world.scheduler.cache.groups
        return AS_UPSTREAM if groups is None else groups.options


def test_without_the_plugin_nothing_differs_from_upstream() -> None:
    assert options_of({}) == AS_UPSTREAM


def test_the_plugin_switches_everything_on_that_needs_no_value() -> None:
    options = options_of(own_mode())
    assert options == GangOptions(
        evicts_for_whole=True,
        waits_for_events=True,
        ignores_surplus=True,
        counts_finished=True,
        timeout_s=300.0,
        joins_pod_sets=True,
        evicts_whole=True,
    )


def test_all_profiles_share_the_options() -> None:
    same = own_mode(schedulingTimeout="20s")
    assert options_of(same, same).timeout_s == 20.0
    text = 'the plugin Gangs must be the same in all profiles; "s1" has another configuration'
    with pytest.raises(ConfigError, match=text):
        options_of(own_mode(), {})


@pytest.mark.parametrize(
    ("args", "text"),
    [
        pytest.param({"countFinshed": True}, 'unknown field "countFinshed"', id="unknown-field"),
        pytest.param({"countFinished": "yes"}, "expected true or false", id="wrong-type"),
        pytest.param({"schedulingTimeout": "soon"}, "schedulingTimeout", id="no-duration"),
        pytest.param(
            {"schedulingTimeout": "16m"}, "must be above zero and at most 15m0s", id="too-long"
        ),
        pytest.param({"schedulingTimeout": "0s"}, "must be above zero", id="zero"),
        pytest.param({"topologyLevels": ["a b"]}, r"topologyLevels\[0\]", id="no-label"),
        pytest.param({"topologyLevels": ["a", "a"]}, "Duplicate value", id="twice"),
        pytest.param(
            {"dialects": ["volcano"]},
            r'dialects\[0\]: Unsupported value: "volcano": supported values: '
            '"scheduling.x-k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1"',
            id="unknown-dialect",
        ),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        options_of(own_mode(**args))


@pytest.mark.parametrize(
    ("gates", "args", "missing"),
    [
        pytest.param((), {}, "GenericWorkload=true,GangScheduling=true", id="none"),
        pytest.param(("GenericWorkload",), {}, "GangScheduling=true", id="no-gangs"),
        pytest.param(
            GANG, {"topologyLevels": ["rack"]}, "TopologyAwareWorkloadScheduling=true", id="levels"
        ),
    ],
)
def test_the_plugin_needs_gates(gates: tuple[str, ...], args: dict[str, Any], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"add --feature-gates={missing}$"):
        options_of(own_mode(**args), gates=gates)
