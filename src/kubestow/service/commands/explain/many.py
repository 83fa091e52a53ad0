"""`kubestow explain` of a workload, a selector or all pods that wait."""

import shutil
import sys
from collections.abc import Sequence
from typing import Final

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.close_names import close_names
from kubestow.errors import InputError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.many import explain_many, waiting_pods
from kubestow.explain.many_explanation import ManyExplanation
from kubestow.explain.many_text import many_lines
from kubestow.explain.suggestions.owners import origin_of
from kubestow.service.commands.cluster_input import edition_of, edition_of_live
from kubestow.service.commands.explain.files import FileSource
from kubestow.service.commands.explain.request import ExplainRequest, input_of, loaded_config
from kubestow.service.commands.scheduler_config import checked_gates
from kubestow.service.formats import DataFormat, ExplainFormat
from kubestow.service.output import print_data
from kubestow.simulator.input.changes import InputChanges, parse_selector

# As kubectl abbreviates them.
_KINDS: Final = {
    "cj": "CronJob",
    "cronjob": "CronJob",
    "cronjobs": "CronJob",
    "daemonset": "DaemonSet",
    "daemonsets": "DaemonSet",
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "ds": "DaemonSet",
    "job": "Job",
    "jobs": "Job",
    "rc": "ReplicationController",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
    "replicationcontroller": "ReplicationController",
    "rs": "ReplicaSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "sts": "StatefulSet",
}


def is_of_many(request: ExplainRequest) -> bool:
    """Whether a workload is named, or a selector, or all pods are asked for."""
    return request.is_all or bool(request.selector) or _workload(request) is not None


def explain_many_and_print(request: ExplainRequest) -> None:
    _check(request)
    found = _kept(request) if request.from_address else _explained(request)
    match request.output:
        case ExplainFormat.JSON | ExplainFormat.YAML:
            is_json = request.output is ExplainFormat.JSON
            print_data(found, DataFormat.JSON if is_json else DataFormat.YAML)
        case _:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            is_wide = request.output is ExplainFormat.WIDE
            for line in many_lines(found, is_wide=is_wide, width=width):
                sys.stdout.write(f"{line}\n")


def _check(request: ExplainRequest) -> None:
    given = (request.is_all, bool(request.selector), bool(request.pod))
    if sum(given) > 1:
        raise InputError("give one of a name, --selector and --all")
    for value, name in (
        (request.node, "--node"),
        (request.shape, "--shape"),
        (request.is_alone, "--alone"),
    ):
        if value:
            raise InputError(f"{name} is for one pod; leave it out, or name a pod")
    if request.output is ExplainFormat.ANNOTATIONS:
        raise InputError("-o annotations is for one pod; name it")


def _workload(request: ExplainRequest) -> tuple[str, str] | None:
    """Kind and name of a workload, as deploy/web; None for a pod."""
    kind, slash, name = request.pod.partition("/")
    return (_KINDS[kind.lower()], name) if slash and kind.lower() in _KINDS else None


def _explained(request: ExplainRequest) -> ManyExplanation:
    cluster, namespace, source = _cluster(request)
    pods = [pod for pod in waiting_pods(cluster) if _is_asked(request, cluster, pod, namespace)]
    if not pods and not request.is_all:
        _check_exists(request, cluster, namespace, source)
    return explain_many(cluster, pods, has_remedies=request.has_suggestions)


def _cluster(request: ExplainRequest) -> tuple[StillCluster, str, FileSource | None]:
    """The cluster, the namespace to look in, empty for all, and the files."""
    clock = SystemClock()
    if request.files or request.changes != InputChanges():
        if request.files and (request.kubeconfig or request.context):
            raise InputError("-f is a cluster from files; leave out --kubeconfig and --context")
        given = input_of(request)
        gates = checked_gates(request.feature_gates, edition_of(given, request.compatibility))
        loaded = loaded_config(request, gates)
        source = FileSource(given, loaded, gates, clock)
        return source.cluster(), request.namespace, source
    # Imported here: files need no client.
    from kubestow.cluster.http.users_kubeconfig import Kubeconfig
    from kubestow.service.commands.explain.live import live_cluster

    kubeconfig = Kubeconfig(request.kubeconfig, request.context, instead=", or give files with -f")
    server = kubeconfig.server(clock)
    edition = edition_of_live(server, clock, request.compatibility)
    gates = checked_gates(request.feature_gates, edition)
    loaded = loaded_config(request, gates)
    cluster = live_cluster(server, None, loaded, gates, clock)
    default = "" if request.is_all else kubeconfig.namespace
    return cluster, request.namespace or default, None


def _is_asked(request: ExplainRequest, cluster: StillCluster, pod: Pod, namespace: str) -> bool:
    if namespace not in ("", pod.metadata.namespace):
        return False
    if request.selector:
        return parse_selector(request.selector).matches(pod.metadata.labels)
    workload = _workload(request)
    return workload is None or workload in _owners(cluster, pod)


def _owners(cluster: StillCluster, pod: Pod) -> list[tuple[str, str]]:
    """The workloads of a pod: that which a person edits, and its direct owner."""
    origin, owner = origin_of(cluster, pod), controller_of(pod)
    found = [] if origin is None else [(origin.kind, origin.name)]
    return found if owner is None else [*found, (owner.kind, owner.name)]


def _check_exists(
    request: ExplainRequest, cluster: StillCluster, namespace: str, source: FileSource | None
) -> None:
    """InputError if no pod at all is of the workload or has the labels."""
    pods = [*cluster.objects.pods, *cluster.ended.values()]
    if not any(_is_asked(request, cluster, pod, namespace) for pod in pods):
        workload = _workload(request)
        if source is not None and workload is not None:
            refusal = source.refusal_of(workload[1], cluster)
            if refusal:
                raise InputError(f"the pods of {request.pod} cannot be made: {refusal}")
        where = f' in namespace "{namespace}"' if namespace else ""
        what = f'labels "{request.selector}"' if request.selector else f'"{request.pod}"'
        # On a live cluster the workload is not read: its events have what was refused.
        is_live = source is None and workload is not None
        hint = f"; if it exists, see its events: kubectl describe {request.pod}" if is_live else ""
        close = () if workload is None else _close_workloads(cluster, pods, *workload)
        hint = f"; there is {', '.join(close)}" if close else hint
        raise InputError(f"there is no pod of {what}{where}{hint}")


def _close_workloads(
    cluster: StillCluster, pods: Sequence[Pod], kind: str, name: str
) -> tuple[str, ...]:
    """Names of workloads of the kind that are close to this one."""
    return close_names(
        name, {other for pod in pods for of, other in _owners(cluster, pod) if of == kind}
    )


def _kept(request: ExplainRequest) -> ManyExplanation:
    """What a running scheduler keeps of all pods that wait."""
    if request.files or request.changes != InputChanges() or not request.is_all:
        raise InputError(
            "--from with --all is what a running scheduler has kept of all pods; leave out -f, "
            "workloads, --selector and changes of the cluster"
        )
    from kubestow.cluster.http.users_kubeconfig import Kubeconfig
    from kubestow.service.commands.explain.live import kept_of_all

    clock, kubeconfig = SystemClock(), Kubeconfig(request.kubeconfig, request.context)
    server = kubeconfig.scheduler(
        request.from_address, clock, skips_verification=request.skips_verification
    )
    return kept_of_all(server, request.namespace, clock)
