"""`kubestow simulate --policy`, and the seven options that it replaces.

Those are hidden; for one version they still work, with a warning.
"""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kubestow.editions.flags import AlgorithmOptions
from kubestow.errors import InputError
from kubestow.service.commands.input_options import takes

OLDER: Final = "Older schedulers"

_Text = Annotated[str | None, typer.Option(hidden=True)]


def _options(
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The rules of an older version: a Policy, YAML or JSON, or a "
            "KubeSchedulerConfiguration v1alpha1 that names a provider or a Policy.",
            rich_help_panel=OLDER,
        ),
    ] = None,
    algorithm_provider: _Text = None,
    policy_config_file: _Text = None,
    policy_configmap: _Text = None,
    policy_configmap_namespace: _Text = None,
    use_legacy_policy_config: Annotated[
        bool, typer.Option("--use-legacy-policy-config", hidden=True)
    ] = False,
    scheduler_name: _Text = None,
    hard_pod_affinity_symmetric_weight: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> AlgorithmOptions:
    options: dict[str, Any] = {
        "algorithm_provider": algorithm_provider,
        "policy_config_file": policy_config_file,
        "policy_configmap": policy_configmap,
        "policy_configmap_namespace": policy_configmap_namespace,
        "use_legacy_policy_config": use_legacy_policy_config or None,
        "scheduler_name": scheduler_name,
        "hard_pod_affinity_symmetric_weight": hard_pod_affinity_symmetric_weight,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        if policy is not None:
            raise InputError(f"--policy replaces {names}: leave out one of both")
        print(f"kubestow: warning: {names}: write a file and use --policy FILE", file=sys.stderr)
    if policy is None:
        return AlgorithmOptions(**given)
    from kubestow.editions.algorithm_file import load_algorithm_options

    return load_algorithm_options(policy)


# Gives a command these options in the place of its parameter `algorithm`.
takes_policy: Final = takes("algorithm", _options)
