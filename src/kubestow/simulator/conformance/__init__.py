"""Replays recorded scheduling decisions and counts where ours differ.

`recording` reads the files, `replay` follows a scenario pod by pod, `compare` sets ours beside
theirs,
`report` counts. The command line is in `service`.
"""

from kubestow.simulator.conformance.recording import Recording, load_recording
from kubestow.simulator.conformance.replay import replay_scenario
from kubestow.simulator.conformance.report import Difference, Report

__all__ = ["Difference", "Recording", "Report", "load_recording", "replay_scenario"]
