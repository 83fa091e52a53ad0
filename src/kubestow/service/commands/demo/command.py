"""`kubestow demo`: the command line.

Three demos: the page (`page`), a story in the terminal (`play`), and a server for kubectl
(`serve`).
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kubestow.editions import DEFAULT, edition_named
from kubestow.editions.edition import Edition, Version
from kubestow.errors import InputError
from kubestow.service.commands.file_options import Force, MaxInput
from kubestow.service.commands.scheduler_options import ConfigFile, FeatureGates
from kubestow.simulator.defaults import NODE_COUNT, NODE_GRACE_S, NODES_PER_CLUSTER, RECORD_SIZE_MIB

if TYPE_CHECKING:
    from kubestow.api.meta import JsonObject
    from kubestow.simulator.node_shapes import NodeShape

Mode = Literal["page", "story", "server"]

# Options that only some of the demos have; others are of all.
_OPTIONS: Final[dict[str, tuple[Mode, ...]]] = {
    "speed": ("page", "story"),
    "verbose": ("story",),
    "page_port": ("page", "server"),
    "open_page": ("page", "server"),
    "nodes": ("page", "server"),
    "node_shapes": ("page", "server"),
    "load": ("page", "server"),
    "save": ("page", "server"),
    "config_file": ("page", "server"),
    "feature_gates": ("page", "server"),
    "node_grace": ("page", "server"),
    "for_s": ("page", "server"),
    "port": ("server",),
    "scheduler": ("server",),
    "kubeconfig": ("server",),
}
_NAMES: Final[dict[Mode, str]] = {"page": "--page", "story": "--story", "server": "--serve"}


def demo(
    context: typer.Context,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds of the cluster per real second. The default is 1; of the story 3, and 0 "
            "without a terminal, which does not wait at all.",
        ),
    ] = None,
    compatibility: Annotated[
        Version,
        typer.Option(
            help="The version of Kubernetes that the cluster and its scheduler are; with --verbose "
            "also those before v1.36."
        ),
    ] = DEFAULT,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Play a shorter story and print what happens inside the scheduler: in its queue, "
            "its cache, its tree of nodes and its snapshot.",
        ),
    ] = False,
    page: Annotated[
        bool,
        typer.Option(
            "--page",
            help="Serve the page until Ctrl-C: the default in a terminal, and with its options.",
        ),
    ] = False,
    story: Annotated[
        bool,
        typer.Option(
            "--story",
            help="Play a story of a few seconds in the terminal: the default without one.",
        ),
    ] = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve a cluster to kubectl, and the page, until Ctrl-C."),
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    page_port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port of the page; 0 takes a free one.")
    ] = 0,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="With --serve: the port; 0 takes a free one.")
    ] = 0,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=NODES_PER_CLUSTER,
            metavar="N",
            help="How many nodes there are; with --node-shape, of each shape without a count. "
            f"The default is {NODE_COUNT}, and 0 if nodes are loaded. The workload of the page "
            "grows with them.",
        ),
    ] = None,
    node_shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--node-shape",
            metavar="SHAPE",
            help="What nodes have, such as "
            "cpu=8,memory=32Gi,nvidia.com/gpu=4,count=10; label.KEY=VALUE is a label. "
            "May be repeated.",
        ),
    ] = None,
    load: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Begin with these objects: YAML or JSON, a directory, or - for "
            "standard input. May be repeated.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all objects to this file at the end, as JSON that --load "
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
    config_file: ConfigFile = None,
    feature_gates: FeatureGates = None,
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
            help="How long a node may be silent before it is lost.",
        ),
    ] = NODE_GRACE_S,
    max_input: MaxInput = "",
    force: Force = False,
    for_s: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="SECONDS",
            min=0,
            help="End after this many seconds.",
        ),
    ] = None,
) -> None:
    """Show the scheduler in an embedded cluster. Nothing outside of it is changed.

    In a terminal it serves a page for the browser, with a cluster that has a living workload, until
    Ctrl-C. Without a terminal it plays a story and ends. With --serve another cluster, without
    pods, runs in real time, and kubectl can use it.

    Example: kubestow demo --open

    Example: kubestow demo --story --speed 10

    Example: kubestow demo --verbose --compatibility v1.20

    Example: kubestow demo --serve --nodes 5 --record demo.rec

    Example: kubestow demo --serve --node-shape cpu=8,memory=32Gi,count=3 --load workload/
    """
    mode = _mode(context)
    if mode == "story":
        _tell(speed, edition_named(compatibility), record, verbose=verbose, force=force)
        return
    if record is not None and not scheduler:
        raise InputError("--record has no effect with --no-scheduler: there is nothing to record")
    from kubestow.files.keeping import require_new
    from kubestow.recording.recording import RecordTo
    from kubestow.service.commands.scheduler_config import checked_gates
    from kubestow.simulator.node_shapes import NodeShape, parse_shape
    from kubestow.simulator.served import ServedOptions

    shapes = tuple(map(parse_shape, node_shapes or ()))
    # The page's own cluster has nodes of several kinds, which are not of any shape.
    is_own = mode == "page" and not load
    options = ServedOptions(
        port=port,
        nodes=0 if is_own else nodes,
        shapes=() if is_own else shapes or (NodeShape(),),
        has_scheduler=scheduler,
        node_grace_s=node_grace,
        gates=checked_gates(feature_gates, _modern(edition_named(compatibility))),
        record=None
        if record is None
        else RecordTo(record, "demo", RECORD_SIZE_MIB << 20, force=force),
    )
    if save is not None:
        require_new(save, "--save", force=force)
    if options.record is not None:
        options.record.check()
    if mode == "page":
        from kubestow.service.commands.demo.page import PageRequest, show_page

        page_request = PageRequest(
            options=options,
            nodes=_page_nodes(shapes, nodes) if is_own else (),
            config_path=config_file,
            load_paths=load or (),
            save_path=save,
            for_s=for_s,
            page_port=page_port,
            opens_page=open_page,
            speed=1.0 if speed is None else speed,
        )
        raise typer.Exit(show_page(page_request))
    from kubestow.service.commands.demo.serve import ServeRequest, serve_demo

    request = ServeRequest(
        options=options,
        kubeconfig_path=kubeconfig,
        config_path=config_file,
        load_paths=load or (),
        save_path=save,
        for_s=for_s,
        page_port=page_port,
        opens_page=open_page,
    )
    raise typer.Exit(serve_demo(request))


def _page_nodes(shapes: "Sequence[NodeShape]", count: int | None) -> "list[JsonObject]":
    from kubestow.simulator.live.workload import first_nodes
    from kubestow.simulator.node_shapes import node_documents

    count = NODE_COUNT if count is None else count
    return node_documents(shapes, count) if shapes else first_nodes(count)


def _tell(
    speed: float | None,
    edition: Edition,
    record: Path | None,
    *,
    verbose: bool,
    force: bool,
) -> None:
    if verbose and record is not None:
        raise InputError("--record has no effect with --verbose")
    if verbose:
        from kubestow.service.commands.demo.play import tell_demo

        tell_demo(edition, speed)
        return
    from kubestow.service.commands.demo.play import play_demo

    play_demo(speed, record, _modern(edition), force=force)


def _modern(edition: Edition) -> Edition:
    if not edition.is_modern:
        raise InputError(
            f"--compatibility {edition.version} needs --verbose: kubestow demo --verbose …"
        )
    return edition


def _mode(context: typer.Context) -> Mode:
    """The demo that is meant; InputError for an option that has no effect in it."""
    given = dict(_given(context))
    chosen: list[Mode] = [mode for mode, name in _NAMES.items() if name in given.values()]
    if len(chosen) > 1:
        first, second = (_NAMES[mode] for mode in chosen[:2])
        raise InputError(f"{first} and {second} are two demos; choose one")
    mode = chosen[0] if chosen else _implied(given)
    for name, option in given.items():
        modes = _OPTIONS.get(name, (mode,))
        if mode in modes:
            continue
        if chosen:
            raise InputError(f"{option} has no effect with {_NAMES[mode]}")
        raise InputError(f"{option} needs {_NAMES[modes[0]]}: kubestow demo {_NAMES[modes[0]]} …")
    return mode


def _given(context: typer.Context) -> Iterator[tuple[str, str]]:
    """Names of the parameters on the command line, and how the option is written."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            is_negated = context.params[name] is False
            yield name, (parameter.secondary_opts if is_negated else parameter.opts)[0]


def _implied(given: dict[str, str]) -> Mode:
    """The demo that is meant where neither --page, --story nor --serve is given."""
    for name in given:
        modes = _OPTIONS.get(name, ())
        if modes == ("story",):
            return "story"
        if "page" in modes and "story" not in modes:
            return "page"
    return "page" if sys.stdout.isatty() else "story"
