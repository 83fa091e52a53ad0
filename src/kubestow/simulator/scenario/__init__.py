"""Days of a cluster in virtual time: what arrives, what is changed, and what became of it.

A scenario is a file (`reading`) or is made by a program (`scenario`); `run` plays it with the
controllers and simulated kubelets of an embedded cluster, and gives a `RunResult`. One placement of
what files have is a scenario as well (`stages.placing`).
"""

from kubestow.simulator.scenario.scenario import Arrival, ArrivalSource, Progress, Scenario

__all__ = ["Arrival", "ArrivalSource", "Progress", "Scenario"]
