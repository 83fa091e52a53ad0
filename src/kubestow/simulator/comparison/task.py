"""What is sent to workers and what comes back.

Everything is JSON text: a worker on another machine needs the same version of kubestow and the
modules of plugins, but none of the files of the command line.

    Material      the input, the same for all tasks; sent once
    Task          one variant with one seed
    TaskOutcome   the result of a task, or why there is none
"""

from typing import Literal

import msgspec

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.editions import DEFAULT
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.results import RunResult

# Why a task has no result, or a doubtful one: an input that cannot be used, a plugin that raised an
# error, a worker that died, a run that was stopped.
FailureKind = Literal["input", "plugin", "worker", "stopped"]


class SchedulerVariant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A scheduler to compare.

    config        text of a KubeSchedulerConfiguration, or of a Policy for an older version
    config_name   its file, for messages
    plugins       further plugins that are enabled, as `module:Class`
    without       actions of the scenario that are left out, by name or by what they do
    """

    name: str
    version: str = DEFAULT
    config: str = ""
    config_name: str = ""
    plugins: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class PackedFiles(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A scenario file and the files that it names, by their paths in a folder.

    folder   the folder they come from, for messages
    main     the path of the scenario
    """

    folder: str
    main: str
    files: dict[str, bytes]


class RecordedChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An object that appears, changes or goes at a time of a recording."""

    time_s: float
    document: JsonObject
    is_removed: bool = False


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cluster at the start of a recording, and what changed; `start` is a date."""

    start: str
    until_s: float
    documents: list[Document]
    changes: list[RecordedChange]


class Material(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The input of all tasks: documents that are placed as `simulate` does, a scenario with
    further documents, or a recording."""

    name: str
    documents: list[Document] = []
    scenario: PackedFiles | None = None
    # The end of the scenario, if it is another one than its file says.
    until_s: float | None = None
    recorded: RecordedRun | None = None
    # A file of what the pods of a recording used.
    usage: bytes | None = None
    limit_s: float = LIMIT_S
    gates: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`watched` are nodes of interest by pod: what the scheduler found of them when it placed the
    pod comes back as `TaskOutcome.choices`."""

    variant: SchedulerVariant
    seed: int
    watched: dict[str, list[str]] = {}
    has_times: bool = False


class NodeView(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What an attempt found of one node.

    verdict   Feasible, Rejected, NotLookedAt, or Absent if there was no such node
    plugin    that rejected it
    scores    weighted, by plugin; empty if nodes were not scored
    """

    verdict: Literal["Feasible", "Rejected", "NotLookedAt", "Absent"]
    plugin: str = ""
    reason: str = ""
    scores: dict[str, int] = {}
    total: int | None = None


class PodChoice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The attempt that placed a pod: the node, and the views of it and of the watched ones."""

    node: str
    views: dict[str, NodeView]


class PluginTime(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Real time of one plugin at one extension point."""

    plugin: str
    point: str
    calls: int
    seconds: float


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`message` names the file and line where they are known."""

    kind: FailureKind
    message: str


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`run` is missing if nothing came of the task. `duration_s` and `times` are real time and not
    part of what two runs have in common."""

    variant: str
    seed: int
    run: RunResult | None = None
    failure: TaskFailure | None = None
    choices: dict[str, PodChoice] = {}
    times: list[PluginTime] = []
    duration_s: float = 0.0
