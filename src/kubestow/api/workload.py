"""The objects that own or group pods: namespaces, services, controllers, budgets, priorities."""

from datetime import datetime

from kubestow.api.meta import ApiObject, Int32, LabelSelector, Object


class Namespace(ApiObject, frozen=True, kw_only=True):
    pass


class ServiceSpec(Object, frozen=True, kw_only=True):
    # None matches no pod, {} matches every pod of the namespace (spec 01 §14).
    selector: dict[str, str] | None = None


class Service(ApiObject, frozen=True, kw_only=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Object, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    selector: dict[str, str] = {}


class ReplicationController(ApiObject, frozen=True, kw_only=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Object, frozen=True, kw_only=True):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None


class ReplicaSet(ApiObject, frozen=True, kw_only=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSet(ApiObject, frozen=True, kw_only=True):
    # A StatefulSet's spec has the two fields a ReplicaSet's has, and the scheduler reads no other.
    spec: ReplicaSetSpec = ReplicaSetSpec()


class PodDisruptionBudgetSpec(Object, frozen=True, kw_only=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Object, frozen=True, kw_only=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, datetime | None] = {}


class PodDisruptionBudget(ApiObject, frozen=True, kw_only=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(ApiObject, frozen=True, kw_only=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
