"""What the command line of `kubestow explain` asks for."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import enabled_names
from kubestow.editions.edition import ModernVersion
from kubestow.plugins.load_aware import LoadAware
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.commands.cluster_input import InputRequest
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.formats import ExplainFormat
from kubestow.service.output import stderr
from kubestow.simulator.input.changes import InputChanges


class ExplainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    pod: str
    namespace: str
    selector: str
    is_all: bool
    # What is changed in the cluster first.
    changes: InputChanges
    output: ExplainFormat
    node: str
    is_as_of_now: bool
    is_alone: bool
    has_suggestions: bool
    shape: str
    config_file: Path | None
    feature_gates: Sequence[str]
    compatibility: ModernVersion | None
    files: Sequence[str]
    is_strict: bool
    kubeconfig: str
    context: str
    from_address: str
    skips_verification: bool


def loaded_config(request: ExplainRequest, gates: FeatureGates) -> LoadedPlugins:
    """The configuration and its plugins; what cannot be as in a running scheduler is printed."""
    loaded = load_scheduler_config(request.config_file, gates=gates)
    profiles = loaded.config.profiles
    if any(LoadAware.name in enabled_names(each.plugins) for each in profiles):
        stderr().print(
            f"{LoadAware.name} takes no part: nothing is measured here; with --from the running "
            "scheduler answers, which has measurements",
            soft_wrap=True,
        )
    return loaded


def input_of(request: ExplainRequest) -> InputRequest:
    """The cluster of the files; a live one, if it is to be changed first."""
    return InputRequest(
        files=request.files,
        is_strict=request.is_strict,
        is_live=not request.files,
        kubeconfig=request.kubeconfig,
        context=request.context,
        changes=request.changes,
    )
