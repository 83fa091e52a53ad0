"""The result of a plain simulation as rows of a run, so that reports have one source.

A simulation has no course: there are no samples, every pod exists from the start, and the time at
which a running pod was preempted is not recorded.
"""

from kubestow.simulator.results import (
    RUNNING,
    Change,
    NodeRow,
    PodRow,
    RunResult,
)
from kubestow.simulator.simulation import NodeOutcome, PodOutcome, SimulationResult


def run_of_simulation(result: SimulationResult, *, name: str = "simulation") -> RunResult:
    """The rows of a simulation; what it does not record is empty."""
    return RunResult(
        name=name,
        pods=[_pod_row(pod) for pod in result.pods],
        nodes=[_node_row(node) for node in result.nodes],
        samples=[],
        changes=[
            Change(
                time_s=result.virtual_duration_s,
                kind="preemption",
                subject=pod,
                detail="ran before the simulation; at this time at the latest",
            )
            for pod in result.evicted
        ],
        virtual_duration_s=result.virtual_duration_s,
        is_partial=not result.has_settled,
        failed_attempts=result.failed_attempts,
    )


def _pod_row(pod: PodOutcome) -> PodRow:
    return PodRow(
        namespace=pod.namespace,
        name=pod.name,
        owner=pod.owner,
        priority=pod.priority,
        requests=pod.requests,
        # The other outcomes of a simulation have the names of those of a run.
        outcome=RUNNING if pod.outcome == "Scheduled" else pod.outcome,
        node=pod.node,
        created_s=0.0,
        scheduled_s=pod.scheduled_after_s,
        attempts=pod.attempts,
        reason=pod.reason,
        message=pod.message,
    )


def _node_row(node: NodeOutcome) -> NodeRow:
    return NodeRow(
        name=node.name,
        zone=node.zone,
        pods=node.pods,
        allowed_pods=node.allowed_pods,
        allocatable=node.allocatable,
        requested=node.requested,
    )
