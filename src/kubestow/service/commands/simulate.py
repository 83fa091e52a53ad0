"""`kubestow simulate`: place a workload on a cluster, both given as files, in virtual time.

Not here: what is printed of the result (`simulate_output`).
"""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, Protocol

import msgspec
import typer

from kubestow.api.files import Document, load_documents
from kubestow.config.feature_gates import FeatureGates
from kubestow.engine.factory import SchedulerFactory
from kubestow.errors import InputError
from kubestow.service.commands.compatibility import AlgorithmOptions, Compatibility
from kubestow.service.commands.scheduler_config import (
    FeatureGatesOption,
    checked_gates,
    load_scheduler_config,
)
from kubestow.service.commands.simulate_output import print_result
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import OutputFormat, progress_bar
from kubestow.simulator.manifests import (
    Manifests,
    select_manifests,
    unknown_field_texts,
    without_placements,
)
from kubestow.simulator.simulation import LIMIT_S, Simulation, SimulationResult
from kubestow.simulator.virtual_time import run_in_virtual_time

_FIELDS_SHOWN: Final = 10
_PLUGIN_FAILED: Final = 3  # the exit code
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
    feature_gates: FeatureGatesOption = None,
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
    manifests = _load(files or [], reads_config_maps=bool(policy_configmap))
    _report_unknown_fields(manifests.documents, is_strict=strict)
    documents = without_placements(manifests.documents) if reschedule else manifests.documents
    options = AlgorithmOptions(
        algorithm_provider=algorithm_provider,
        policy_config_file=policy_config_file,
        policy_configmap=policy_configmap,
        policy_configmap_namespace=policy_configmap_namespace,
        use_legacy_policy_config=use_legacy_policy_config,
        scheduler_name=scheduler_name,
        hard_pod_affinity_symmetric_weight=hard_pod_affinity_symmetric_weight,
    )
    make: _MakeSimulation
    if compatibility is Compatibility.V1_9:
        if config_file is not None or percentage is not None:
            raise InputError(
                "--config and --percentage-of-nodes-to-score are newer than v1.9; "
                "give a Policy with --policy-config-file"
            )
        make = _of_v1_9(documents, manifests.config_maps, options)
    else:
        if options != AlgorithmOptions():
            raise InputError("flags of older schedulers need --compatibility v1.9")
        gates = checked_gates(feature_gates)
        make = _with_plugins(documents, config_file, percentage, _factory_of(compatibility), gates)
    with warnings_on_stderr(), progress_bar("Placing pods") as progress:
        task = progress.add_task("", total=None)

        def note(decision: _Decision) -> None:
            progress.advance(task, 1 if decision.is_scheduled else 0)

        async def run() -> SimulationResult:
            simulation = make(note)
            progress.update(task, total=simulation.waiting_count)
            return await simulation.run(limit_s=limit)

        result = run_in_virtual_time(run())
    print_result(result, output, has_headers=not no_headers)
    if result.has_failed:
        raise typer.Exit(_PLUGIN_FAILED)
    raise typer.Exit(1 if fail_on_pending and result.pending else 0)


def _load(files: Sequence[str], *, reads_config_maps: bool) -> Manifests:
    """The objects in the files that a scheduler reads; what is ignored is reported."""
    if not files:
        raise InputError("nothing to simulate: name files with -f, for example -f cluster.yaml")
    for file in files:
        if "://" in file:
            raise InputError(
                f"-f does not read addresses; run: curl -sSL {shlex.quote(file)} | "
                "kubestow simulate -f -"
            )
    loaded = load_documents(files)
    if not loaded:
        raise InputError(f"no objects in {', '.join(files)}")
    manifests = select_manifests(loaded, reads_config_maps=reads_config_maps)
    if text := manifests.ignored_text():
        print(text, file=sys.stderr)
    return manifests


def _report_unknown_fields(documents: Sequence[Document], *, is_strict: bool) -> None:
    texts = unknown_field_texts(documents)
    if is_strict and texts:
        more = f"; there are {len(texts) - 1} more" if len(texts) > 1 else ""
        raise InputError(texts[0] + more)
    for text in texts[:_FIELDS_SHOWN]:
        print(f"warning: {text}", file=sys.stderr)
    if len(texts) > _FIELDS_SHOWN:
        print(f"warning: {len(texts) - _FIELDS_SHOWN} more unknown fields", file=sys.stderr)


class _Decision(Protocol):
    @property
    def is_scheduled(self) -> bool: ...


class _Simulation(Protocol):
    @property
    def waiting_count(self) -> int: ...

    async def run(self, *, limit_s: float) -> SimulationResult: ...


# Makes a simulation that calls a listener with every decision; called in the loop it runs in.
_MakeSimulation = Callable[[Callable[[_Decision], None]], _Simulation]


def _with_plugins(
    documents: Sequence[Document],
    config_file: Path | None,
    percentage: int | None,
    factory: type[SchedulerFactory],
    gates: FeatureGates,
) -> _MakeSimulation:
    config, registry = load_scheduler_config(config_file)
    if percentage is not None:
        config = msgspec.structs.replace(config, percentage_of_nodes_to_score=percentage)
    return lambda note: Simulation(
        documents, config, registry=registry, on_decision=note, factory=factory, gates=gates
    )


def _factory_of(compatibility: Compatibility) -> type[SchedulerFactory]:
    if compatibility is Compatibility.TODAY:
        return SchedulerFactory
    # Imported here, like all legacy code: only when an older version is to run.
    from kubestow.engine.legacy.factory import FACTORIES

    return FACTORIES[compatibility]


def _of_v1_9(
    documents: Sequence[Document], config_maps: Sequence[Document], options: AlgorithmOptions
) -> _MakeSimulation:
    from kubestow.service.commands.legacy import v1_9_simulation

    return v1_9_simulation(documents, config_maps, options)
