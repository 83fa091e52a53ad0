"""Reads a scenario file: every error names the file, the line and the field.

Files that it names (manifests, CSV) are read and checked too, so that a run does not end in its
middle by a mistake that could be found before.
"""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from kubestow.api.files import Document, check_document, load_documents
from kubestow.api.labels import Selector
from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.known_fields import unknown_fields
from kubestow.apiserver.selectors import parse_label_query
from kubestow.cluster.documents import filled_at, value_at
from kubestow.errors import ApiError, InputError
from kubestow.simulator.defaults import NODES_PER_CLUSTER
from kubestow.simulator.node_shapes import NodeShape, node_document
from kubestow.simulator.scenario import actions, arrivals
from kubestow.simulator.scenario.actions import NODE_ACTIONS, NodeAction, NodeTarget, ObjectTarget
from kubestow.simulator.scenario.arrivals import Draw, When, streams_of
from kubestow.simulator.scenario.csv_arrivals import CsvArrivals
from kubestow.simulator.scenario.document import (
    API_VERSION,
    KIND,
    ActionEntry,
    ArrivalEntry,
    Distribution,
    Duration,
    NodeEntry,
    Nodes,
    NodesEntry,
    RandomDuration,
    ScenarioDocument,
    TaintChange,
    TimingEntry,
)
from kubestow.simulator.scenario.scenario import (
    ArrivalSource,
    Scenario,
    ScenarioAction,
    Step,
    StepSource,
)
from kubestow.simulator.scenario.source import FieldPath, SourceText, parse_seconds
from kubestow.simulator.scenario.world import ScenarioWorld
from kubestow.simulator.virtual_time import EPOCH

_RATE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*/\s*(?P<time>\S+)$")
_TAINT: Final = re.compile(
    r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)$"
)
# The fields of an action that say what it does.
_DOES: Final = (*NODE_ACTIONS, "join", "taint", "untaint", "scale", "apply", "delete")
_LASTING: Final = ("cordon", "drain", "fail", "taint")
# Kinds whose pods end after a duration.
_ENDING: Final = ("Pod", "Job")


def read_scenario(path: Path) -> Scenario:
    """The scenario of a file; InputError names the place of the first mistake."""
    return _Reader(SourceText.of_file(path), path.parent).scenario()


def parse_scenario(text: bytes, name: str) -> Scenario:
    """The scenario of a text, which cannot name files; InputError as `read_scenario`."""
    return _Reader(SourceText(name, text), None).scenario()


class _Reader:
    def __init__(self, source: SourceText, folder: Path | None) -> None:
        """`folder` is that of the files that are named."""
        self._source = source
        self._folder = folder
        self._document = source.read(ScenarioDocument)

    def scenario(self) -> Scenario:
        document, source = self._document, self._source
        if document.api_version != API_VERSION:
            found = document.api_version
            raise source.error(("apiVersion",), f'is "{found}", expected {API_VERSION}')
        if document.kind != KIND:
            raise source.error(("kind",), f'is "{document.kind}", expected {KIND}')
        self._check_names()
        kubelets = document.kubelets
        return Scenario(
            name=document.name,
            until_s=source.seconds(("until",), document.until, least_s=1e-3),
            documents=self._cluster(),
            arrivals=[self._arrivals(*numbered) for numbered in enumerate(document.arrivals)],
            steps=[self._steps(*numbered) for numbered in enumerate(document.actions)],
            places={
                entry.name: source.place(("arrivals", index))
                for index, entry in enumerate(document.arrivals)
            },
            seed=document.seed,
            start=self._start(),
            sample_s=source.seconds(("sampleEvery",), document.sample_every, least_s=1e-3),
            pool_label=document.pool_label,
            start_delay_s=source.seconds(("kubelets", "startDelay"), kubelets.start_delay),
            stop_s=source.seconds(("kubelets", "stop"), kubelets.stop),
        )

    def _check_names(self) -> None:
        """Random numbers come from the names, so no two entries share one."""
        seen: dict[str, str] = {}
        for field, entries in (
            ("arrivals", self._document.arrivals),
            ("actions", self._document.actions),
        ):
            for index, entry in enumerate(entries):
                place = f"{field}[{index}]"
                if entry.name and entry.name in seen:
                    problem = f'"{entry.name}" is also the name of {seen[entry.name]}'
                    raise self._source.error((field, index, "name"), problem)
                seen[entry.name] = place

    def _start(self) -> datetime:
        text = self._document.start
        if text is None:
            return EPOCH
        try:
            start = datetime.fromisoformat(text)
        except ValueError as error:
            problem = f'is "{text}", expected a date such as 2026-01-01T00:00:00Z'
            raise self._source.error(("start",), problem) from error
        return start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)

    # --- The cluster --------------------------------------------------------------------------

    def _cluster(self) -> list[Document]:
        document = self._document
        documents: list[Document] = []
        for name, value in document.priorities.items():
            documents.append(
                Document(_priority_class(name, value), self._source.place(("priorities", name)))
            )
        for index, file in enumerate(document.cluster):
            documents += self._load(("cluster", index), file)
        names: set[str] = set()
        for index, entry in enumerate(document.nodes):
            documents += self._nodes(("nodes", index), entry, names)
        for index, raw in enumerate(document.objects):
            documents.append(self._manifest(("objects", index), raw))
        return documents

    def _file(self, path: FieldPath, file: str) -> Path:
        if self._folder is None:
            raise self._source.error(path, f'names the file "{file}", but only the text is here')
        return self._folder / file

    def _load(self, path: FieldPath, file: str) -> list[Document]:
        found = self._file(path, file)
        try:
            return load_documents([found])
        except InputError as error:
            raise self._source.error(path, str(error)) from error

    def _nodes(self, path: FieldPath, entry: NodeEntry, names: set[str]) -> list[Document]:
        place = self._source.place(path)
        made = [Document(node, place) for node in self._node_documents(path, entry)]
        for document in made:
            name: str = document.raw["metadata"]["name"]
            if name in names:
                problem = f'two nodes are called "{name}"; give this entry another name'
                raise self._source.error((*path, "name"), problem)
            names.add(name)
        if len(names) > NODES_PER_CLUSTER:
            problem = f"{len(names)} nodes, expected at most {NODES_PER_CLUSTER}"
            raise self._source.error(path, problem)
        return made

    def _node_documents(self, path: FieldPath, entry: NodeEntry) -> list[JsonObject]:
        taints = self._taints((*path, "taints"), entry.taints)
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
        self._manifest(path, nodes[0])
        return nodes

    def _manifest(self, path: FieldPath, raw: JsonObject) -> Document:
        """A manifest of the scenario, checked."""
        document = Document(raw, self._source.place(path))
        if not isinstance(raw.get("kind"), str):
            raise self._source.error(path, 'has no "kind", expected a Kubernetes object')
        for field in unknown_fields(raw):
            hint = f'; did you mean "{field.similar}"?' if field.similar else ""
            inner = (*path, *_steps_of(field.path))
            raise self._source.error(inner, f"unknown field of a {raw['kind']}{hint}")
        check_document(document)
        return document

    def _taints(self, path: FieldPath, texts: Sequence[str]) -> list[JsonObject]:
        taints: list[JsonObject] = []
        for index, text in enumerate(texts):
            found = _TAINT.match(text)
            if found is None:
                problem = f'is "{text}", expected KEY=VALUE:EFFECT, such as disk=slow:NoSchedule'
                raise self._source.error((*path, index), problem)
            taint: JsonObject = {"key": found["key"], "effect": found["effect"]}
            if found["value"]:
                taint["value"] = found["value"]
            taints.append(taint)
        return taints

    # --- Arrivals -----------------------------------------------------------------------------

    def _arrivals(self, index: int, entry: ArrivalEntry) -> ArrivalSource:
        path = ("arrivals", index)
        document = self._template(path, entry)
        given = [name for name in ("duration", "leaveAfter") if getattr(entry, _snake(name))]
        if entry.csv is not None:
            for name in (*given, *_timing_fields(entry)):
                raise self._source.error((*path, name), "is a column of the CSV file; leave it out")
            file = self._file((*path, "csv"), entry.csv)
            source = CsvArrivals(file, entry.name, document)
            try:
                source.check()
            except InputError as error:
                raise self._source.error((*path, "csv"), str(error)) from error
            return source
        self._check_in_time(path, entry)
        return arrivals.generated(
            entry.name,
            document,
            self._when(path, entry),
            replicas=entry.replicas,
            duration=self._draw((*path, "duration"), entry.duration),
            leaves_after=self._draw((*path, "leaveAfter"), entry.leave_after),
        )

    def _template(self, path: FieldPath, entry: ArrivalEntry) -> JsonObject:
        if (entry.template is None) is (entry.file is None):
            raise self._source.error(path, "give either template or file: what arrives")
        if entry.template is not None:
            raw = entry.template
            self._manifest((*path, "template"), filled_at(raw, ("metadata", "name"), entry.name))
        else:
            found = self._load((*path, "file"), entry.file or "")
            if len(found) != 1:
                problem = f'"{entry.file}" has {len(found)} objects, expected one'
                raise self._source.error((*path, "file"), problem)
            raw = found[0].raw
        self._check_duration(path, entry, raw)
        return raw

    def _check_duration(self, path: FieldPath, entry: ArrivalEntry, raw: JsonObject) -> None:
        if entry.duration is None:
            return
        if raw["kind"] not in _ENDING:
            problem = f"pods of a {raw['kind']} do not end; use leaveAfter"
            raise self._source.error((*path, "duration"), problem)
        if raw["kind"] == "Pod" and value_at(raw, "spec", "restartPolicy") == "Always":
            problem = "a pod with restartPolicy Always does not end; use leaveAfter"
            raise self._source.error((*path, "duration"), problem)

    def _when(self, path: FieldPath, entry: TimingEntry) -> When:
        given = [name for name in ("at", "every", "poisson") if getattr(entry, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            problem = f"found {found}, expected one of at, every, poisson"
            raise self._source.error((*path, given[1]) if given else path, problem)
        seconds = self._source.seconds
        times = entry.at if isinstance(entry.at, list) else [entry.at or 0]
        is_list = isinstance(entry.at, list)
        return When(
            at_s=()
            if entry.at is None
            else tuple(
                seconds((*path, "at", index) if is_list else (*path, "at"), time)
                for index, time in enumerate(times)
            ),
            every_s=None
            if entry.every is None
            else seconds((*path, "every"), entry.every, least_s=1e-3),
            rate=None if entry.poisson is None else self._rate((*path, "poisson"), entry.poisson),
            from_s=seconds((*path, "from"), entry.from_),
            until_s=math.inf if entry.until is None else seconds((*path, "until"), entry.until),
            limit=entry.count,
        )

    def _check_in_time(self, path: FieldPath, entry: TimingEntry) -> None:
        """InputError for a time at which the scenario is over: nothing would happen then."""
        until_s = self._source.seconds(("until",), self._document.until)
        times = entry.at if isinstance(entry.at, list) else [entry.at]
        given: list[tuple[FieldPath, Duration | None]] = [
            ((*path, "at", index) if isinstance(entry.at, list) else (*path, "at"), time)
            for index, time in enumerate(times)
        ]
        for place, time in (*given, ((*path, "from"), entry.from_)):
            if time is not None and self._source.seconds(place, time) >= until_s:
                problem = f"is {time}, but the scenario ends after {self._document.until} (until)"
                raise self._source.error(place, problem)

    def _rate(self, path: FieldPath, text: str) -> float:
        """Per second."""
        found = _RATE.match(text.strip())
        try:
            if found is None:
                raise ValueError("no rate")
            time = found["time"]
            per_s = float(found["number"]) / parse_seconds(
                time if time[0].isdigit() else f"1{time}"
            )
        except (ValueError, ZeroDivisionError):
            per_s = -1.0
        if not 0 < per_s <= 1e6:
            raise self._source.error(path, f'is "{text}", expected a rate such as 30/h or 2/24h')
        return per_s

    def _draw(self, path: FieldPath, given: RandomDuration | None) -> Draw | None:
        if given is None:
            return None
        seconds = self._source.seconds
        if not isinstance(given, Distribution):
            return arrivals.constant(seconds(path, given))
        if given.exponential is not None:
            draw = arrivals.exponential(seconds((*path, "exponential"), given.exponential))
        elif given.uniform is not None:
            least_s = seconds((*path, "uniform", "min"), given.uniform.min)
            most_s = seconds((*path, "uniform", "max"), given.uniform.max)
            if most_s < least_s:
                problem = f"is {given.uniform.max}, less than min"
                raise self._source.error((*path, "uniform", "max"), problem)
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
            raise self._source.error(path, problem)
        if given.choice == []:
            raise self._source.error((*path, "choice"), "is empty, expected durations")
        return draw

    # --- Actions ------------------------------------------------------------------------------

    def _steps(self, index: int, entry: ActionEntry) -> StepSource:
        path = ("actions", index)
        does = [name for name in _DOES if getattr(entry, name) is not None]
        if len(does) != 1:
            found = " and ".join(does) or "none of them"
            raise self._source.error(path, f"found {found}, expected one of {', '.join(_DOES)}")
        (kind,) = does
        if entry.lasts is not None and kind not in _LASTING:
            problem = f"a {kind} has no end; only {', '.join(_LASTING)} have"
            raise self._source.error((*path, "for"), problem)
        when, lasts = self._when(path, entry), self._draw((*path, "for"), entry.lasts)
        self._check_in_time(path, entry)
        if not entry.name and self._needs_chance(entry, kind):
            raise self._source.error(path, 'the field "name" is missing: chance depends on it')
        place = self._source.place((*path, kind))
        name = entry.name or f"actions[{index}]"
        if kind in NODE_ACTIONS or kind in ("taint", "untaint"):
            action, target = self._node_action(path, entry, kind)

            def steps(seed: int) -> Iterator[Step]:
                times, values = streams_of(seed, name)

                def act(world: ScenarioWorld) -> None:
                    _change_nodes(world, action, target, lasts, values)

                for time_s in when.times(times):
                    yield Step(time_s, act, place)

            return steps
        made = self._object_action(path, entry)

        def plain_steps(seed: int) -> Iterator[Step]:
            for time_s in when.times(streams_of(seed, name).times):
                yield Step(time_s, made, place)

        return plain_steps

    def _needs_chance(self, entry: ActionEntry, kind: str) -> bool:
        given = getattr(entry, kind)
        nodes = given.nodes if isinstance(given, TaintChange) else given
        is_random = isinstance(nodes, NodesEntry) and nodes.random is not None
        return is_random or entry.poisson is not None or isinstance(entry.lasts, Distribution)

    def _node_action(
        self, path: FieldPath, entry: ActionEntry, kind: str
    ) -> tuple[NodeAction, NodeTarget]:
        given = getattr(entry, kind)
        if not isinstance(given, TaintChange):
            return NODE_ACTIONS[kind], self._target((*path, kind), given)
        taints = self._taints((*path, kind, "taints"), given.taints)
        do, undo = partial(actions.taint, taints=taints), partial(actions.untaint, taints=taints)
        target = self._target((*path, kind, "nodes"), given.nodes)
        if kind == "taint":
            return NodeAction(do, undo=undo), target
        return NodeAction(undo), target

    def _target(self, path: FieldPath, nodes: Nodes) -> NodeTarget:
        if isinstance(nodes, str):
            return NodeTarget(name=nodes)
        if nodes.name is not None and (nodes.selector is not None or nodes.random is not None):
            raise self._source.error(path, "found name and others; give the name alone")
        selector = None
        if nodes.selector is not None:
            selector = self._selector((*path, "selector"), nodes.selector)
        return NodeTarget(nodes.name, selector, nodes.random)

    def _selector(self, path: FieldPath, text: str) -> Selector | None:
        try:
            return parse_label_query(text)
        except ApiError as error:
            raise self._source.error(path, f'is "{text}": {error}') from error

    def _object_action(self, path: FieldPath, entry: ActionEntry) -> ScenarioAction:
        if entry.join is not None:
            nodes = self._node_documents((*path, "join"), entry.join)
            return lambda world: actions.join(world, nodes)
        if entry.scale is not None:
            replicas, given = entry.scale.replicas, entry.scale
            target = ObjectTarget(given.kind, given.api_version, given.namespace, given.name)
            return lambda world: actions.scale(world, target, replicas)
        if entry.delete is not None:
            given = entry.delete
            target = ObjectTarget(given.kind, given.api_version, given.namespace, given.name)
            return lambda world: actions.delete(world, target)
        if isinstance(entry.apply, str):
            documents = self._load((*path, "apply"), entry.apply)
        else:
            documents = [
                self._manifest((*path, "apply", index), raw)
                for index, raw in enumerate(entry.apply or ())
            ]
        raws = [document.raw for document in documents]
        return lambda world: actions.apply(world, raws)


def _change_nodes(
    world: ScenarioWorld,
    action: NodeAction,
    target: NodeTarget,
    lasts: Draw | None,
    rng: np.random.Generator,
) -> None:
    for node in target.choose(world, rng, action.is_meant):
        action.do(world, node.name)
        if lasts is not None and action.undo is not None:
            world.later(lasts(rng), partial(action.undo, world, node.name))


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


def _timing_fields(entry: TimingEntry) -> list[str]:
    """The fields about times that are given."""
    default = TimingEntry()
    return [
        name.rstrip("_")
        for name in TimingEntry.__struct_fields__
        if getattr(entry, name) != getattr(default, name)
    ]


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)
