"""The fields of the messages that `kubectl create` and Go clients send, by their numbers.

One line per message: number, JSON name, type. Types are s(tring), i(nteger), b(ool), y (bytes),
T(ime), U (a time with microseconds), Q(uantity), I (an integer or a string), `-` for what a server
ignores, or another message; `*` is a list, `{}` a map from strings, and a `?` after the type says
that zero is not the same as absent. Go writes empty values of all other fields too.

Not all fields are listed: others are refused, never lost (`protobuf`).
"""

from typing import Final, NamedTuple


class Field(NamedTuple):
    name: str
    # A letter, or the name of a message.
    type: str
    is_list: bool = False
    is_map: bool = False
    keeps_zero: bool = False


_TEXT: Final = """
ObjectMeta: 1 name s, 2 generateName s, 3 namespace s, 4 selfLink -, 5 uid s, 6 resourceVersion s,
  7 generation i, 8 creationTimestamp T, 9 deletionTimestamp T, 10 deletionGracePeriodSeconds i?,
  11 labels {s}, 12 annotations {s}, 13 ownerReferences *OwnerReference, 14 finalizers *s,
  17 managedFields -
OwnerReference: 1 kind s, 3 name s, 4 uid s, 5 apiVersion s, 6 controller b?,
  7 blockOwnerDeletion b?
ObjectReference: 1 kind s, 2 namespace s, 3 name s, 4 uid s, 5 apiVersion s, 6 resourceVersion s,
  7 fieldPath s
LocalObjectReference: 1 name s
LabelSelector: 1 matchLabels {s}, 2 matchExpressions *LabelSelectorRequirement
LabelSelectorRequirement: 1 key s, 2 operator s, 3 values *s
DeleteOptions: 1 gracePeriodSeconds i?, 2 preconditions Preconditions, 3 orphanDependents b?,
  4 propagationPolicy s, 5 dryRun *s
Preconditions: 1 uid s, 2 resourceVersion s

Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status -
NamespaceSpec: 1 finalizers *s
ConfigMap: 1 metadata ObjectMeta, 2 data {s}, 3 binaryData {y}, 4 immutable b?
Secret: 1 metadata ObjectMeta, 2 data {y}, 3 type s, 4 stringData {s}, 5 immutable b?
ServiceAccount: 1 metadata ObjectMeta, 2 secrets *ObjectReference,
  3 imagePullSecrets *LocalObjectReference, 4 automountServiceAccountToken b?
Service: 1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status -
ServiceSpec: 1 ports *ServicePort, 2 selector {s}, 3 clusterIP s, 4 type s, 5 externalIPs *s,
  7 sessionAffinity s, 8 loadBalancerIP s, 9 loadBalancerSourceRanges *s, 10 externalName s,
  11 externalTrafficPolicy s, 12 healthCheckNodePort i, 13 publishNotReadyAddresses b,
  17 ipFamilyPolicy s, 18 clusterIPs *s, 19 ipFamilies *s
ServicePort: 1 name s, 2 protocol s, 3 port i, 4 targetPort I, 5 nodePort i, 6 appProtocol s
Binding: 1 metadata ObjectMeta, 2 target ObjectReference

Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status -
DeploymentSpec: 1 replicas i?, 2 selector LabelSelector, 3 template PodTemplateSpec,
  4 strategy DeploymentStrategy, 5 minReadySeconds i, 6 revisionHistoryLimit i?, 7 paused b,
  9 progressDeadlineSeconds i?
DeploymentStrategy: 1 type s, 2 rollingUpdate RollingUpdate
RollingUpdate: 1 maxUnavailable I?, 2 maxSurge I?
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status -
PodSpec: 2 containers *Container, 3 restartPolicy s, 4 terminationGracePeriodSeconds i?,
  5 activeDeadlineSeconds i?, 6 dnsPolicy s, 7 nodeSelector {s}, 8 serviceAccountName s,
  9 serviceAccount s, 10 nodeName s, 11 hostNetwork b, 12 hostPID b, 13 hostIPC b, 16 hostname s,
  17 subdomain s, 19 schedulerName s, 20 initContainers *Container,
  21 automountServiceAccountToken b?, 22 tolerations *Toleration, 24 priorityClassName s,
  25 priority i?, 29 runtimeClassName s, 31 preemptionPolicy s
Container: 1 name s, 2 image s, 3 command *s, 4 args *s, 5 workingDir s, 6 ports *ContainerPort,
  7 env *EnvVar, 8 resources ResourceRequirements, 13 terminationMessagePath s,
  14 imagePullPolicy s, 16 stdin b, 17 stdinOnce b, 18 tty b, 20 terminationMessagePolicy s,
  24 restartPolicy s
ContainerPort: 1 name s, 2 hostPort i, 3 containerPort i, 4 protocol s, 5 hostIP s
EnvVar: 1 name s, 2 value s
ResourceRequirements: 1 limits {Q}, 2 requests {Q}
Toleration: 1 key s, 2 operator s, 3 value s, 4 effect s, 5 tolerationSeconds i?

Job: 1 metadata ObjectMeta, 2 spec JobSpec, 3 status -
JobSpec: 1 parallelism i?, 2 completions i?, 3 activeDeadlineSeconds i?, 4 selector LabelSelector,
  5 manualSelector b?, 6 template PodTemplateSpec, 7 backoffLimit i?, 8 ttlSecondsAfterFinished i?,
  9 completionMode s, 10 suspend b?
CronJob: 1 metadata ObjectMeta, 2 spec CronJobSpec, 3 status -
CronJobSpec: 1 schedule s, 2 startingDeadlineSeconds i?, 3 concurrencyPolicy s, 4 suspend b?,
  5 jobTemplate JobTemplateSpec, 6 successfulJobsHistoryLimit i?, 7 failedJobsHistoryLimit i?,
  8 timeZone s
JobTemplateSpec: 1 metadata ObjectMeta, 2 spec JobSpec

PriorityClass: 1 metadata ObjectMeta, 2 value i, 3 globalDefault b, 4 description s,
  5 preemptionPolicy s
PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, 3 status -
PodDisruptionBudgetSpec: 1 minAvailable I?, 2 selector LabelSelector, 3 maxUnavailable I?,
  4 unhealthyPodEvictionPolicy s
Eviction: 1 metadata ObjectMeta, 2 deleteOptions DeleteOptions
Scale: 1 metadata ObjectMeta, 2 spec ScaleSpec, 3 status -
ScaleSpec: 1 replicas i?

Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity s?, 2 leaseDurationSeconds i?, 3 acquireTime U, 4 renewTime U,
  5 leaseTransitions i?, 6 strategy s, 7 preferredHolder s
events.k8s.io/v1 Event: 1 metadata ObjectMeta, 2 eventTime U, 3 series EventSeries,
  4 reportingController s, 5 reportingInstance s, 6 action s, 7 reason s,
  8 regarding ObjectReference, 9 related ObjectReference, 10 note s, 11 type s,
  12 deprecatedSource EventSource, 13 deprecatedFirstTimestamp T, 14 deprecatedLastTimestamp T,
  15 deprecatedCount i
v1 Event: 1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason s, 4 message s,
  5 source EventSource, 6 firstTimestamp T, 7 lastTimestamp T, 8 count i, 9 type s, 10 eventTime U,
  11 series EventSeries, 12 action s, 13 related ObjectReference, 14 reportingComponent s,
  15 reportingInstance s
EventSeries: 1 count i, 2 lastObservedTime U
EventSource: 1 component s, 2 host s

SelfSubjectReview: 1 metadata ObjectMeta, 2 status -
TokenReview: 1 metadata ObjectMeta, 2 spec TokenReviewSpec, 3 status -
TokenReviewSpec: 1 token s, 2 audiences *s
SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, 3 status -
SubjectAccessReview: 1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, 3 status -
LocalSubjectAccessReview: 1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, 3 status -
SubjectAccessReviewSpec: 1 resourceAttributes ResourceAttributes,
  2 nonResourceAttributes NonResourceAttributes, 3 user s, 4 groups *s, 5 extra -, 6 uid s
ResourceAttributes: 1 namespace s, 2 verb s, 3 group s, 4 version s, 5 resource s, 6 subresource s,
  7 name s, 8 fieldSelector -, 9 labelSelector -
NonResourceAttributes: 1 path s, 2 verb s
SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec SelfSubjectRulesReviewSpec, 3 status -
SelfSubjectRulesReviewSpec: 1 namespace s
"""


def fields_of_message(api_version: str, kind: str) -> dict[int, Field] | None:
    """The fields of a kind, or of a message that kinds contain; None if it is not known."""
    return MESSAGES.get(f"{api_version} {kind}") or MESSAGES.get(kind)


def _parse(text: str) -> dict[str, dict[int, Field]]:
    messages: dict[str, dict[int, Field]] = {}
    for line in text.replace("\n  ", " ").splitlines():
        if not line:
            continue
        name, _, fields = line.partition(": ")
        messages[name] = dict(_parse_field(field) for field in fields.split(", "))
    return messages


def _parse_field(text: str) -> tuple[int, Field]:
    number, name, type = text.split()
    return int(number), Field(
        name,
        type.strip("*{}?"),
        is_list=type.startswith("*"),
        is_map=type.startswith("{"),
        keeps_zero=type.endswith("?"),
    )


MESSAGES: Final = _parse(_TEXT)
