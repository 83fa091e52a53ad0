"""Options of every command that takes a cluster: where it comes from, and what is changed in it.

    @takes_cluster
    def capacity(cluster: "InputRequest", fit: Annotated[...] = "", ...) -> None:

is a command with all of these options, and gets them as one request.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kubestow.service.commands.file_options import Force, MaxInput

if TYPE_CHECKING:
    from kubestow.service.commands.cluster_input import InputRequest

_LIVE: Final = "A live cluster"
_CHANGES: Final = "Changes of the cluster"

STRICT_HELP: Final = (
    "Refuse objects that a cluster would refuse, and fields that Kubernetes does not have, instead "
    "of skipping the objects and warning of the fields."
)

Files = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Cluster and workload: YAML or JSON, a directory, or - for standard input. "
        "May be repeated.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help=STRICT_HELP),
]
FromCluster = Annotated[
    bool,
    typer.Option(
        "--from-cluster",
        help="Read the cluster that kubectl talks to: all kinds that decide where pods go. Nothing "
        "is written there; secrets are not read.",
        rich_help_panel=_LIVE,
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        show_default="$KUBECONFIG, or ~/.kube/config",
        help="With --from-cluster: how to reach it.",
        rich_help_panel=_LIVE,
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        show_default="the current one",
        help="With --from-cluster: the context of the kubeconfig.",
        rich_help_panel=_LIVE,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="PATH",
        help="Write the cluster, with its changes, as files that load again: one file if the name "
        "ends with .json or .yaml, else a folder.",
        rich_help_panel=_LIVE,
    ),
]
Reschedule = Annotated[
    bool,
    typer.Option(
        "--reschedule",
        help="Forget where pods run, and place all of them again. Static pods and pods that "
        "are ending keep their node, and volumes stay bound.",
        rich_help_panel=_CHANGES,
    ),
]
Cordon = Annotated[
    list[str] | None,
    typer.Option(
        "--cordon",
        metavar="NODE",
        help="Close a node to new pods. May be repeated.",
        rich_help_panel=_CHANGES,
    ),
]
Drain = Annotated[
    list[str] | None,
    typer.Option(
        "--drain",
        metavar="NODE",
        help="Close a node and place its pods again, as kubectl drain --force does: daemons and "
        "static pods stay, and pods without a controller are gone. May be repeated.",
        rich_help_panel=_CHANGES,
    ),
]
AddNodes = Annotated[
    list[int] | None,
    typer.Option(
        "--add-nodes",
        metavar="N",
        help="Add this many nodes, each like the node of --like, with the daemons it gets. "
        "May be repeated, each with its --like.",
        rich_help_panel=_CHANGES,
    ),
]
Like = Annotated[
    list[str] | None,
    typer.Option(
        "--like",
        metavar="NODE",
        help="With --add-nodes: the node to copy, with its volume limits and devices.",
        rich_help_panel=_CHANGES,
    ),
]
RemovePods = Annotated[
    list[str] | None,
    typer.Option(
        "--remove-pods",
        metavar="SELECTOR",
        help="Remove the pods with these labels, such as app=web,tier!=db. May be repeated.",
        rich_help_panel=_CHANGES,
    ),
]


def takes(
    name: str, make: Callable[..., Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: the command has the parameters of `make` as options, in the place of the
    parameter of that name, and gets what `make` returns for it."""
    options = inspect.signature(make).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            made = make(**{option: given.pop(option) for option in options})
            command(**{name: made}, **given)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            parameters += options.values() if parameter.name == name else [parameter]
        # What typer reads.
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _request(
    files: Files = None,
    strict: Strict = False,
    from_cluster: FromCluster = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    save: Save = None,
    reschedule: Reschedule = False,
    cordon: Cordon = None,
    drain: Drain = None,
    add_nodes: AddNodes = None,
    like: Like = None,
    remove_pods: RemovePods = None,
    max_input: MaxInput = "",
    force: Force = False,
) -> "InputRequest":
    from kubestow.service.commands.cluster_input import InputRequest, changes_of

    return InputRequest(
        files=files or (),
        is_strict=strict,
        is_live=from_cluster,
        kubeconfig=kubeconfig,
        context=context,
        changes=changes_of(
            reschedule=reschedule,
            cordon=cordon,
            drain=drain,
            add_nodes=add_nodes,
            like=like,
            remove_pods=remove_pods,
        ),
        save=save,
        force=force,
    )


# Gives a command these options in the place of its parameter `cluster`.
takes_cluster: Final = takes("cluster", _request)
