"""DefaultPreemption of v1.37 (spec 12 §5.1, §9)."""

from kubestow.editions.v1_37.api.disruption import BudgetTableV137
from kubestow.editions.v1_37.plugins.registrations import of_assigned_pods
from kubestow.framework.events import Registrations
from kubestow.framework.status import Code, Status
from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.plugins.default_preemption.executor import Executor


class ExecutorV137(Executor):
    """A preemptor whose last victim was only waiting to be bound is tried at once (§9.3)."""

    activates_after_memory = True


class DefaultPreemptionV137(DefaultPreemption):
    budgets_type = BudgetTableV137
    executor_type = ExecutorV137

    def events(self) -> Registrations:
        return of_assigned_pods(super().events())

    def _nomination(self, node_name: str, victim_count: int) -> Status:
        return Status(
            Code.SUCCESS,
            "preemption: found a potential placement for pod on node "
            f"{node_name}, preempting {victim_count} victims",
        ).with_plugin(self.name)
