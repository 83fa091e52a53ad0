"""With LoadAware on and no measurements, not one recorded decision differs."""

import copy
from pathlib import Path

import msgspec
import pytest
from tests.simulator.conformance.test_recorded_decisions import FILES, replay

from kubestow.simulator.conformance import load_recording


def with_plugin(scenario):
    changed = copy.deepcopy(scenario)
    for profile in (changed.setdefault("config", {}), *changed.get("otherProfiles", ())):
        plugins = profile.setdefault("plugins", {})
        points = plugins.setdefault("multiPoint", {})
        points["enabled"] = [*(points.get("enabled") or []), {"name": "LoadAware"}]
    return changed


def is_list_with_plugin(difference):
    """Whether the plugin's name is all that differs in a list of names, or of weights by name."""
    ours = difference.got
    if isinstance(ours, dict):
        return difference.expected == {key: ours[key] for key in ours if key != "LoadAware"}
    return isinstance(ours, list) and difference.expected == [
        name for name in ours if name != "LoadAware"
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_recordings_replay_without_differences(path: Path) -> None:
    recording = load_recording(path)
    scenarios = [with_plugin(scenario) for scenario in recording.scenarios[3::32]]
    report = replay(msgspec.structs.replace(recording, scenarios=scenarios))
    # The plugin is in lists of plugins, which are recorded as well, and in nothing else.
    assert [found for found in report.differences if not is_list_with_plugin(found)] == []
    attempts = sum(len(scenario["expected"]) for scenario in scenarios)
    assert report.counts(recording.family, "pods").compared == attempts > 0
