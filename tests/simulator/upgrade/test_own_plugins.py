"""Plugins of the user whose registrations mean something else in the other version."""

import pytest

from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.plugin import Action, NodeFilter, Resource, on
from kubestow.plugins.loading import LoadedPlugins
from kubestow.simulator.upgrade.own_plugins import plugin_findings
from kubestow.simulator.upgrade.pair import EditionPair, EditionSide, pair_of
from kubestow.simulator.upgrade.report import Effect
from kubestow.testing import ManualClock

CONFIG = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {filter: {enabled: [{name: Own}]}}
"""
Found = list[tuple[int | None, Effect, str]]


def pair_with(resources: list[str], *, is_back: bool) -> EditionPair:
    class Own(NodeFilter):
        name = "Own"

        def filter_node(self, pod: object, node: object) -> bool:
            return True

        def events(self) -> object:
            return [on(resource, Action.ADD) for resource in resources]

    def side(version: str) -> EditionSide:
        gates = FeatureGates({}, edition_named(version))
        registry = {**rules_of(gates.edition).registry, "Own": Own}
        return EditionSide(gates, LoadedPlugins(decode_config(CONFIG, gates), registry))

    versions = ("v1.37", "v1.36") if is_back else ("v1.36", "v1.37")
    before, after = map(side, versions)
    return pair_of([], before, after, ManualClock(), is_back=is_back)


@pytest.mark.parametrize(
    ("resources", "is_back", "found"),
    [
        ([Resource.POD], False, []),
        ([Resource.ASSIGNED_POD], False, []),
        (["UnschedulablePod"], False, [(None, Effect.WOKEN)]),
        ([Resource.NODE], False, [(5, Effect.NOTE)]),
        (["UnscheduledPod", "TargetPod"], True, [(None, Effect.WOKEN)] * 2),
        (["UnschedulablePod"], True, []),
    ],
)
def test_events_that_are_gone(
    resources: list[str], found: list[tuple[int | None, Effect]], *, is_back: bool
) -> None:
    findings = list(plugin_findings(pair_with(resources, is_back=is_back), {"Own"}))
    assert [(each.change, each.effect) for each in findings] == found
    assert {each.where for each in findings} <= {"plugin Own"}


def test_the_names_that_are_there_instead_are_said() -> None:
    (finding,) = plugin_findings(pair_with(["UnschedulablePod"], is_back=False), {"Own"})
    assert finding.text == (
        "registered for events of UnschedulablePod, which v1.37 does not have; it has TargetPod, "
        "UnscheduledPod, and Pod means all of them"
    )


def test_plugins_that_are_built_in_are_not_named() -> None:
    assert list(plugin_findings(pair_with([Resource.NODE], is_back=False), set())) == []
