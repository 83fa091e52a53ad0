"""Whether decisions are the same with the answers that a plugin allows to be reused, and without.

Two deciders see the same changes: pods are placed and deleted, nodes come and change.
"""

from collections.abc import Iterator
from typing import Any

from kubestow.api.node import Node
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.engine.decision import Decision
from kubestow.testing.plugin_check.generated import Generator
from kubestow.testing.plugin_check.loading import Loaded, Side

_NODES_AT_FIRST = 8
_STEPS = 40


def reuse_fault(loaded: Loaded, generator: Generator) -> str | None:
    """The first decision that differs."""
    cache = Cache()
    sides = [Side(loaded, reuses_answers=reuses) for reuses in (False, True)]
    for pod in _changes(cache, generator, sides):
        plain, reused = [side.decide(cache, pod) for side in sides]
        if _described(plain) != _described(reused):
            return (
                f"pod {pod.name}: {_result(plain)} by asking every time, "
                f"{_result(reused)} with reused answers"
            )
        if plain.node_name:
            cache.assume_pod(pod.assigned_to(plain.node_name))
    return None


def _changes(cache: Cache, generator: Generator, sides: list[Side]) -> Iterator[PodInfo]:
    """Changes the cluster, and yields the pods to decide on."""
    rng = generator.rng
    nodes: dict[int, Node] = {}

    def put_node(number: int) -> None:
        node = generator.node(number)
        if number in nodes:
            cache.update_node(nodes[number], node)
        else:
            cache.add_node(node)
        nodes[number] = node
        for side in sides:
            side.objects.put(node)

    for number in range(_NODES_AT_FIRST):
        put_node(number)
    for number in range(_STEPS):
        match int(rng.integers(6)):
            case 0:
                put_node(len(nodes))
            case 1:
                put_node(int(rng.integers(len(nodes))))
            case 2:
                _remove_a_pod(cache, generator)
            case _:
                pod = PodInfo(generator.pod(number))
                for side in sides:
                    side.objects.put(pod.pod)
                yield pod


def _remove_a_pod(cache: Cache, generator: Generator) -> None:
    pods = [pod for info in cache.nodes.values() for pod in info.pods]
    if pods:
        cache.forget_pod(pods[int(generator.rng.integers(len(pods)))].pod)


def _described(decision: Decision) -> tuple[Any, ...]:
    scores = decision.scores
    return (
        decision.node_name,
        decision.message,
        decision.feasible.tolist(),
        None if scores is None else scores.total.tolist(),
    )


def _result(decision: Decision) -> str:
    scores = "" if decision.scores is None else f" with {decision.scores.total.max()}"
    return f"{decision.node_name}{scores}" if decision.node_name else decision.message
