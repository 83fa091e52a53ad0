"""`kubestow explain`: the command line.

Not here: reading clusters (`files`, `live`), explaining (`pod`), texts
(`explain.text`).
"""

from typing import Annotated, Final

import typer

from kubestow.service.commands.file_options import MaxInput
from kubestow.service.commands.input_options import (
    STRICT_HELP,
    AddNodes,
    Cordon,
    Drain,
    Like,
)
from kubestow.service.commands.scheduler_options import Compatibility, ConfigFile, FeatureGates
from kubestow.service.formats import ExplainFormat

_FROM_FILES: Final = "A cluster from files"
_LIVE: Final = "A live cluster (read only)"


def explain(
    pod: Annotated[
        str,
        typer.Argument(
            metavar="[POD]",
            help="Its name, or NAMESPACE/NAME; or a workload, such as deploy/web or job/night: all "
            "its pods that wait.",
        ),
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            help="The namespace of the pod. By default that of the context; in files, the one "
            "that has a pod of this name.",
        ),
    ] = "",
    selector: Annotated[
        str,
        typer.Option(
            "--selector",
            "-l",
            metavar="SELECTOR",
            help="All waiting pods with these labels, such as app=web,tier!=db.",
        ),
    ] = "",
    all_pods: Annotated[
        bool,
        typer.Option(
            "--all", help="All pods that wait, of all namespaces or of that of --namespace."
        ),
    ] = False,
    output: Annotated[ExplainFormat, typer.Option("--output", "-o", help="How to print.")] = (
        ExplainFormat.TEXT
    ),
    node: Annotated[
        str,
        typer.Option(
            metavar="NODE",
            help="Look at this node: the answer of every filter, not only of the first that "
            "rejects.",
        ),
    ] = "",
    as_of_now: Annotated[
        bool,
        typer.Option(
            help="Explain a pod that is placed as if it had to be placed now, or only say where "
            "it is.",
        ),
    ] = True,
    suggestions: Annotated[
        bool,
        typer.Option(
            help="Search for changes that make the pod fit, or leave that out.",
        ),
    ] = True,
    shape: Annotated[
        str,
        typer.Option(
            metavar="SHAPE",
            help="Also try one more node that has this, such as cpu=8,memory=32Gi,label.disk=ssd.",
        ),
    ] = "",
    config_file: ConfigFile = None,
    feature_gates: FeatureGates = None,
    compatibility: Compatibility = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Cluster and workload: YAML or JSON, a directory, or - for standard input. "
            "May be repeated.",
            rich_help_panel=_FROM_FILES,
        ),
    ] = None,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="Try the pod as if it were the next, instead of placing the pods before it in the "
            "queue first, as simulate does.",
            rich_help_panel=_FROM_FILES,
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help=STRICT_HELP, rich_help_panel=_FROM_FILES),
    ] = False,
    max_input: MaxInput = "",
    cordon: Cordon = None,
    drain: Drain = None,
    add_nodes: AddNodes = None,
    like: Like = None,
    kubeconfig: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="The kubeconfig; by default what kubectl uses.",
            rich_help_panel=_LIVE,
        ),
    ] = "",
    context: Annotated[
        str,
        typer.Option(metavar="NAME", help="The context in it.", rich_help_panel=_LIVE),
    ] = "",
    from_address: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            help="Ask the kubestow that runs there, such as https://10.0.0.7:10259, for the last "
            "attempt it made for the pod. It is asked with the credentials of the context.",
            rich_help_panel=_LIVE,
        ),
    ] = "",
    insecure_skip_tls_verify: Annotated[
        bool,
        typer.Option(
            "--insecure-skip-tls-verify",
            help="With --from: do not check the certificate of the scheduler, which is its own by "
            "default.",
            rich_help_panel=_LIVE,
        ),
    ] = False,
) -> None:
    """Say why a pod is placed where it is, or why it waits.

    An attempt is made for the pod on the cluster as it is now, and nothing is written. In files the
    pods before it in the queue are placed first, as simulate does. For a pod that waits, changes
    are searched that would make it fit, each of them tried. A pod that is placed is explained as if
    it had to be placed now.

    Of a workload, a selector or --all, all pods that wait are placed together. Those that fit
    nowhere are grouped by what they wait for, and changes are searched that place most of them.

    EVICTING says whether fewer pods on these nodes may help: not where the node itself does not
    suit the pod, as by a label or a taint. "Tried again after a change of" names the kinds whose
    changes let a rejected pod try again, and the plugin that waits for them.

    Exit codes: 0 done, 1 the pod is not for this scheduler, 2 the input cannot be used.

    Example: kubestow explain web-0 -n shop

    Example: kubestow explain web-0 -f cluster.yaml -f workload.yaml --node node-a

    Example: kubestow explain --all --add-nodes 2 --like node-a
    """
    from kubestow.service.commands.cluster_input import changes_of
    from kubestow.service.commands.explain.pod import ExplainRequest, explain_and_print

    request = ExplainRequest(
        pod=pod,
        namespace=namespace,
        selector=selector,
        is_all=all_pods,
        changes=changes_of(
            reschedule=False,
            cordon=cordon,
            drain=drain,
            add_nodes=add_nodes,
            like=like,
            remove_pods=None,
        ),
        output=output,
        node=node,
        is_as_of_now=as_of_now,
        is_alone=alone,
        has_suggestions=suggestions,
        shape=shape,
        config_file=config_file,
        feature_gates=feature_gates or (),
        compatibility=compatibility,
        files=files or (),
        is_strict=strict,
        kubeconfig=kubeconfig,
        context=context,
        from_address=from_address,
        skips_verification=insecure_skip_tls_verify,
    )
    raise typer.Exit(explain_and_print(request))
