"""Two things that users put into objects and that a rule compares: both grow with the size."""

from collections.abc import Iterator
from typing import Any, Final

from tools.hostile.objects import (
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    ZONE,
    Case,
    Manifest,
    adder,
    expression,
    node,
    pod,
    with_metadata,
)

CASES: Final[list[Case]] = []
case = adder(CASES)

# Nodes that have something to compare with, beside the ordinary ones: a fifteenth of the size.
_PER_NODE: Final = 15


# --- Tolerations and taints ---------------------------------------------------------------------


def _tainted(size: int, effect: str) -> Iterator[Manifest]:
    for number in range(size // _PER_NODE):
        taint = {"key": "dedicated", "value": f"tenant-{number}", "effect": effect}
        yield node(f"tainted-{number}", spec={"taints": [taint]})


def _tolerating(size: int, effect: str, name: str = "hostile") -> Manifest:
    return pod(
        name,
        tolerations=[
            {
                "key": "dedicated",
                "operator": "Equal",
                "value": f"no-tenant-{number}",
                "effect": effect,
            }
            for number in range(size)
        ],
    )


@case(15_000)
def tolerations_and_taints(size: int) -> Iterator[Manifest]:
    yield from _tainted(size, "NoSchedule")
    yield _tolerating(size, "NoSchedule")


@case(15_000)
def tolerations_and_soft_taints(size: int) -> Iterator[Manifest]:
    yield from _tainted(size, "PreferNoSchedule")
    yield _tolerating(size, "PreferNoSchedule")


@case(5)
def pods_with_15_000_tolerations(size: int) -> Iterator[Manifest]:
    yield from _tainted(15_000, "NoSchedule")
    for number in range(size):
        yield _tolerating(15_000, "NoSchedule", f"hostile-{number}")


# --- Node affinity of several expressions, and nodes --------------------------------------------


def _node_affinity(**affinity: Any) -> Manifest:
    return pod(affinity={"nodeAffinity": affinity})


def _two_expressions(size: int) -> list[Any]:
    return [
        {
            "matchExpressions": [
                expression(HOSTNAME, "NotIn", f"x-{number}"),
                expression(ZONE, "Gt", str(number)),
            ]
        }
        for number in range(size)
    ]


@case(8_000)
def node_affinity_terms_of_two_expressions(size: int) -> Iterator[Manifest]:
    yield _node_affinity(**{REQUIRED: {"nodeSelectorTerms": _two_expressions(size)}})


@case(4_500)
def node_affinity_terms_that_match_half(size: int) -> Iterator[Manifest]:
    """Each term matches other nodes, and all together not all."""
    zones = [f"zone-{number}" for number in range(5)]
    terms = [
        {
            "matchExpressions": [
                expression(ZONE, "In", *zones),
                expression(HOSTNAME, "NotIn", f"node-{number}"),
                expression(f"key-{number}", "DoesNotExist"),
            ]
        }
        for number in range(size)
    ]
    yield _node_affinity(**{REQUIRED: {"nodeSelectorTerms": terms}})


@case(7_000)
def node_affinity_preferred_of_two_expressions(size: int) -> Iterator[Manifest]:
    terms = [
        {
            "weight": number % 100 + 1,
            "preference": {
                "matchExpressions": [
                    expression(HOSTNAME, "NotIn", f"node-{number}"),
                    expression(ZONE, "NotIn", f"zone-{number % 10}"),
                ]
            },
        }
        for number in range(size)
    ]
    yield _node_affinity(**{PREFERRED: terms})


@case(8_000)
def node_affinity_labels_and_names(size: int) -> Iterator[Manifest]:
    terms = [
        {
            "matchExpressions": [expression(ZONE, "NotIn", f"zone-{number % 10}")],
            "matchFields": [expression("metadata.name", "NotIn", f"node-{number}")],
        }
        for number in range(size)
    ]
    preferred = [{"weight": 1, "preference": term} for term in terms]
    yield _node_affinity(**{PREFERRED: preferred})


@case(20_000)
def node_affinity_keys_that_one_node_has(size: int) -> Iterator[Manifest]:
    yield node("labelled", labels={f"key-{number}": "a" for number in range(size)})
    expressions = [expression(f"key-{number}", "DoesNotExist") for number in range(size)]
    yield _node_affinity(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}})


# --- Host ports ---------------------------------------------------------------------------------


@case(8_000)
def host_ports_beside_host_ports(size: int) -> Iterator[Manifest]:
    """50 nodes with the ports of one pod each, and a pod with others."""

    def ports(first: int) -> Any:
        return {
            "ports": [
                {
                    "containerPort": 1,
                    "hostPort": (first + number) % 60_000 + 1,
                    "hostIP": f"10.0.{number % 250}.{number % 7}",
                }
                for number in range(size)
            ]
        }

    for number in range(50):
        yield node(f"ported-{number}", labels={"only": "here"})
    for number in range(50):
        yield pod(f"ports-{number}", container=ports(0), nodeName=f"ported-{number}")
    yield pod(container=ports(30_000), nodeSelector={"only": "here"})


# --- Waiting pods and events --------------------------------------------------------------------


@case(300)
def waiting_pods_with_affinity_terms(size: int) -> Iterator[Manifest]:
    """Waiting pods with terms of which only the last requirement fails."""
    for number in range(size):
        terms: list[Any] = [
            {
                "topologyKey": HOSTNAME,
                "labelSelector": {
                    "matchExpressions": [
                        expression(f"key-{number}-{index}", "DoesNotExist"),
                        expression("app", "NotIn", f"value-{number}"),
                    ]
                },
            }
            for index in range(100)
        ]
        terms[-1]["labelSelector"] = {"matchLabels": {f"key-{number}": "no-pod"}}
        affinity = {"podAffinity": {REQUIRED: terms}}
        yield pod(f"waiting-{number}", affinity=affinity)


@case(30)
def waiting_pods_with_node_affinity(size: int) -> Iterator[Manifest]:
    """Nodes come while they wait."""
    for number in range(size):
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": _two_expressions(4_000)}}}
        yield pod(f"waiting-{number}", affinity=affinity)
    for number in range(size):
        yield node(f"new-{number}")


@case(30)
def waiting_pods_with_tolerations(size: int) -> Iterator[Manifest]:
    """Nodes that they do not tolerate come while they wait."""
    nodes = list(_tainted(2 * size * _PER_NODE, "NoSchedule"))
    yield from nodes[:size]
    for number in range(size):
        waiting: Any = _tolerating(4_000, "NoSchedule", f"waiting-{number}").document
        yield Manifest("pods", {**waiting, "spec": {**waiting["spec"], "nodeSelector": {"a": "b"}}})
    yield from nodes[size:]


# --- Terms of pods on nodes, and pods -----------------------------------------------------------


@case(120)
def terms_of_pods_on_nodes(size: int) -> Iterator[Manifest]:
    """Every ordinary pod is compared with all of them: they exclude values that no pod has."""
    for number in range(size):
        terms = [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "topologyKey": (ZONE, HOSTNAME)[index % 2],
                    "labelSelector": {
                        "matchExpressions": [expression("app", "NotIn", f"value-{number}-{index}")]
                    },
                },
            }
            for index in range(size)
        ]
        affinity = {"podAffinity": {PREFERRED: terms}}
        yield pod(f"bound-{number}", nodeName=f"node-{number}", affinity=affinity)


@case(2_000)
def namespace_selectors_and_namespaces(size: int) -> Iterator[Manifest]:
    """Each of twice as many terms selects all namespaces but one."""
    for number in range(size):
        labels = {"team": f"team-{number}", "kind": "tenant"}
        yield Manifest("namespaces", {"metadata": {"name": f"tenant-{number}", "labels": labels}})
    terms = [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchLabels": {"app": "x"}},
            "namespaceSelector": {
                "matchExpressions": [
                    expression("team", "NotIn", f"team-{number}"),
                    expression("kind", "Exists"),
                ]
            },
        }
        for number in range(2 * size)
    ]
    yield pod(affinity={"podAntiAffinity": {REQUIRED: terms}})


# --- Spread constraints -------------------------------------------------------------------------


def _constraints(keys: list[str]) -> list[Any]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": action,
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"app": f"app-{number}"}},
        }
        for number, key in enumerate(keys)
        for action in ("DoNotSchedule", "ScheduleAnyway")
    ]


@case(4_000)
def spread_and_node_affinity(size: int) -> Iterator[Manifest]:
    terms = _two_expressions(size)
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    constraints = _constraints([HOSTNAME, ZONE])
    tolerations: Any = _tolerating(size, "NoSchedule").document["spec"]
    yield pod(
        topologySpreadConstraints=constraints,
        affinity=affinity,
        tolerations=tolerations["tolerations"],
    )


@case(1_500)
def spread_keys_that_one_node_has(size: int) -> Iterator[Manifest]:
    keys = [f"key-{number}" for number in range(size)]
    yield node("labelled", labels=dict.fromkeys(keys, "a"))
    yield pod(topologySpreadConstraints=_constraints(keys))


@case(500)
def spread_keys_that_many_nodes_have(size: int) -> Iterator[Manifest]:
    """A hundred nodes more with all keys, each a domain of its own; only who labels nodes can."""
    keys = [f"key-{number}" for number in range(size)]
    for number in range(100):
        yield node(f"labelled-{number}", labels=dict.fromkeys(keys, f"value-{number}"))
    yield pod(topologySpreadConstraints=_constraints(keys))


@case(4_000)
def anti_affinity_keys_that_one_node_has(size: int) -> Iterator[Manifest]:
    keys = [f"key-{number}" for number in range(size)]
    yield node("labelled", labels=dict.fromkeys(keys, "a"))
    terms = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}} for key in keys]
    yield pod(affinity={"podAntiAffinity": {REQUIRED: terms}})


# --- Images, services ---------------------------------------------------------------------------


@case(8_000)
def images_and_node_images(size: int) -> Iterator[Manifest]:
    """Ten nodes with all images of a pod."""
    images = [{"names": [f"image-{number}:1"], "sizeBytes": 10**9} for number in range(size)]
    for number in range(10):
        yield node(f"imaged-{number}", status={"images": images})
    containers = [{"name": f"c-{number}", "image": f"image-{number}:1"} for number in range(size)]
    yield pod(containers=containers)


@case(8_000)
def services_and_labels(size: int) -> Iterator[Manifest]:
    """A hundredth of as many services, and each selects the pod by all its labels."""
    labels = {f"key-{number}": "a" for number in range(size)}
    for number in range(size // 100):
        yield Manifest(
            "services",
            {
                "metadata": {"name": f"hostile-{number}", "namespace": "default"},
                "spec": {"selector": labels, "ports": [{"port": 80}]},
            },
        )
    yield with_metadata(pod(), labels=labels)
