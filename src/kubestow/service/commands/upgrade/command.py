"""`kubestow upgrade`: the command line.

Not here: options of the cluster (`input_options`), the work (`look`), what is printed (`output`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kubestow.service.commands.input_options import takes_cluster
from kubestow.service.formats import FailOn, UpgradeFormat

if TYPE_CHECKING:
    from kubestow.service.commands.cluster_input import InputRequest

SETTINGS: Final[dict[str, object]] = {
    "epilog": "Examples:\n\n"
    "\b\nkubestow upgrade --to v1.37 --from-cluster\n"
    "kubestow upgrade --to v1.37 -f cluster/ --config config.yaml "
    "--feature-gates GangScheduling=true\n"
    "kubestow upgrade --to v1.37 --from-cluster --search dashboards/ --search alerts.yaml\n"
    "kubestow upgrade --to v1.37 run.rec\n"
    "kubestow upgrade --from v1.37 --to v1.36 -f cluster/ -o markdown"
}


@takes_cluster
def upgrade(
    to: Annotated[
        str,
        typer.Option("--to", metavar="VERSION", help="The version to go to: v1.37, or v1.36."),
    ],
    cluster: "InputRequest",
    recording: Annotated[
        Path | None,
        typer.Argument(
            metavar="RECORDING",
            help="A recording (kubestow run --record, kubestow record) instead of a cluster: each "
            "of its decisions.",
            show_default=False,
        ),
    ] = None,
    from_version: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="VERSION",
            show_default="that of the cluster it was read from, else the other one",
            help="The version in use now: v1.36, or v1.37 to go back.",
        ),
    ] = "",
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The configuration of your scheduler, which is read as both versions read it: a "
            "KubeSchedulerConfiguration v1, YAML or JSON.",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            help="The gates that your scheduler is started with now. May be repeated.",
        ),
    ] = None,
    search: Annotated[
        list[Path] | None,
        typer.Option(
            "--search",
            metavar="PATH",
            help="A file or folder with alerts, dashboards or scripts, in which names of metrics, "
            "label values, texts, gates and API versions are searched that differ. May be "
            "repeated.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            help="Exit with code 1 if anything is changed, or only if something is broken: "
            "refused, or a pod that waits now.",
        ),
    ] = None,
    output: Annotated[UpgradeFormat, typer.Option("--output", "-o", help="How to print.")] = (
        UpgradeFormat.TABLE
    ),
) -> None:
    """Find out what another Kubernetes version changes.

    Every waiting pod of the cluster is decided under both versions of the scheduler, in the order
    of the queue; with --reschedule all pods are. What differs is listed by the change between the
    versions that made it, with pods as examples; what no known change explains is said, too. After
    each pod the decision of the version in use now is carried out, so that a difference does not
    lead to others. Of a recording every decision is made again, and the recorded one is carried
    out. Members of pod groups are not compared, and extenders of a recording are not asked.

    Listed as well are gates and configuration that are refused or read in another way, objects
    that lose their API version, and with --search the places where other names are needed. Nothing
    is written.

    Exit codes: 0 done, 1 something of what --fail-on names was found, 2 the input cannot be used.
    """
    from kubestow.service.commands.upgrade.look import UpgradeRequest, look_and_print

    request = UpgradeRequest(
        cluster=cluster,
        recording=recording,
        to=to,
        from_version=from_version,
        config_file=config_file,
        feature_gates=feature_gates or (),
        search=search or (),
        fail_on=fail_on,
        output=output,
    )
    raise typer.Exit(look_and_print(request))
