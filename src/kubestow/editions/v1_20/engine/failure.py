"""What v1.17 and v1.20 reported of a failed attempt (spec 04 §19.2).

The text has only the reasons of the filters, without those of preemption. Every failure of a
scheduling cycle had the reason Unschedulable, also an error; those of a binding SchedulerError.
"""

from typing import ClassVar

from kubestow.editions.v1_20.engine.expiry import ExpiringBinder
from kubestow.engine.bind import Placement
from kubestow.engine.decision import FitError
from kubestow.engine.failure import (
    REASON_SCHEDULER_ERROR,
    REASON_UNSCHEDULABLE,
    FailureHandler,
)
from kubestow.errors import PluginError
from kubestow.framework.diagnosis import fit_error_text
from kubestow.framework.status import Code, Status


class BindingCycleError(PluginError):
    """An attempt failed after its node was chosen."""


class FailureHandler120(FailureHandler):
    def _message(self, status: Status) -> str:
        error = status.as_error()
        if not isinstance(error, FitError):
            return status.message
        diagnosis = error.diagnosis
        return fit_error_text(
            diagnosis.node_count,
            diagnosis.reason_counts(),
            pre_filter_message=diagnosis.pre_filter_message,
        )

    def _reason(self, status: Status) -> str:
        if isinstance(status.as_error(), BindingCycleError):
            return REASON_SCHEDULER_ERROR
        return REASON_UNSCHEDULABLE


class Binder120(ExpiringBinder):
    """`rejected` is the beginning of the text when the binding itself failed."""

    rejected: ClassVar[str] = "binding rejected: "

    async def _write_binding(self, placement: Placement) -> Status | None:
        status = await super()._write_binding(placement)
        if status is None or status.is_success or status.is_rejected:
            return status
        return _failed(self.rejected + self._binding_error(status), status)

    def _fail(self, placement: Placement, status: Status) -> None:
        if not status.is_rejected and not isinstance(status.as_error(), BindingCycleError):
            status = _failed(status.message, status)
        super()._fail(placement, status)

    def _binding_error(self, status: Status) -> str:
        return status.message


def _failed(text: str, status: Status) -> Status:
    return Status(Code.ERROR, error=BindingCycleError(text), plugin=status.plugin)
