"""`kubestow demo`: the command line.

Not here: the demo (`demo_play`), the server (`demo_serve`).
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from kubestow.errors import InputError
from kubestow.service.compatibility import Compatibility
from kubestow.simulator.defaults import NODE_COUNT, NODE_GRACE_S, NODES_PER_CLUSTER, RECORD_SIZE_MIB

_STORY_OPTIONS: Final = ("verbose", "compatibility")
_SHARED_OPTIONS: Final = ("record", "serve")


def demo(
    context: typer.Context,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Virtual seconds per real second; 0 does not wait at all. "
            "The default is 3, and 0 without a terminal.",
        ),
    ] = None,
    compatibility: Annotated[
        Compatibility,
        typer.Option(help="With --verbose: the version of kube-scheduler to look into."),
    ] = Compatibility.TODAY,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Play a shorter story and print what happens inside the scheduler: in its queue, "
            "its cache, its tree of nodes and its snapshot.",
        ),
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a cluster to kubectl until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="With --serve: the port; 0 takes a free one.")
    ] = 0,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=NODES_PER_CLUSTER,
            metavar="N",
            help="With --serve: how many nodes there are, of each shape without a count. "
            f"The default is {NODE_COUNT}, and 0 if nodes are loaded.",
        ),
    ] = None,
    node_shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--node-shape",
            metavar="SHAPE",
            help="With --serve: what nodes have, such as "
            "cpu=8,memory=32Gi,pods=110,nvidia.com/gpu=4,label.disk=ssd,count=10. "
            "May be repeated.",
        ),
    ] = None,
    load: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="With --serve: begin with these objects: YAML or JSON, a directory, or - for "
            "standard input. May be repeated.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --serve: write all objects to this file at the end, as JSON that --load "
            "reads. The data of secrets is left out.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record what the scheduler sees and decides, for kubestow replay.",
        ),
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="With --serve: configuration of the scheduler and its plugins, a "
            "KubeSchedulerConfiguration v1, YAML or JSON.",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            help="With --serve: features of the API server and the scheduler, such as "
            "GenericWorkload=true,GangScheduling=true for gangs. May be repeated.",
        ),
    ] = None,
    scheduler: Annotated[
        bool,
        typer.Option(help="With --serve: schedule pods, or leave that to another scheduler."),
    ] = True,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --serve: the kubeconfig. A context is added to one that exists, and taken "
            "out at the end; a new file is deleted at the end.",
        ),
    ] = None,
    node_grace: Annotated[
        float,
        typer.Option(
            "--node-monitor-grace-period",
            metavar="SECONDS",
            # Leases are renewed every 10 s and looked at every 5 s.
            min=15,
            help="With --serve: how long a node may be silent before it is lost.",
        ),
    ] = NODE_GRACE_S,
    for_s: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="SECONDS",
            min=0,
            help="With --serve: end after this many seconds.",
        ),
    ] = None,
) -> None:
    """Show the scheduler in an embedded cluster. Nothing outside of it is changed.

    Ends after a few seconds with where pods were placed and why the others wait. With --serve
    another cluster, without pods, runs in real time, and kubectl can use it.

    Example: kubestow demo --speed 10

    Example: kubestow demo --verbose --compatibility v1.20

    Example: kubestow demo --serve --nodes 5 --record demo.rec

    Example: kubestow demo --serve --node-shape cpu=8,memory=32Gi,count=3 --load workload/
    """
    _check_mode(context, is_serving=serve)
    if verbose and record is not None:
        raise InputError("--record has no effect with --verbose")
    if verbose:
        from kubestow.service.commands.demo_verbose import tell_demo

        tell_demo(compatibility, speed)
        return
    if compatibility is not Compatibility.TODAY:
        raise InputError("--compatibility needs --verbose: kubestow demo --verbose …")
    if not serve:
        from kubestow.service.commands.demo_play import play_demo

        play_demo(speed, record)
        return
    if record is not None and not scheduler:
        raise InputError("--record has no effect with --no-scheduler: there is nothing to record")
    from kubestow.recording.recording import RecordTo
    from kubestow.service.commands.demo_serve import ServeRequest, serve_demo
    from kubestow.service.commands.scheduler_config import checked_gates
    from kubestow.simulator.node_shapes import NodeShape, parse_shape
    from kubestow.simulator.served import ServedOptions

    options = ServedOptions(
        port=port,
        nodes=nodes,
        shapes=tuple(map(parse_shape, node_shapes or ())) or (NodeShape(),),
        has_scheduler=scheduler,
        node_grace_s=node_grace,
        gates=checked_gates(feature_gates),
        record=None if record is None else RecordTo(record, "demo", RECORD_SIZE_MIB << 20),
    )
    request = ServeRequest(
        options=options,
        kubeconfig_path=kubeconfig,
        config_path=config_file,
        load_paths=load or (),
        save_path=save,
        for_s=for_s,
    )
    raise typer.Exit(serve_demo(request))


def _check_mode(context: typer.Context, *, is_serving: bool) -> None:
    """InputError for an option of the other mode: it would have no effect."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in _SHARED_OPTIONS or source is None or source.name != "COMMANDLINE":
            continue
        is_negated = context.params[name] is False
        option = (parameter.secondary_opts if is_negated else parameter.opts)[0]
        if name == "speed" and is_serving:
            raise InputError(f"{option} has no effect with --serve, which runs in real time")
        if name in _STORY_OPTIONS and is_serving:
            raise InputError(f"{option} has no effect with --serve")
        if name != "speed" and name not in _STORY_OPTIONS and not is_serving:
            raise InputError(f"{option} needs --serve: kubestow demo --serve {option} …")
