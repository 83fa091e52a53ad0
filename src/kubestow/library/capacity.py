"""How much room there is, found out by placing pods, as `kubestow capacity` does."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kubestow.library.sources import Source, copies_of, documents_of, scheduler_of, texts_of
from kubestow.simulator.capacity import drain_check as drain_checking
from kubestow.simulator.capacity import fit as fitting
from kubestow.simulator.capacity import headroom as rooms
from kubestow.simulator.capacity import need as needing
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.capacity.shapes import read_shapes


def fit(
    *sources: Source,
    copies: Source,
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    copies_max: int = fitting.COPIES_MAX,
    strict: bool = False,
) -> fitting.Fit:
    """How many copies of `copies` (a file or an object) fit into the cluster.

    Raises InputError, and PluginError if an attempt fails; `strict` as in `load_cluster`.
    """
    setup = _setup(config, feature_gates)
    return fitting.fit(
        documents_of(sources, strict=strict, gates=setup.gates),
        copies_of(copies, strict=strict),
        setup,
        copies_max=copies_max,
    )


def need(
    *sources: Source,
    shapes: Sequence[str],
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    tries_max: int = needing.TRIES_MAX,
    strict: bool = False,
) -> needing.Need:
    """The nodes to add so that every pod has one.

    `shapes` are written as the option `--shape`: "name=large,cpu=16,memory=64Gi,price=0.77", or a
    file of Node manifests. Raises InputError, and PluginError if an attempt fails; `strict` as in
    `load_cluster`.
    """
    setup = _setup(config, feature_gates)
    documents = documents_of(sources, strict=strict, gates=setup.gates)
    return needing.need(
        documents, read_shapes(texts_of("shapes", shapes)), setup, tries_max=tries_max
    )


def drain_check(
    *sources: Source,
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    strict: bool = False,
) -> drain_checking.DrainCheck:
    """Which nodes can go, one after the other, so that all their pods find another one.

    Raises InputError, and PluginError if an attempt fails; `strict` as in `load_cluster`.
    """
    setup = _setup(config, feature_gates)
    return drain_checking.drain_check(
        documents_of(sources, strict=strict, gates=setup.gates), setup
    )


def headroom(
    *sources: Source,
    copies: Source | None = None,
    label: str = "",
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    copies_max: int = fitting.COPIES_MAX,
    strict: bool = False,
) -> rooms.Headroom:
    """How many copies fit into each pool of nodes, by default pods of 1 cpu and 1Gi.

    `label` is that of the pools. Raises InputError, and PluginError if an attempt fails; `strict`
    as in `load_cluster`.
    """
    setup = _setup(config, feature_gates)
    return rooms.headroom(
        documents_of(sources, strict=strict, gates=setup.gates),
        None if copies is None else copies_of(copies, strict=strict),
        setup,
        label=label,
        copies_max=copies_max,
    )


def _setup(config: str | Path | None, feature_gates: Iterable[str]) -> PlacingSetup:
    loaded, gates = scheduler_of(config, feature_gates)
    return PlacingSetup(loaded.config, loaded.registry, gates)
