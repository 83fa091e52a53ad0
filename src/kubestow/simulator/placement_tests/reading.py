"""Reads placement tests: every error names the file, the line and the field.

Files that a test names (manifests, charts, configurations) are read and checked too, so that a test
does not end in its middle by a mistake that could be found before.
"""

import itertools
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

import msgspec

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.cluster.documents import namespace_of, value_at
from kubestow.config.feature_gates import parse_gates
from kubestow.editions import DEFAULT, edition_named
from kubestow.editions.edition import Version
from kubestow.errors import ConfigError, InputError
from kubestow.files.reading import files_below, read_file
from kubestow.simulator.comparison.task import SchedulerVariant
from kubestow.simulator.input.pods import without_placements
from kubestow.simulator.placement_tests.cases import (
    CaseStep,
    Expectation,
    FailureKind,
    ForEach,
    PlacementCase,
)
from kubestow.simulator.placement_tests.document import (
    KIND,
    SUFFIX,
    ForEachEntry,
    GivenEntry,
    MatrixEntry,
    PlacementTestDocument,
    TestedCluster,
)
from kubestow.simulator.placement_tests.expecting import ExpectationReader
from kubestow.simulator.placement_tests.schedulers import check_variant, plugin_references
from kubestow.simulator.scenario.action_reading import DOES, ActionReader
from kubestow.simulator.scenario.actions import NodeTarget
from kubestow.simulator.scenario.document import API_VERSION, Chart, StepEntry
from kubestow.simulator.scenario.source import FieldPath, SourceText, near

_FAILURES: Final[tuple[FailureKind, ...]] = ("fail", "drain", "upgrade", "leave", "cordon")
_ZONE: Final = "zone"
_NODE: Final = "node"
# Cases of one test; more are refused.
CASES_PER_TEST: Final = 10_000


def find_tests(paths: Iterable[Path]) -> list[Path]:
    """The files of tests: those that are named, and all of their kind in folders."""
    found: list[Path] = []
    for path in paths:
        if not os.path.exists(path):  # unlike `Path.exists`, also for a name that is too long
            raise InputError(f'there is no file or folder "{path}"')
        if os.path.isdir(path):
            tests = (file for file in files_below(path) if file.name.endswith(SUFFIX))
            found += sorted(file for file in tests if file.is_file())
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def read_test(
    path: Path, *, folder: Path | None = None, plugins: Collection[str] = ()
) -> list[PlacementCase]:
    """The cases of a file; InputError names the place of the first mistake.

    `folder` is where the files of another state are that it names. What is not there is applied as
    if it were empty: it has been added since. `plugins` are those that its configurations may
    import: a test is data, and runs no code that the user has not named.
    """
    source = SourceText.of_file(path)
    if folder is None:
        return _TestReader(source, path.parent, plugins).cases()
    return _TestReader(source, folder, plugins, is_other_state=True).cases()


def parse_test(text: bytes, name: str, folder: Path | None = None) -> list[PlacementCase]:
    """The cases of a text of the caller, which may import any plugin; InputError as `read_test`."""
    return _TestReader(SourceText(name, text), folder, None).cases()


class _Combination(NamedTuple):
    """One of each part of the matrix; empty where the test has none."""

    edition: str
    config: str
    cluster: str
    size: float
    values: str


class _TestReader(ActionReader):
    def __init__(
        self,
        source: SourceText,
        folder: Path | None,
        plugins: Collection[str] | None,
        *,
        is_other_state: bool = False,
    ) -> None:
        """`plugins` may be imported; None: any."""
        super().__init__(source, folder)
        self._plugins = plugins
        self._is_other_state = is_other_state
        self._missing: dict[str, None] = {}
        self._document = source.read(PlacementTestDocument)
        self._expecting = ExpectationReader(self)
        # What several cases share.
        self._clusters: dict[tuple[str, float], list[Document]] = {}
        self._given: dict[str, tuple[list[CaseStep], list[Document]]] = {}
        # The parts of the matrix of which there are several.
        self._varied: set[str] = set()

    def cases(self) -> list[PlacementCase]:
        document, source = self._document, self.source
        if document.api_version != API_VERSION:
            found = document.api_version
            raise source.error(("apiVersion",), f'is "{found}", expected {API_VERSION}')
        if document.kind != KIND:
            raise source.error(("kind",), f'is "{document.kind}", expected {KIND}')
        if (document.cluster is None) is (not document.clusters):
            raise source.error((), "give either cluster, or clusters by name")
        if not document.expect and not any(step.expect for step in document.given):
            raise source.error((), 'the field "expect" is missing: nothing is expected')
        combinations = self._combinations()
        self._check_gates(each.edition for each in combinations)
        if len(combinations) > CASES_PER_TEST:
            problem = f"makes {len(combinations)} cases, expected at most {CASES_PER_TEST}"
            raise source.error(("matrix",), problem)
        expectations = self._expecting.expectations(("expect",), document.expect)
        for_each = tuple(self._for_each())
        return [self._case(each, expectations, for_each) for each in combinations]

    def _check_gates(self, editions: Iterable[str]) -> None:
        for edition in map(edition_named, dict.fromkeys(editions)):
            if not edition.is_modern:
                continue
            try:
                gates = parse_gates(self._document.feature_gates, edition)
            except ConfigError as error:
                raise self.source.error(("featureGates",), str(error)) from error
            if errors := gates.dependency_errors():
                raise self.source.error(("featureGates",), "; ".join(errors))

    def _case(
        self,
        each: _Combination,
        expectations: Sequence[Expectation],
        for_each: tuple[ForEach, ...],
    ) -> PlacementCase:
        document, source = self._document, self.source
        steps, applied = self._steps(each.values)
        documents = self._cluster_of(each.cluster, each.size)
        name = document.name or Path(source.name).name.removesuffix(SUFFIX)
        matrix = {
            part: f"{value:g}" if isinstance(value, float) else value or "default"
            for part, value in each._asdict().items()
            if part in self._varied
        }
        words = ", ".join(f"{part}={value}" for part, value in matrix.items())
        return PlacementCase(
            name=f"{name} [{words}]" if words else name,
            test=name,
            file=source.name,
            matrix=matrix,
            documents=documents,
            variant=self._variant(each),
            gates=tuple(document.feature_gates),
            steps=steps,
            expectations=expectations,
            for_each=for_each,
            missing=tuple(self._missing),
            start_delay_s=source.seconds(("kubelets", "startDelay"), document.kubelets.start_delay),
            stop_s=source.seconds(("kubelets", "stop"), document.kubelets.stop),
            seed=document.seed,
            limit_s=source.seconds(("limit",), document.limit, least_s=1.0),
            sources=_sources((*documents, *applied)),
        )

    # --- The matrix ---------------------------------------------------------------------------

    def _combinations(self) -> list[_Combination]:
        matrix, document = self._document.matrix, self._document
        self._check_matrix(matrix)
        clusters = matrix.clusters or list(document.clusters)
        self._varied = {
            part
            for part, entries in (
                ("edition", matrix.editions),
                ("config", matrix.configs),
                ("cluster", clusters),
                ("size", matrix.sizes),
                ("values", matrix.values),
            )
            if entries
        }
        return [
            _Combination(*parts)
            for parts in itertools.product(
                matrix.editions or [DEFAULT],
                matrix.configs or [document.config],
                clusters or [""],
                [float(size) for size in matrix.sizes] or [1.0],
                matrix.values or [""],
            )
        ]

    def _check_matrix(self, matrix: MatrixEntry) -> None:
        versions = tuple(Version)
        for index, edition in enumerate(matrix.editions):
            if edition not in versions:
                hint = f"; there are {', '.join(versions)}"
                problem = f'there is no edition "{edition}"{near(edition, versions)}{hint}'
                raise self.source.error(("matrix", "editions", index), problem)
        for index, name in enumerate(matrix.clusters):
            known = self._document.clusters
            if name not in known:
                hint = near(name, known) or f"; expected one of {', '.join(known) or 'clusters'}"
                problem = f'there is no cluster "{name}"{hint}'
                raise self.source.error(("matrix", "clusters", index), problem)
        if matrix.values and not any(step.chart is not None for step in self._document.given):
            problem = "are for charts, and no step of given has one"
            raise self.source.error(("matrix", "values"), problem)
        if matrix.sizes and not any(entry.nodes for _, entry in self._cluster_entries()):
            problem = "are for nodes of the cluster, and it has none but those of files"
            raise self.source.error(("matrix", "sizes"), problem)
        if matrix.configs and self._document.config:
            raise self.source.error(("config",), "found with matrix.configs; give one of them")

    def _require_named(self, path: FieldPath, file: Path, config: str) -> None:
        if self._plugins is None:
            return
        unnamed = [name for name in plugin_references(config) if name not in self._plugins]
        if unnamed:
            raise self.source.error(
                path,
                f'"{file}" has plugins that are not built in: {", ".join(unnamed)}. A test imports '
                "no code by itself: if you trust them, name each with --plugin, for example "
                f"--plugin {unnamed[0]}",
            )

    def _variant(self, each: _Combination) -> SchedulerVariant:
        if not each.config:
            return SchedulerVariant(name=each.edition, version=each.edition)
        matrix = self._document.matrix
        is_varied = bool(matrix.configs)
        path: FieldPath = ("config",)
        if is_varied:
            path = ("matrix", "configs", matrix.configs.index(each.config))
        file = self.file(path, each.config)
        try:
            config = read_file(file).decode()
        except OSError as error:
            problem = f'cannot read "{file}": {error.strerror}'
            raise self.source.error(path, problem) from error
        except UnicodeDecodeError as error:
            raise self.source.error(path, f'"{file}" is not UTF-8 text') from error
        self._require_named(path, file, config)
        variant = SchedulerVariant(
            name=each.edition, version=each.edition, config=config, config_name=str(file)
        )
        try:
            check_variant(variant, tuple(self._document.feature_gates))
        except ConfigError as error:
            raise self.source.error(path, str(error)) from error
        return variant

    # --- The cluster --------------------------------------------------------------------------

    def _cluster_entries(self) -> Iterator[tuple[FieldPath, TestedCluster]]:
        if self._document.cluster is not None:
            yield ("cluster",), self._document.cluster
        for name, entry in self._document.clusters.items():
            yield ("clusters", name), entry

    def _cluster_of(self, name: str, size: float) -> list[Document]:
        documents = self._clusters.get((name, size))
        if documents is None:
            path: FieldPath = ("clusters", name) if name else ("cluster",)
            entry = self._document.clusters[name] if name else self._document.cluster
            assert entry is not None, name
            documents = self._clusters[name, size] = self._read_cluster(path, entry, size)
        return documents

    def _read_cluster(self, path: FieldPath, entry: TestedCluster, size: float) -> list[Document]:
        nodes = [
            msgspec.structs.replace(node, count=max(math.ceil(node.count * size), 1))
            for node in entry.nodes
        ]
        documents = self.cluster(
            path,
            files=("files", entry.files),
            nodes=nodes,
            objects=entry.objects,
            priorities=entry.priorities,
        )
        if not any(document.raw.get("kind") == "Node" for document in documents):
            raise self.source.error(path, "has no nodes: give nodes, or files with some")
        return without_placements(documents) if entry.reschedule else documents

    # --- Steps --------------------------------------------------------------------------------

    def _steps(self, values: str) -> tuple[list[CaseStep], list[Document]]:
        """The steps with further values for charts, and the objects that they apply."""
        found = self._given.get(values)
        if found is None:
            applied: list[Document] = []
            self.on_loaded = applied.extend
            steps = [
                self._step(("given", index), _with_values(entry, values))
                for index, entry in enumerate(self._document.given)
            ]
            found = self._given[values] = steps, applied
        return found

    def _step(self, path: FieldPath, entry: GivenEntry) -> CaseStep:
        does = [name for name in ("wait", "expect", *DOES) if getattr(entry, name) is not None]
        if len(does) != 1:
            found = " and ".join(does) or "none of them"
            expected = ", ".join((*DOES, "wait", "expect"))
            raise self.source.error(path, f"found {found}, expected one of {expected}")
        place = self.source.place((*path, does[0]))
        if entry.wait is not None:
            wait_s = self.source.seconds((*path, "wait"), entry.wait, least_s=1e-3)
            return CaseStep(place, wait_s=wait_s)
        if entry.expect is not None:
            read = self._expecting.expectations((*path, "expect"), entry.expect)
            return CaseStep(place, expectations=read)
        return CaseStep(place, action=self.step(path, entry))

    def applied(self, path: FieldPath, entry: StepEntry) -> list[Document]:
        chart = entry.chart
        names = (entry.apply, entry.kustomize, chart.path if isinstance(chart, Chart) else chart)
        named = next((name for name in names if isinstance(name, str)), None)
        if self._is_other_state and named is not None and not self.file(path, named).exists():
            self._missing[named] = None
            return []
        return super().applied(path, entry)

    # --- For each -----------------------------------------------------------------------------

    def _for_each(self) -> Iterator[ForEach]:
        given = self._document.for_each
        path: FieldPath = ("forEach",)
        if isinstance(given, list):
            for index, each in enumerate(given):
                yield self._each((*path, index), each)
        elif given is not None:
            yield self._each(path, given)

    def _each(self, path: FieldPath, given: str | ForEachEntry) -> ForEach:
        entry = ForEachEntry(fail=given) if isinstance(given, str) else given
        kinds: list[FailureKind] = [kind for kind in _FAILURES if getattr(entry, kind) is not None]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none of them"
            problem = f"found {found}, expected one of {', '.join(_FAILURES)}"
            raise self.source.error(path, problem)
        over = cast(str, getattr(entry, kinds[0]))
        place = path if isinstance(given, str) else (*path, kinds[0])
        if not over:
            problem = "is empty, expected node, zone or a label of nodes"
            raise self.source.error(place, problem)
        nodes = NodeTarget()
        if entry.nodes is not None:
            nodes = self.nodes((*path, "nodes"), entry.nodes)
        label = {_NODE: HOSTNAME_LABEL, _ZONE: ZONE_LABEL}.get(over, over)
        return ForEach(
            kind=kinds[0],
            over=_NODE if over == _NODE else label,
            noun=over.rpartition("/")[2],
            at_once=entry.at_once,
            nodes=nodes,
            place=self.source.place(place),
            field=self.source.field(place),
            line=self.source.line(place),
        )


def _with_values(entry: GivenEntry, values: str) -> GivenEntry:
    if not values or entry.chart is None:
        return entry
    chart = Chart(path=entry.chart) if isinstance(entry.chart, str) else entry.chart
    given = [chart.values] if isinstance(chart.values, str) else chart.values
    chart = msgspec.structs.replace(chart, values=[*given, values])
    return msgspec.structs.replace(entry, chart=chart)


def _sources(documents: Iterable[Document]) -> Mapping[tuple[str, str, str], str]:
    return {_name_of(document.raw): document.source for document in documents}


def _name_of(raw: JsonObject) -> tuple[str, str, str]:
    namespace = namespace_of(raw)
    return raw.get("kind", ""), namespace, value_at(raw, "metadata", "name") or ""
