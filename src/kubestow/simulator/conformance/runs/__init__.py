"""Replays whole runs of the recorded scheduler: steps, rounds, and what they leave behind.

`world` is the cluster and a complete scheduler, `api` serves its writes one at a time in the order
of the recording, `replay` follows the steps, `observed` collects what the scheduler does and
`compare` compares it. Time is moved by the replay only (`stepped_loop`).
"""

from kubestow.simulator.conformance.runs.replay import replay_run

__all__ = ["replay_run"]
