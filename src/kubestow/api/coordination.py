"""What the scheduler writes besides pods: leases, events, bindings."""

from datetime import datetime

from kubestow.api.meta import ApiObject, Object, ObjectReference


class LeaseSpec(Object, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(ApiObject, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


class EventSeries(Object, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: datetime | None = None


class Event(ApiObject, frozen=True, kw_only=True):
    """An events.k8s.io/v1 Event."""

    event_time: datetime | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""


class Binding(ApiObject, frozen=True, kw_only=True):
    target: ObjectReference = ObjectReference()
