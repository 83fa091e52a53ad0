"""Replays recorded scheduling decisions and counts the differences to ours.

`recording` finds and reads the files, `replay` follows a scenario pod by pod, `compare` compares
one decision, `report` counts. Whole runs of the scheduler are replayed by `runs`. Recordings of
v1.9 have a format of their own (`editions.v1_9.simulator`). The command line is in `service`.
"""

from kubestow.simulator.conformance.recording import (
    Recording,
    find_recordings,
    load_recording,
)
from kubestow.simulator.conformance.replay import replay_scenario
from kubestow.simulator.conformance.report import Difference, Report

__all__ = [
    "Difference",
    "Recording",
    "Report",
    "find_recordings",
    "load_recording",
    "replay_scenario",
]
