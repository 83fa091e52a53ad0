"""Placement tests as functions of Python: the engine of `kubestow test`, for pytest and others.

    cluster = PlacementCluster(nodes=[{"name": "node", "count": 3}])
    cluster.apply("deploy/")
    assert_placed(cluster, "Deployment/web")
    cluster.fail("node-1")
    assert_spread(cluster, "Deployment/web", over="topology.kubernetes.io/zone")

Steps and expectations are those of files, under the same names (docs/guides/placement-tests.md).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.api.pod import key_of
from kubestow.errors import InputError
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.causes import with_causes
from kubestow.simulator.placement_tests.reading import parse_test
from kubestow.simulator.placement_tests.reports.words import verdict_lines
from kubestow.simulator.placement_tests.results import ExpectationVerdict
from kubestow.simulator.placement_tests.state import PlacedCluster

_NAME = "cluster"
_FILE = f"{_NAME}.json"

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _refusing(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Errors name the field and no file: there is none. pytest shows the line of the test."""

    @wraps(function)
    def refuse(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except InputError as error:
            raise InputError(str(error).removeprefix(f"{_FILE}, line 1: ")) from None

    return refuse


class PlacementCluster:
    """A cluster in virtual time. Each step returns when nothing is left to do.

    Raises InputError for what a cluster or a step cannot have. Use it in a `with` block, or `close`
    it.
    """

    @_refusing
    def __init__(
        self,
        *,
        nodes: Sequence[JsonObject] = (),
        files: Sequence[str | Path] = (),
        objects: Sequence[JsonObject] = (),
        priorities: dict[str, int] | None = None,
        config: str | Path = "",
        feature_gates: Sequence[str] = (),
        folder: str | Path = ".",
    ) -> None:
        """`nodes`, `files`, `objects` and `priorities` are the fields of `cluster`, `config` and
        `feature_gates` those of a test. `folder` is that of the files that are named."""
        self._folder = Path(folder)
        self._document: JsonObject = {
            "name": _NAME,
            "cluster": {
                "nodes": list(nodes),
                "files": [str(file) for file in files],
                "objects": list(objects),
                "priorities": priorities or {},
            },
            "config": str(config),
            "featureGates": list(feature_gates),
        }
        self._steps: list[JsonObject] = []
        self._cluster = PlacedCluster(self._case(expect={"placed": "all"}))
        self._cluster.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything that runs."""
        self._cluster.close()

    def copy(self) -> "PlacementCluster":
        """Another cluster with the same steps, which goes on by itself."""
        other = PlacementCluster.__new__(PlacementCluster)
        other._folder, other._document, other._steps = self._folder, self._document, []
        other._cluster = PlacedCluster(self._case(expect={"placed": "all"}))
        other._cluster.start()
        for step in self._steps:
            other.step(**step)
        return other

    # --- Steps --------------------------------------------------------------------------------

    @_refusing
    def step(self, **fields: Any) -> None:
        """A step with the fields of `given`, such as `step(uncordon="node-1")`."""
        (step,) = self._case(given=[fields], expect={"placed": "all"}).steps
        self._cluster.play(step)
        self._steps.append(fields)

    def apply(self, *manifests: str | Path | JsonObject) -> None:
        """Apply files, folders and objects."""
        for given in manifests:
            is_object = isinstance(given, dict)
            self.step(apply=[given] if is_object else str(given))

    def scale(self, workload: str, replicas: int, *, namespace: str = "default") -> None:
        """Scale `Kind/name`."""
        kind, _, name = workload.partition("/")
        target = {"kind": kind, "name": name, "namespace": namespace, "replicas": replicas}
        self.step(scale=target)

    def fail(self, *nodes: str) -> None:
        """Nodes lose power, all at once."""
        self._on_nodes("fail", nodes)

    def drain(self, *nodes: str) -> None:
        self._on_nodes("drain", nodes)

    def cordon(self, *nodes: str) -> None:
        self._on_nodes("cordon", nodes)

    def _on_nodes(self, kind: str, nodes: Sequence[str]) -> None:
        selector = f"kubernetes.io/hostname in ({','.join(nodes)})"
        self.step(**{kind: nodes[0] if len(nodes) == 1 else {"selector": selector}})

    def wait(self, duration: str | float) -> None:
        """Let virtual time pass."""
        self.step(wait=duration)

    # --- Reading ------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [node.metadata.name for node in self._cluster.nodes()]

    @property
    def placements(self) -> dict[str, str]:
        """NAMESPACE/NAME of each pod → its node; empty if it waits."""
        return {key_of(pod): pod.spec.node_name for pod in self._cluster.all_pods()}

    @_refusing
    def verdict(self, **expectation: Any) -> ExpectationVerdict:
        """What came of an expectation: `verdict(placed="all")`."""
        (expected,) = self._case(expect=[expectation]).expectations
        return self._cluster.judge(expected)

    def expect(self, **expectation: Any) -> None:
        """AssertionError if the expectation does not hold, with what was found and what would
        help."""
        __tracebackhide__ = True
        verdict = self.verdict(**expectation)
        if not verdict.holds:
            (explained,) = with_causes(self._cluster, [verdict])
            lines = verdict_lines(explained, "placement")
            raise AssertionError("\n".join(lines))

    def _case(self, **fields: Any) -> PlacementCase:
        text = msgspec.json.encode({**self._document, **fields})
        (case,) = parse_test(text, _FILE, self._folder)
        return case


# --- Assertions ---------------------------------------------------------------------------------


def assert_placed(cluster: PlacementCluster, pods: str | JsonObject = "all", **more: Any) -> None:
    """All pods have a node; `within` and `atLeast` as in files."""
    __tracebackhide__ = True
    cluster.expect(placed={"pods": pods, **more})


def assert_pending(cluster: PlacementCluster, pods: str | JsonObject = "all", **more: Any) -> None:
    """All pods wait; `reason` and `count` as in files."""
    __tracebackhide__ = True
    cluster.expect(pending={"pods": pods, **more})


def assert_on(cluster: PlacementCluster, pods: str | JsonObject, *, nodes: Any) -> None:
    """Pods are on some of the nodes: a name, or {"selector": …}."""
    __tracebackhide__ = True
    cluster.expect(on={"pods": pods, "nodes": nodes})


def assert_never_on(cluster: PlacementCluster, pods: str | JsonObject, *, nodes: Any) -> None:
    """No pod is or was on one of the nodes."""
    __tracebackhide__ = True
    cluster.expect(neverOn={"pods": pods, "nodes": nodes})


def assert_spread(
    cluster: PlacementCluster, pods: str | JsonObject, *, over: str, max_skew: int = 1
) -> None:
    """The numbers of pods in two domains differ by at most the skew."""
    __tracebackhide__ = True
    cluster.expect(spread={"pods": pods, "over": over, "maxSkew": max_skew})


def assert_together(
    cluster: PlacementCluster, pods: str | JsonObject, *, over: str = "kubernetes.io/hostname"
) -> None:
    """All pods are in one domain."""
    __tracebackhide__ = True
    cluster.expect(together={"pods": pods, "over": over})


def assert_apart(
    cluster: PlacementCluster, pods: str | JsonObject, *, over: str = "kubernetes.io/hostname"
) -> None:
    """No two pods are in one domain."""
    __tracebackhide__ = True
    cluster.expect(apart={"pods": pods, "over": over})


def assert_not_evicted(
    cluster: PlacementCluster, pods: str | JsonObject = "all", *, at_most: int = 0
) -> None:
    """At most this many pods lost their node."""
    __tracebackhide__ = True
    cluster.expect(evicted={"pods": pods, "atMost": at_most})


def assert_headroom(cluster: PlacementCluster, of: Any, *, at_least: int) -> None:
    """This many copies of a file or of manifests fit besides."""
    __tracebackhide__ = True
    cluster.expect(headroom={"of": of, "atLeast": at_least})


def for_each(
    cluster: PlacementCluster, kind: str, names: Sequence[str] | None = None
) -> Iterator[tuple[str, PlacementCluster]]:
    """Every node, or each of `names`, with a copy of the cluster in which that happened to it.

    `kind` is fail, drain, upgrade, leave or cordon. The copy ends with the next one.
    """
    for name in cluster.nodes if names is None else names:
        with cluster.copy() as other:
            other.step(**{kind: name})
            yield name, other
