"""What `kubestow capacity` does: put one question about the room of a cluster.

Not here: its options (`command`), what is printed of the answer (`output`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.files import Document, load_documents
from kubestow.editions.edition import ModernVersion
from kubestow.errors import InputError, PluginError
from kubestow.service.commands.capacity.output import (
    print_drain_check,
    print_fit,
    print_headroom,
    print_need,
)
from kubestow.service.commands.cluster_input import (
    InputRequest,
    edition_of,
    load_input,
    report_unknown_fields,
)
from kubestow.service.commands.scheduler_config import checked_gates, load_scheduler_config
from kubestow.service.formats import DataFormat
from kubestow.service.output import progress_bar
from kubestow.service.usage_errors import print_error
from kubestow.simulator.capacity.drain_check import drain_check
from kubestow.simulator.capacity.fit import COPIES_MAX, fit
from kubestow.simulator.capacity.headroom import headroom
from kubestow.simulator.capacity.measured import nodes_in_use
from kubestow.simulator.capacity.need import TRIES_MAX, need
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.capacity.shapes import read_shapes
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.manifests import select_manifests
from kubestow.usage.file_format import read_usage

_PLUGIN_FAILED: Final = 3  # the exit code


class CapacityRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    cluster: InputRequest
    output: DataFormat
    fit: str
    is_need: bool
    is_drain_check: bool
    is_headroom: bool
    limit: int | None
    at_least: int | None
    pool_label: str
    usage: Path | None
    shapes: Sequence[str]
    tries: int | None
    config_file: Path | None
    feature_gates: Sequence[str]
    compatibility: ModernVersion | None


def answer(request: CapacityRequest) -> int:
    """Find out and print; the exit code."""
    _check(request)
    # Small files first: what is wrong with them is found before a cluster is read.
    copies = _copies(request)
    shapes = read_shapes(request.shapes) if request.is_need else []
    in_use = None if request.usage is None else nodes_in_use(read_usage(request.usage))
    if in_use is not None and not in_use:
        raise InputError(f"--usage {request.usage}: nothing is measured of any node")
    edition = edition_of(request.cluster, request.compatibility)
    gates = checked_gates(request.feature_gates, edition)
    loaded = load_scheduler_config(request.config_file, gates=gates)
    setup = PlacingSetup(loaded.config, loaded.registry, gates)
    dialects = dialects_of(loaded.config)
    cluster = load_input(
        request.cluster, command="capacity", dialects=dialects, gates=setup.gates
    ).documents
    copies_max = request.limit or COPIES_MAX
    try:
        if request.is_need:
            with progress_bar("Trying sets of nodes") as progress:
                task = progress.add_task("", total=None)
                found = need(
                    cluster,
                    shapes,
                    setup,
                    tries_max=request.tries or TRIES_MAX,
                    on_try=lambda: progress.advance(task),
                )
            print_need(found, request.output)
            return 1 if found.waiting else 0
        if request.is_drain_check:
            node_count = sum(one.raw["kind"] == "Node" for one in cluster)
            with progress_bar("Draining nodes") as progress:
                task = progress.add_task("", total=node_count)
                checked = drain_check(cluster, setup, on_node=lambda _: progress.advance(task))
            print_drain_check(checked, request.output)
            return 0
        if request.is_headroom:
            room = headroom(
                cluster,
                copies,
                setup,
                label=request.pool_label,
                copies_max=copies_max,
                in_use=in_use,
            )
            print_headroom(room, request.output)
            return _code(sum(pool.copies for pool in room.pools), request)
        fitting = fit(cluster, copies or (), setup, copies_max=copies_max)
        print_fit(fitting, request.output)
        return _code(fitting.copies, request)
    except PluginError as error:
        print_error(str(error), "capacity")
        return _PLUGIN_FAILED


def _code(copy_count: int, request: CapacityRequest) -> int:
    return 1 if request.at_least is not None and copy_count < request.at_least else 0


def _check(request: CapacityRequest) -> None:
    asked = [
        name
        for name, is_asked in (
            ("--fit", bool(request.fit) and not request.is_headroom),
            ("--need", request.is_need),
            ("--drain-check", request.is_drain_check),
            ("--headroom", request.is_headroom),
        )
        if is_asked
    ]
    if not asked:
        raise InputError("what to find out? Give --fit FILE, --need, --drain-check or --headroom")
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} are different questions; ask one at a time")
    for option, is_given, question in (
        ("--shape", bool(request.shapes), "--need"),
        ("--tries", request.tries is not None, "--need"),
        ("--pool-label", bool(request.pool_label), "--headroom"),
        ("--usage", request.usage is not None, "--headroom"),
    ):
        if is_given and asked != [question]:
            raise InputError(f"{option} needs {question}")
    for option, value in (("--limit", request.limit), ("--at-least", request.at_least)):
        if value is not None and asked[0] not in ("--fit", "--headroom"):
            raise InputError(f"{option} needs --fit or --headroom")
    if request.at_least is not None and (request.limit or COPIES_MAX) < request.at_least:
        raise InputError(
            f"--at-least {request.at_least} can never be reached: --limit is "
            f"{request.limit or COPIES_MAX}"
        )


def _copies(request: CapacityRequest) -> list[Document] | None:
    """What is copied; None if no file is named."""
    if not request.fit:
        return None
    documents = select_manifests(load_documents([request.fit])).documents
    report_unknown_fields(documents, is_strict=request.cluster.is_strict)
    return documents
