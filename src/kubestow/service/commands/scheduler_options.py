"""Options of commands that run a scheduler in this process."""

from pathlib import Path
from typing import Annotated

import typer

from kubestow.editions import DEFAULT
from kubestow.editions.edition import ModernVersion

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration of the scheduler and its plugins: a KubeSchedulerConfiguration v1, "
        "YAML or JSON. By default that of kube-scheduler.",
    ),
]
FeatureGates = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="NAME=BOOL,...",
        help="Features of the scheduler and the API server to switch on or off, such as "
        "GenericWorkload=true,GangScheduling=true for gangs. May be repeated.",
    ),
]
Compatibility = Annotated[
    ModernVersion | None,
    typer.Option(
        show_default=f"that of the cluster it was read from, else {DEFAULT}",
        help="Decide as this version of kube-scheduler.",
    ),
]
