"""Reads the parts that scenarios and placement tests share: files, nodes, manifests, durations.

Every error names the file, the line and the field. Not here: actions (`action_reading`), the whole
file (`reading`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kubestow.api.files import Document, check_document, load_documents
from kubestow.api.labels import Selector
from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.known_fields import unknown_fields
from kubestow.apiserver.selectors import parse_label_query
from kubestow.errors import ApiError, InputError
from kubestow.simulator.defaults import NODES_PER_CLUSTER
from kubestow.simulator.node_shapes import NodeShape, node_document
from kubestow.simulator.scenario import arrivals
from kubestow.simulator.scenario.arrivals import Draw
from kubestow.simulator.scenario.document import (
    Distribution,
    Manifest,
    NodeEntry,
    RandomDuration,
)
from kubestow.simulator.scenario.source import FieldPath, SourceText

_TAINT: Final = re.compile(
    r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)$"
)


class PartReader:
    """Reads parts of one text."""

    def __init__(self, source: SourceText, folder: Path | None) -> None:
        """`folder` is that of the files that are named; None: there are none."""
        self.source = source
        self.folder = folder
        # Called with the objects of each file that steps apply.
        self.on_loaded: Callable[[Sequence[Document]], None] = _ignore_documents

    # --- Files --------------------------------------------------------------------------------

    def file(self, path: FieldPath, file: str) -> Path:
        """A file that a field names; it may not exist."""
        if self.folder is None:
            raise self.source.error(path, f'names the file "{file}", but only the text is here')
        return self.folder / file

    def load(self, path: FieldPath, file: str) -> list[Document]:
        """The objects of a file or folder."""
        found = self.file(path, file)
        if (found / "Chart.yaml").is_file():
            raise self.source.error(path, f'"{file}" is a Helm chart; name it with chart')
        try:
            return load_documents([found], on_other=_ignore if found.is_dir() else None)
        except InputError as error:
            raise self.source.error(path, str(error)) from error

    # --- The cluster --------------------------------------------------------------------------

    def cluster(
        self,
        path: FieldPath,
        *,
        files: tuple[str, Sequence[str]],
        nodes: Sequence[NodeEntry],
        objects: Sequence[Manifest],
        priorities: Mapping[str, int],
    ) -> list[Document]:
        """The documents of a cluster whose fields are below a path; `files` has the name of its
        field, too."""
        documents: list[Document] = []
        for name, value in priorities.items():
            place = self.source.place((*path, "priorities", name))
            documents.append(Document(_priority_class(name, value), place))
        for index, file in enumerate(files[1]):
            documents += self.load((*path, files[0], index), file)
        names: set[str] = set()
        for index, entry in enumerate(nodes):
            documents += self._nodes((*path, "nodes", index), entry, names)
        for index, raw in enumerate(objects):
            documents.append(self.manifest((*path, "objects", index), raw))
        return documents

    def _nodes(self, path: FieldPath, entry: NodeEntry, names: set[str]) -> list[Document]:
        place = self.source.place(path)
        made = [Document(node, place) for node in self.node_documents(path, entry)]
        for document in made:
            name: str = document.raw["metadata"]["name"]
            if name in names:
                problem = f'two nodes are called "{name}"; give this entry another name'
                raise self.source.error((*path, "name"), problem)
            names.add(name)
        if len(names) > NODES_PER_CLUSTER:
            problem = f"{len(names)} nodes, expected at most {NODES_PER_CLUSTER}"
            raise self.source.error(path, problem)
        return made

    def node_documents(self, path: FieldPath, entry: NodeEntry) -> list[JsonObject]:
        """The nodes of an entry."""
        taints = self.taints((*path, "taints"), entry.taints)
        shape = NodeShape(
            capacity={name: str(amount) for name, amount in entry.capacity.items()},
            labels=entry.labels,
        )
        nodes: list[JsonObject] = []
        for index in range(entry.count):
            # A single node that joins has the name as it is written.
            name = entry.name if entry.count == 1 else f"{entry.name}-{index}"
            node = node_document(name, index, shape, zones=entry.zones)
            nodes.append({**node, "spec": {"taints": taints}} if taints else node)
        self.manifest(path, nodes[0])
        return nodes

    def manifest(self, path: FieldPath, raw: JsonObject) -> Document:
        """A manifest of the text, checked."""
        document = Document(raw, self.source.place(path))
        if not isinstance(raw.get("kind"), str):
            raise self.source.error(path, 'has no "kind", expected a Kubernetes object')
        for field in unknown_fields(raw):
            hint = f'; did you mean "{field.similar}"?' if field.similar else ""
            inner = (*path, *_steps_of(field.path))
            raise self.source.error(inner, f"unknown field of a {raw['kind']}{hint}")
        check_document(document)
        return document

    def taints(self, path: FieldPath, texts: Sequence[str]) -> list[JsonObject]:
        """Taints that are written as KEY=VALUE:EFFECT."""
        taints: list[JsonObject] = []
        for index, text in enumerate(texts):
            found = _TAINT.match(text)
            if found is None:
                problem = f'is "{text}", expected KEY=VALUE:EFFECT, such as disk=slow:NoSchedule'
                raise self.source.error((*path, index), problem)
            taint: JsonObject = {"key": found["key"], "effect": found["effect"]}
            if found["value"]:
                taint["value"] = found["value"]
            taints.append(taint)
        return taints

    # --- Values -------------------------------------------------------------------------------

    def selector(self, path: FieldPath, text: str) -> Selector | None:
        """A label selector; None if it selects everything."""
        try:
            return parse_label_query(text)
        except ApiError as error:
            raise self.source.error(path, f'is "{text}": {error}') from error

    def draw(self, path: FieldPath, given: RandomDuration | None) -> Draw | None:
        """A duration for each call; None if none is given."""
        if given is None:
            return None
        seconds = self.source.seconds
        if not isinstance(given, Distribution):
            return arrivals.constant(seconds(path, given))
        if given.exponential is not None:
            draw = arrivals.exponential(seconds((*path, "exponential"), given.exponential))
        elif given.uniform is not None:
            least_s = seconds((*path, "uniform", "min"), given.uniform.min)
            most_s = seconds((*path, "uniform", "max"), given.uniform.max)
            if most_s < least_s:
                problem = f"is {given.uniform.max}, less than min"
                raise self.source.error((*path, "uniform", "max"), problem)
            draw = arrivals.uniform(least_s, most_s)
        elif given.log_normal is not None:
            median_s = seconds((*path, "logNormal", "median"), given.log_normal.median)
            draw = arrivals.log_normal(median_s, given.log_normal.sigma)
        else:
            draw = arrivals.choice(
                tuple(
                    seconds((*path, "choice", index), one)
                    for index, one in enumerate(given.choice or ())
                )
            )
        if sum(getattr(given, name) is not None for name in given.__struct_fields__) != 1:
            problem = "expected one of exponential, uniform, logNormal, choice"
            raise self.source.error(path, problem)
        if given.choice == []:
            raise self.source.error((*path, "choice"), "is empty, expected durations")
        return draw


def _ignore_documents(documents: Sequence[Document]) -> None:
    """Most readers need no list of them."""


def _ignore(place: str) -> None:
    """Settings of other programs in a folder are no objects."""


def _priority_class(name: str, value: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _steps_of(path: str) -> Iterator[str | int]:
    for part in re.findall(r"[^.\[\]]+", path):
        yield int(part) if part.isdecimal() else part.strip('"')
