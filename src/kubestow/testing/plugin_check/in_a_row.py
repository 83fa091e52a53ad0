"""Whether a plugin sees the pods that were placed just before.

A pod is counted on its node as soon as the node is chosen; the stores show that only after the
binding, when several other pods have been decided already. Two deciders place the same pods in a
row: the stores of one show each placement at once, those of the other never do.
"""

from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.errors import PluginError
from kubestow.index.nodes import nodes_of
from kubestow.testing.plugin_check.answers import Asked, PodAnswers
from kubestow.testing.plugin_check.generated import Generator
from kubestow.testing.plugin_check.loading import Loaded, Side

_NODE_COUNT = 3
_POD_COUNT = 16


def in_a_row_fault(loaded: Loaded, generator: Generator) -> str | None:
    """The first pod about which the answers of the two differ."""
    cache = Cache()
    sides = [Side(loaded, reuses_answers=False) for _ in range(2)]
    nodes = [generator.node(number) for number in range(_NODE_COUNT)]
    for node in nodes:
        cache.add_node(node)
    for number in range(_POD_COUNT):
        pod = PodInfo(generator.pod(number))
        for side in sides:
            side.show(cache, nodes, [pod.pod])
        shown, unshown = (_answers(side, pod) for side in sides)
        if shown != unshown:
            return (
                f"pod {pod.name}: other answers before the stores show where the pods before it "
                "went. Count the pods of a node by the third argument of filter_node or by "
                "nodes.infos(), not by handle.objects.pods"
            )
        decision = sides[0].decide_again(pod)
        if decision.node_name:
            placed = pod.assigned_to(decision.node_name)
            cache.assume_pod(placed)
            sides[0].objects.put(placed.pod)
    return None


def _answers(side: Side, pod: PodInfo) -> PodAnswers | str:
    try:
        return Asked(side, pod).answers(nodes_of(side.snapshot))
    except PluginError as error:
        return str(error)
