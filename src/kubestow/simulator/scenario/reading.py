"""Reads a scenario file: every error names the file, the line and the field.

Files that it names (manifests, CSV) are read and checked too, so that a run does not end in its
middle by a mistake that could be found before.
"""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import filled_at, value_at
from kubestow.errors import InputError
from kubestow.simulator.scenario import arrivals
from kubestow.simulator.scenario.action_reading import DOES, ActionReader
from kubestow.simulator.scenario.arrivals import When, streams_of
from kubestow.simulator.scenario.csv_arrivals import CsvArrivals
from kubestow.simulator.scenario.document import (
    API_VERSION,
    KIND,
    ActionEntry,
    ArrivalEntry,
    Duration,
    ScenarioDocument,
    TimingEntry,
)
from kubestow.simulator.scenario.scenario import (
    ArrivalSource,
    Scenario,
    Step,
    StepSource,
)
from kubestow.simulator.scenario.source import FieldPath, SourceText, parse_seconds
from kubestow.simulator.scenario.usage_reading import UsePlanReader
from kubestow.simulator.scenario.world import ScenarioWorld
from kubestow.simulator.traces.any_format import read_trace
from kubestow.simulator.usage.plan import UsagePlan
from kubestow.simulator.virtual_time import EPOCH

_RATE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*/\s*(?P<time>\S+)$")
# Kinds whose pods end after a duration.
_ENDING: Final = ("Pod", "Job")


def read_scenario(path: Path, without: Sequence[str] = ()) -> Scenario:
    """The scenario of a file; InputError names the place of the first mistake.

    `without` are actions that are left out, by their name or by what they do. Chance is as with
    them, and so are the goals whose figures are followed.
    """
    return _Reader(SourceText.of_file(path), path.parent, without).scenario()


def parse_scenario(text: bytes, name: str) -> Scenario:
    """The scenario of a text, which cannot name files; InputError as `read_scenario`."""
    return _Reader(SourceText(name, text), None).scenario()


class _Reader(ActionReader):
    def __init__(
        self, source: SourceText, folder: Path | None, without: Sequence[str] = ()
    ) -> None:
        """`folder` is that of the files that are named, `without` are actions to leave out."""
        super().__init__(source, folder)
        self._document = source.read(ScenarioDocument)
        self._without = without

    def scenario(self) -> Scenario:
        document, source = self._document, self.source
        if document.api_version != API_VERSION:
            found = document.api_version
            raise source.error(("apiVersion",), f'is "{found}", expected {API_VERSION}')
        if document.kind != KIND:
            raise source.error(("kind",), f'is "{document.kind}", expected {KIND}')
        self._check_names()
        return self._with_trace(self._own())

    def _own(self) -> Scenario:
        """The scenario without its trace."""
        document, source = self._document, self.source
        kubelets = document.kubelets
        return Scenario(
            name=document.name,
            until_s=source.seconds(("until",), document.until, least_s=1e-3),
            documents=self.cluster(
                (),
                files=("cluster", document.cluster),
                nodes=document.nodes,
                objects=document.objects,
                priorities=document.priorities,
            ),
            arrivals=[self._arrivals(*numbered) for numbered in enumerate(document.arrivals)],
            steps=[self._steps(*numbered) for numbered in self._actions()],
            places={
                entry.name: source.place(("arrivals", index))
                for index, entry in enumerate(document.arrivals)
            },
            seed=document.seed,
            start=self._start(),
            sample_s=source.seconds(("sampleEvery",), document.sample_every, least_s=1e-3),
            pool_label=document.pool_label,
            goals=self._goals(),
            start_delay_s=source.seconds(("kubelets", "startDelay"), kubelets.start_delay),
            stop_s=source.seconds(("kubelets", "stop"), kubelets.stop),
            usage=self._usage(),
        )

    def _with_trace(self, scenario: Scenario) -> Scenario:
        """The scenario with the nodes, arrivals and use of its trace."""
        given = self._document.trace
        if given is None:
            return scenario
        files = {
            name: None if text is None else self.file(("trace", name), text)
            for name, text in (
                ("pods", given.pods),
                ("nodes", given.nodes),
                ("usage", given.usage),
            )
        }
        assert files["pods"] is not None
        try:
            trace = read_trace(
                given.format,
                pods=files["pods"],
                nodes=files["nodes"],
                usage=files["usage"],
                documents=() if files["nodes"] else scenario.documents,
                start_s=scenario.start.timestamp(),
            )
        except InputError as error:
            raise self.source.error(("trace",), str(error)) from error
        own = {id(document) for document in scenario.documents}
        nodes = [document for document in trace.documents if id(document) not in own]
        usage = scenario.usage
        if trace.usage is not None:
            usage = replace(usage or UsagePlan(), series=trace.usage.series)
        return replace(
            scenario,
            documents=[*scenario.documents, *nodes],
            arrivals=[*scenario.arrivals, *trace.arrivals],
            usage=usage,
        )

    def _usage(self) -> UsagePlan | None:
        if self._document.usage is None:
            return None
        names = [entry.name for entry in self._document.arrivals]
        return UsePlanReader(self, names).plan(self._document.usage)

    def _actions(self) -> list[tuple[int, ActionEntry]]:
        """The actions with their numbers, without those that are left out."""
        actions = list(enumerate(self._document.actions))
        for name in self._without:
            left = [(index, entry) for index, entry in actions if not _is_called(entry, name)]
            if len(left) == len(actions):
                place = self.source.place(("actions",))
                raise InputError(f'{place}: there is no action "{name}" to leave out')
            actions = left
        return actions

    def _goals(self) -> list[str]:
        """The goals to follow: those of the list, and those that plans are made for."""
        goals = self._document.goals
        for index, text in enumerate(goals):
            self.check_goal(("goals", index), text)
        planned = [entry.rebalance for entry in self._document.actions if entry.rebalance]
        return list(
            dict.fromkeys(
                [*goals, *(each if isinstance(each, str) else each.goal for each in planned)]
            )
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
                    raise self.source.error((field, index, "name"), problem)
                seen[entry.name] = place

    def _start(self) -> datetime:
        text = self._document.start
        if text is None:
            return EPOCH
        try:
            start = datetime.fromisoformat(text)
        except ValueError as error:
            problem = f'is "{text}", expected a date such as 2026-01-01T00:00:00Z'
            raise self.source.error(("start",), problem) from error
        return start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)

    # --- Arrivals -----------------------------------------------------------------------------

    def _arrivals(self, index: int, entry: ArrivalEntry) -> ArrivalSource:
        path = ("arrivals", index)
        document = self._template(path, entry)
        given = [name for name in ("duration", "leaveAfter") if getattr(entry, _snake(name))]
        if entry.csv is not None:
            for name in (*given, *_timing_fields(entry)):
                raise self.source.error((*path, name), "is a column of the CSV file; leave it out")
            file = self.file((*path, "csv"), entry.csv)
            source = CsvArrivals(file, entry.name, document)
            try:
                source.check()
            except InputError as error:
                raise self.source.error((*path, "csv"), str(error)) from error
            return source
        self._check_in_time(path, entry)
        return arrivals.generated(
            entry.name,
            document,
            self._when(path, entry),
            replicas=entry.replicas,
            duration=self.draw((*path, "duration"), entry.duration),
            leaves_after=self.draw((*path, "leaveAfter"), entry.leave_after),
        )

    def _template(self, path: FieldPath, entry: ArrivalEntry) -> JsonObject:
        if (entry.template is None) is (entry.file is None):
            raise self.source.error(path, "give either template or file: what arrives")
        if entry.template is not None:
            raw = entry.template
            self.manifest((*path, "template"), filled_at(raw, ("metadata", "name"), entry.name))
        else:
            found = self.load((*path, "file"), entry.file or "")
            if len(found) != 1:
                problem = f'"{entry.file}" has {len(found)} objects, expected one'
                raise self.source.error((*path, "file"), problem)
            raw = found[0].raw
        self._check_duration(path, entry, raw)
        return raw

    def _check_duration(self, path: FieldPath, entry: ArrivalEntry, raw: JsonObject) -> None:
        if entry.duration is None:
            return
        if raw["kind"] not in _ENDING:
            problem = f"pods of a {raw['kind']} do not end; use leaveAfter"
            raise self.source.error((*path, "duration"), problem)
        if raw["kind"] == "Pod" and value_at(raw, "spec", "restartPolicy") == "Always":
            problem = "a pod with restartPolicy Always does not end; use leaveAfter"
            raise self.source.error((*path, "duration"), problem)

    def _when(self, path: FieldPath, entry: TimingEntry | ActionEntry) -> When:
        given = [name for name in ("at", "every", "poisson") if getattr(entry, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            problem = f"found {found}, expected one of at, every, poisson"
            raise self.source.error((*path, given[1]) if given else path, problem)
        seconds = self.source.seconds
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

    def _check_in_time(self, path: FieldPath, entry: TimingEntry | ActionEntry) -> None:
        """InputError for a time at which the scenario is over: nothing would happen then."""
        until_s = self.source.seconds(("until",), self._document.until)
        times = entry.at if isinstance(entry.at, list) else [entry.at]
        given: list[tuple[FieldPath, Duration | None]] = [
            ((*path, "at", index) if isinstance(entry.at, list) else (*path, "at"), time)
            for index, time in enumerate(times)
        ]
        for place, time in (*given, ((*path, "from"), entry.from_)):
            if time is not None and self.source.seconds(place, time) >= until_s:
                problem = f"is {time}, but the scenario ends after {self._document.until} (until)"
                raise self.source.error(place, problem)

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
            raise self.source.error(path, f'is "{text}", expected a rate such as 30/h or 2/24h')
        return per_s

    # --- Actions ------------------------------------------------------------------------------

    def _steps(self, index: int, entry: ActionEntry) -> StepSource:
        path = ("actions", index)
        read = self.step(path, entry)
        when = self._when(path, entry)
        self._check_in_time(path, entry)
        is_random = entry.poisson is not None or self.needs_chance(entry, read.kind)
        if not entry.name and is_random:
            raise self.source.error(path, 'the field "name" is missing: chance depends on it')
        name = entry.name or f"actions[{index}]"

        def steps(seed: int) -> Iterator[Step]:
            times, values = streams_of(seed, name)

            def act(world: ScenarioWorld) -> None:
                read.act(world, values)

            for time_s in when.times(times):
                yield Step(time_s, act, read.place)

        return steps


def _is_called(entry: ActionEntry, name: str) -> bool:
    """Whether an action has the name, or does what the name says."""
    return entry.name == name or (name in DOES and getattr(entry, name) is not None)


def _timing_fields(entry: TimingEntry | ActionEntry) -> list[str]:
    """The fields about times that are given."""
    default = TimingEntry()
    return [
        name.rstrip("_")
        for name in TimingEntry.__struct_fields__
        if getattr(entry, name) != getattr(default, name)
    ]


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)
