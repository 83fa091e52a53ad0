"""Reads what a step does: the same fields in scenarios and in placement tests.

Not here: when it happens (`reading`), what it does to a cluster (`actions`).
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.simulator.scenario import actions
from kubestow.simulator.scenario.actions import (
    NODE_ACTIONS,
    UPGRADE_S,
    NodeAction,
    NodeTarget,
    ObjectTarget,
    PodTarget,
)
from kubestow.simulator.scenario.arrivals import Draw
from kubestow.simulator.scenario.document import (
    Chart,
    Distribution,
    Nodes,
    NodesEntry,
    Pods,
    Rebalance,
    StepEntry,
    TaintChange,
)
from kubestow.simulator.scenario.part_reading import PartReader
from kubestow.simulator.scenario.rendering import rendered_chart, rendered_kustomization
from kubestow.simulator.scenario.scenario import ScenarioAction
from kubestow.simulator.scenario.source import FieldPath, near
from kubestow.simulator.scenario.world import ScenarioWorld

# The fields of a step that say what it does.
DOES: Final = (
    *NODE_ACTIONS, "upgrade", "join", "taint", "untaint", "scale", "evict", "rebalance",
    "descheduler", "apply", "kustomize", "chart", "delete",
)  # fmt: skip
_LASTING: Final = ("cordon", "drain", "fail", "taint", "upgrade")
_OWNERS: Final = (
    "CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "ReplicationController",
    "StatefulSet",
)  # fmt: skip

# Changes a cluster; the generator is for nodes and durations that are chosen at random.
RandomAction = Callable[[ScenarioWorld, np.random.Generator], None]


class ReadStep(NamedTuple):
    """What a step does; `place` is where that is written."""

    kind: str
    act: RandomAction
    place: str


class ActionReader(PartReader):
    """Reads the steps of one text."""

    def kind_of(self, path: FieldPath, entry: StepEntry) -> str:
        """The one field that says what is done."""
        does = [name for name in DOES if getattr(entry, name) is not None]
        if len(does) != 1:
            found = " and ".join(does) or "none of them"
            raise self.source.error(path, f"found {found}, expected one of {', '.join(DOES)}")
        return does[0]

    def step(self, path: FieldPath, entry: StepEntry) -> ReadStep:
        """What a step does; InputError with the place of what cannot be done."""
        kind = self.kind_of(path, entry)
        if entry.lasts is not None and kind not in _LASTING:
            problem = f"a {kind} has no end; only {', '.join(_LASTING)} have"
            raise self.source.error((*path, "for"), problem)
        lasts = self.draw((*path, "for"), entry.lasts)
        return ReadStep(kind, self._act(path, entry, kind, lasts), self.source.place((*path, kind)))

    def needs_chance(self, entry: StepEntry, kind: str) -> bool:
        """Whether a step has random nodes or durations."""
        given = getattr(entry, kind)
        nodes = given.nodes if isinstance(given, TaintChange) else given
        is_random = isinstance(nodes, NodesEntry) and nodes.random is not None
        return is_random or isinstance(entry.lasts, Distribution)

    def _act(
        self, path: FieldPath, entry: StepEntry, kind: str, lasts: Draw | None
    ) -> RandomAction:
        if entry.upgrade is not None:
            target = self.nodes((*path, kind), entry.upgrade)
            return partial(_upgrade_nodes, target, lasts)
        if kind in NODE_ACTIONS or kind in ("taint", "untaint"):
            action, target = self._node_action(path, entry, kind)
            return partial(_change_nodes, action, target, lasts)
        made = self._object_action(path, entry)
        return lambda world, rng: made(world)

    def _node_action(
        self, path: FieldPath, entry: StepEntry, kind: str
    ) -> tuple[NodeAction, NodeTarget]:
        given = getattr(entry, kind)
        if not isinstance(given, TaintChange):
            return NODE_ACTIONS[kind], self.nodes((*path, kind), given)
        taints = self.taints((*path, kind, "taints"), given.taints)
        do, undo = partial(actions.taint, taints=taints), partial(actions.untaint, taints=taints)
        target = self.nodes((*path, kind, "nodes"), given.nodes)
        if kind == "taint":
            return NodeAction(do, undo=undo), target
        return NodeAction(undo), target

    def nodes(self, path: FieldPath, nodes: Nodes) -> NodeTarget:
        """The nodes that a step is about."""
        if isinstance(nodes, str):
            return NodeTarget(name=nodes)
        if nodes.name is not None and (nodes.selector is not None or nodes.random is not None):
            raise self.source.error(path, "found name and others; give the name alone")
        selector = None
        if nodes.selector is not None:
            selector = self.selector((*path, "selector"), nodes.selector)
        return NodeTarget(nodes.name, selector, nodes.random, nodes.selector or "")

    def pods(self, path: FieldPath, pods: Pods) -> PodTarget:
        """The pods that a step or an expectation is about."""
        if isinstance(pods, str):
            return PodTarget(owner=self._owner(path, pods))
        selector = None
        if pods.selector is not None:
            selector = self.selector((*path, "selector"), pods.selector)
        owner = pods.owner
        if owner is not None:
            owner = self._owner((*path, "owner"), owner)
        if pods.name is not None:
            if owner is not None:
                raise self.source.error((*path, "owner"), "found with a name; give one of them")
            owner = f"Pod/{pods.name}"
        return PodTarget(owner, selector, pods.namespace, pods.selector or "")

    def _owner(self, path: FieldPath, text: str) -> str:
        kind, slash, name = text.partition("/")
        if not slash or not name:
            problem = f'is "{text}", expected what made the pods, such as Deployment/web'
            raise self.source.error(path, problem)
        if kind not in _OWNERS:
            hint = near(kind, _OWNERS) or f"; expected one of {', '.join(_OWNERS)}"
            raise self.source.error(path, f'is "{text}": there is no kind "{kind}"{hint}')
        return text

    def _object_action(self, path: FieldPath, entry: StepEntry) -> ScenarioAction:
        if entry.join is not None:
            nodes = self.node_documents((*path, "join"), entry.join)
            return lambda world: actions.join(world, nodes)
        if entry.scale is not None:
            replicas, given = entry.scale.replicas, entry.scale
            target = ObjectTarget(given.kind, given.api_version, given.namespace, given.name)
            return lambda world: actions.scale(world, target, replicas)
        if entry.evict is not None:
            pods = self.pods((*path, "evict"), entry.evict)
            return lambda world: actions.evict_pods(world, pods)
        if entry.rebalance is not None:
            return self._rebalance((*path, "rebalance"), entry.rebalance)
        if entry.descheduler is not None:
            return self._policy((*path, "descheduler"), entry.descheduler)
        if entry.delete is not None:
            given = entry.delete
            target = ObjectTarget(given.kind, given.api_version, given.namespace, given.name)
            return lambda world: actions.delete(world, target)
        if isinstance(entry.apply, list):
            given = [
                self.manifest((*path, "apply", index), raw) for index, raw in enumerate(entry.apply)
            ]
            self.on_loaded(given)
            raws = [document.raw for document in given]
            return lambda world: actions.apply(world, raws)
        loaded = self.applied(path, entry)
        self.on_loaded(loaded)
        return lambda world: actions.apply_loaded(world, loaded)

    def check_goal(self, path: FieldPath, text: str) -> None:
        """An error with the place if a text is no goal of rebalancing."""
        from kubestow.simulator.rebalance import read_goal

        try:
            read_goal(text)
        except InputError as error:
            raise self.source.error(path, str(error)) from error

    def _rebalance(self, path: FieldPath, given: str | Rebalance) -> ScenarioAction:
        from kubestow.simulator.scenario import rebalancing

        wanted = Rebalance(goal=given) if isinstance(given, str) else given
        self.check_goal(path, wanted.goal)
        return lambda world: rebalancing.rebalance(world, wanted.goal, wanted.max_moves)

    def _policy(self, path: FieldPath, file: str) -> ScenarioAction:
        from kubestow.simulator.rebalance.descheduler.policy import load_policy
        from kubestow.simulator.scenario import rebalancing

        try:
            policy = load_policy(self.file(path, file))
        except InputError as error:
            raise self.source.error(path, str(error)) from error
        return lambda world: rebalancing.run_policy(world, policy)

    def applied(self, path: FieldPath, entry: StepEntry) -> list[Document]:
        """The objects of a file, a folder, a kustomization or a chart."""
        if isinstance(entry.apply, str):
            return self.load((*path, "apply"), entry.apply)
        place = (*path, "kustomize" if entry.chart is None else "chart")
        if entry.chart is None:
            rendered = partial(rendered_kustomization, self.file(place, entry.kustomize or ""))
        else:
            chart = Chart(path=entry.chart) if isinstance(entry.chart, str) else entry.chart
            values = [chart.values] if isinstance(chart.values, str) else chart.values
            files = [self.file((*place, "values"), file) for file in values]
            rendered = partial(rendered_chart, self.file(place, chart.path), files, chart)
        try:
            return rendered()
        except InputError as error:
            raise self.source.error(place, str(error)) from error


def _upgrade_nodes(
    target: NodeTarget, lasts: Draw | None, world: ScenarioWorld, rng: np.random.Generator
) -> None:
    names = [node.name for node in target.choose(world, rng, actions.is_open)]
    away_s = [UPGRADE_S if lasts is None else lasts(rng) for _ in names]
    actions.upgrade(world, list(zip(names, away_s, strict=True)))


def _change_nodes(
    action: NodeAction,
    target: NodeTarget,
    lasts: Draw | None,
    world: ScenarioWorld,
    rng: np.random.Generator,
) -> None:
    for node in target.choose(world, rng, action.is_meant):
        action.do(world, node.name)
        if lasts is not None and action.undo is not None:
            world.later(lasts(rng), partial(action.undo, world, node.name))
