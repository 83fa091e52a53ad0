"""What `kubestow explain` does: find the cluster and the pod, explain it, print that.

Not here: its options (`command`), where a cluster comes from (`files`, `live`).
"""

import shutil
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod, is_assigned, is_terminal, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.clock import SystemClock
from kubestow.close_names import close_names
from kubestow.errors import InputError
from kubestow.explain.annotations import result_annotations
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation
from kubestow.explain.one_node import asked_filters
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import OfferedNode, with_suggestions
from kubestow.explain.text import explanation_lines
from kubestow.service.commands.cluster_input import edition_of, edition_of_live
from kubestow.service.commands.explain.files import FileSource
from kubestow.service.commands.explain.many import explain_many_and_print, is_of_many
from kubestow.service.commands.explain.request import ExplainRequest, input_of, loaded_config
from kubestow.service.commands.scheduler_config import checked_gates
from kubestow.service.formats import DataFormat, ExplainFormat
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import print_data, stdout, stream_json
from kubestow.simulator.input.changes import InputChanges
from kubestow.simulator.node_shapes import DEFAULT_CAPACITY, parse_shape

_NOT_OURS: Final = 1  # the exit code
_NAMES_SHOWN: Final = 5
# Outcomes of waiting pods that a change of the cluster may help.
_HELPED: Final = ("Unschedulable", "Gated")


def explain_and_print(request: ExplainRequest) -> int:
    """Explain the pod, or all pods asked for, and print that; the exit code."""
    if request.skips_verification and not request.from_address:
        raise InputError(
            "--insecure-skip-tls-verify is for --from; for the API server the kubeconfig says it"
        )
    if request.from_address and not request.from_address.startswith("https://"):
        raise InputError(
            f'--from is "{request.from_address}", expected an address such as '
            "https://10.0.0.7:10259"
        )
    if is_of_many(request):
        with warnings_on_stderr():
            explain_many_and_print(request)
        return 0
    with warnings_on_stderr():
        explained = _kept(request) if request.from_address else _explained(request)
    _print(request, explained)
    return _NOT_OURS if explained.explanation.outcome == "Excluded" else 0


class _Explained(NamedTuple):
    explanation: Explanation
    # The filters that were asked, in their order, for annotations.
    filters: Sequence[str] = ()


def _kept(request: ExplainRequest) -> _Explained:
    """What a running scheduler keeps."""
    if request.files or request.node or request.changes != InputChanges():
        raise InputError(
            "--from is what a running scheduler has kept; leave out -f, --node and changes of the "
            "cluster"
        )
    # Imported here and below: files need no client.
    from kubestow.cluster.http.users_kubeconfig import Kubeconfig
    from kubestow.service.commands.explain.live import kept_explanation

    clock, kubeconfig = SystemClock(), Kubeconfig(request.kubeconfig, request.context)
    namespace, name = _pod_name(request)
    server = kubeconfig.scheduler(
        request.from_address, clock, skips_verification=request.skips_verification
    )
    key = (namespace or kubeconfig.namespace, name)
    return _Explained(kept_explanation(server, key, clock))


def _explained(request: ExplainRequest) -> _Explained:
    shape = _shape(request.shape)
    cluster, pod = _find(request)
    if request.node and cluster.objects.nodes.get(request.node) is None:
        raise InputError(f'there is no node "{request.node}"{_hint(_node_names(cluster))}')
    explanation = explain_pod(cluster, pod, node=request.node, is_as_of_now=request.is_as_of_now)
    if request.has_suggestions and explanation.outcome in _HELPED:
        explanation = with_suggestions(cluster, pod, explanation, shape=shape)
    profile = cluster.profile_of(pod)
    if profile is None or request.output is not ExplainFormat.ANNOTATIONS:
        return _Explained(explanation)
    return _Explained(explanation, asked_filters(profile, cluster.refresh(), PodInfo(pod)))


def _shape(text: str) -> OfferedNode | None:
    if not text:
        return None
    shape = parse_shape(text)
    return OfferedNode(capacity={**DEFAULT_CAPACITY, **shape.capacity}, labels=shape.labels)


def _find(request: ExplainRequest) -> tuple[StillCluster, Pod]:
    if request.files and (request.kubeconfig or request.context):
        raise InputError("-f is a cluster from files; leave out --kubeconfig and --context")
    clock = SystemClock()
    namespace, name = _pod_name(request)
    if request.files or request.changes != InputChanges():
        given = input_of(request)
        gates = checked_gates(request.feature_gates, edition_of(given, request.compatibility))
        loaded = loaded_config(request, gates)
        source = FileSource(given, loaded, gates, clock)
        cluster = source.cluster()
        try:
            pod = _pod_of(cluster, namespace, name)
        except InputError as error:
            refusal = source.refusal_of(name, cluster)
            if refusal:
                raise InputError(f'the pod "{name}" cannot be made: {refusal}') from error
            raise
        return (cluster, pod) if request.is_alone else _in_turn(source, cluster, pod)
    if request.is_alone:
        raise InputError("--alone is for pods of files; on a live cluster each pod is tried alone")
    from kubestow.cluster.http.users_kubeconfig import Kubeconfig
    from kubestow.service.commands.explain.live import live_cluster

    kubeconfig = Kubeconfig(request.kubeconfig, request.context, instead=", or give files with -f")
    namespace = namespace or kubeconfig.namespace
    server = kubeconfig.server(clock)
    edition = edition_of_live(server, clock, request.compatibility)
    gates = checked_gates(request.feature_gates, edition)
    loaded = loaded_config(request, gates)
    cluster = live_cluster(server, (namespace, name), loaded, gates, clock)
    return cluster, _pod_of(cluster, namespace, name)


def _in_turn(source: FileSource, cluster: StillCluster, pod: Pod) -> tuple[StillCluster, Pod]:
    """The cluster when the pod has its turn: the pods before it in the queue are placed."""
    is_tried = not (is_assigned(pod) or is_terminal(pod) or is_terminating(pod))
    if not is_tried or cluster.profile_of(pod) is None:
        return cluster, pod
    attempted = source.at_attempt(pod)
    if attempted.placed_count:
        print(
            f"placed first: {attempted.placed_count} of {attempted.other_count} other pods that "
            "wait; --alone leaves them out",
            file=sys.stderr,
        )
    return attempted.cluster, attempted.pod


def _pod_name(request: ExplainRequest) -> tuple[str, str]:
    """Namespace, empty if none is given, and name."""
    if not request.pod:
        raise InputError("name a pod, a workload such as deploy/web, --selector or --all")
    text = request.pod.removeprefix("pod/").removeprefix("pods/")
    namespace, slash, name = text.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise InputError(f'"{request.pod}" is not the name of a pod, nor NAMESPACE/NAME')
    if namespace and request.namespace not in ("", namespace):
        raise InputError(
            f'pod "{text}" names another namespace than --namespace {request.namespace}'
        )
    return namespace or request.namespace, name


def _pod_of(cluster: StillCluster, namespace: str, name: str) -> Pod:
    """The one pod of this name; InputError if there is none, or several."""
    pods = [*cluster.objects.pods, *cluster.ended.values()]
    named = [pod for pod in pods if pod.metadata.name == name]
    found = [pod for pod in named if namespace in ("", pod.metadata.namespace)]
    if len(found) == 1:
        return found[0]
    if found:
        namespaces = sorted(pod.metadata.namespace for pod in found)
        raise InputError(
            f'{len(found)} pods are named "{name}", in the namespaces {", ".join(namespaces)}; '
            "choose one with -n"
        )
    if named:
        places = ", ".join(sorted(pod.metadata.namespace for pod in named))
        raise InputError(
            f'there is no pod "{name}" in namespace "{namespace}"; there is one in {places}'
        )
    where = f' in namespace "{namespace}"' if namespace else ""
    close = close_names(name, {pod.metadata.name for pod in pods})
    similar = [
        object_ref(pod.metadata)
        for pod in pods
        if _is_similar(pod.metadata.name, name) or pod.metadata.name in close
    ]
    raise InputError(f'there is no pod "{name}"{where}{_hint(similar)}')


def _is_similar(name: str, wanted: str) -> bool:
    return name.startswith(wanted) or wanted in name


def _hint(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(sorted(names)[:_NAMES_SHOWN])
    return f"; there is {shown}" + (" and more" if len(names) > _NAMES_SHOWN else "")


def _node_names(cluster: StillCluster) -> list[str]:
    return [node.metadata.name for node in cluster.objects.nodes]


def _print(request: ExplainRequest, explained: _Explained) -> None:
    explanation = explained.explanation
    match request.output:
        case ExplainFormat.TEXT | ExplainFormat.WIDE:
            is_wide = request.output is ExplainFormat.WIDE
            _print_text(explanation, node=request.node, is_wide=is_wide)
        case ExplainFormat.JSON:
            stream_json(explanation, sys.stdout.write)
        case ExplainFormat.YAML:
            print_data(explanation, DataFormat.YAML)
        case ExplainFormat.ANNOTATIONS:
            print_data(result_annotations(explanation, explained.filters), DataFormat.JSON)


def _print_text(explanation: Explanation, *, node: str, is_wide: bool) -> None:
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    console = stdout()
    for line in explanation_lines(explanation, node=node, is_wide=is_wide, width=width):
        if line.styled and is_terminal:
            before, styled, after = line.text.partition(line.styled)
            console.print(Text.assemble(before, (styled, line.style), after), soft_wrap=True)
        else:
            sys.stdout.write(f"{line.text}\n")
