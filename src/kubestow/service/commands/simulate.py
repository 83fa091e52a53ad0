"""`kubestow simulate`: the command line.

Not here: the simulation (`simulate_files`), what is printed of its result (`simulate_output`).
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from kubestow.service.commands.compatibility import AlgorithmOptions, Compatibility
from kubestow.service.formats import OutputFormat
from kubestow.simulator.defaults import LIMIT_S

# Every kind that decides where pods go. One line, so that it can be pasted.
DUMP: Final = (
    "kubectl get -A -o json no,po,ns,svc,rc,rs,sts,pdb,pc,runtimeclasses,pv,pvc,sc,csinodes,"
    "csidrivers,csistoragecapacities,volumeattachments,resourceclaims,resourceclaimtemplates,"
    "resourceslices,deviceclasses > cluster.json"
)
SETTINGS: Final[dict[str, object]] = {
    "epilog": "A live cluster is simulated from a dump. With --reschedule its pods are placed "
    "again, for example with another configuration:\n\n"
    f"\b\n{DUMP}\nkubestow simulate -f cluster.json --reschedule --config config.yaml"
}
_OLDER: Final = "Older schedulers"


def simulate(
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Cluster and workload: YAML or JSON, a directory, or - for standard input. "
            "May be repeated.",
        ),
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print.")] = (
        OutputFormat.TABLE
    ),
    no_headers: Annotated[
        bool,
        typer.Option("--no-headers", help="Print the rows of tables only, without a summary."),
    ] = False,
    limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            show_default=f"{LIMIT_S:g}",
            help="Stop after this much virtual time.",
        ),
    ] = LIMIT_S,
    reschedule: Annotated[
        bool,
        typer.Option(
            "--reschedule",
            help="Forget where pods run, and place all of them again. Static pods and pods that "
            "are ending keep their node, and volumes stay bound.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Refuse fields that Kubernetes does not have, instead of warning."
        ),
    ] = False,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Configuration of the scheduler: a KubeSchedulerConfiguration v1, YAML or JSON.",
        ),
    ] = None,
    percentage: Annotated[
        int | None,
        typer.Option(
            "--percentage-of-nodes-to-score",
            min=0,
            max=100,
            help="How many percent of the nodes are enough to choose from; 0 adapts to the size. "
            "Overrides the configuration.",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            help="Features of the scheduler and the API server to switch on or off, such as "
            "GenericWorkload=true,GangScheduling=true for gangs. May be repeated.",
        ),
    ] = None,
    fail_on_pending: Annotated[
        bool,
        typer.Option("--fail-on-pending", help="Exit with code 1 when pods stay pending."),
    ] = False,
    compatibility: Annotated[
        Compatibility,
        typer.Option(
            help="Decide as this version of kube-scheduler. v1.17 and v1.20 have today's plugins, "
            "with the queue, the cache and the choice among equals of their time.",
            rich_help_panel=_OLDER,
        ),
    ] = Compatibility.TODAY,
    algorithm_provider: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="DefaultProvider or ClusterAutoscalerProvider.",
            rich_help_panel=_OLDER,
        ),
    ] = AlgorithmOptions().algorithm_provider,
    policy_config_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A Policy, YAML or JSON: predicates and priorities.",
            rich_help_panel=_OLDER,
        ),
    ] = "",
    policy_configmap: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The ConfigMap, among the files, that has the Policy as policy.cfg.",
            rich_help_panel=_OLDER,
        ),
    ] = "",
    policy_configmap_namespace: Annotated[
        str, typer.Option(metavar="NAMESPACE", rich_help_panel=_OLDER)
    ] = AlgorithmOptions().policy_configmap_namespace,
    use_legacy_policy_config: Annotated[
        bool,
        typer.Option(
            "--use-legacy-policy-config",
            help="Use the Policy file even if a ConfigMap is named.",
            rich_help_panel=_OLDER,
        ),
    ] = False,
    scheduler_name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="spec.schedulerName of the pods to place.", rich_help_panel=_OLDER
        ),
    ] = AlgorithmOptions().scheduler_name,
    hard_pod_affinity_symmetric_weight: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Weight of required affinity of pods on the node to the pod, 1 to 100; a Policy "
            "overrides it.",
            rich_help_panel=_OLDER,
        ),
    ] = AlgorithmOptions().hard_pod_affinity_symmetric_weight,
) -> None:
    """Place a workload on a cluster, both given as files.

    Prints where each pod goes, or why it waits. Pods without a node are placed; Deployments,
    StatefulSets, Jobs and other owners without pods in the input are replaced by the pods they
    would create. Kinds that no scheduler reads are ignored.

    Exit codes: 0 done, 1 pods stay pending (with --fail-on-pending), 2 the input cannot be used,
    3 a plugin failed.

    Example: kubestow simulate -f cluster.yaml -f workload/ -o wide
    """
    from kubestow.service.commands.simulate_files import SimulateRequest, simulate_files

    request = SimulateRequest(
        files=files or (),
        output=output,
        has_headers=not no_headers,
        limit_s=limit,
        is_rescheduling=reschedule,
        is_strict=strict,
        config_file=config_file,
        percentage=percentage,
        feature_gates=feature_gates or (),
        is_failing_on_pending=fail_on_pending,
        compatibility=compatibility,
        algorithm=AlgorithmOptions(
            algorithm_provider=algorithm_provider,
            policy_config_file=policy_config_file,
            policy_configmap=policy_configmap,
            policy_configmap_namespace=policy_configmap_namespace,
            use_legacy_policy_config=use_legacy_policy_config,
            scheduler_name=scheduler_name,
            hard_pod_affinity_symmetric_weight=hard_pod_affinity_symmetric_weight,
        ),
    )
    raise typer.Exit(simulate_files(request))
