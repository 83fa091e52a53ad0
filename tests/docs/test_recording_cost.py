"""The script that measures what a recording costs runs."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from recording_cost import TURN_PODS, measure  # noqa: E402  (found through the line above)


def test_both_sides_are_measured() -> None:
    found = measure(nodes=3, pods=TURN_PODS)
    assert found["microseconds_a_pod"] > 0
    assert abs(found["share"] - found["recording"] / found["microseconds_a_pod"]) < 0.01
