"""Two changes of device claims that help together, compared with trying all of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from tests.cache.dice import Dice
from tests.explain.suggestions.brute_force import replaced, without
from tests.explain.suggestions.families import POD, device_class, node, pod, resource_slice
from tests.explain.suggestions.trials import (
    cluster_of,
    documents_of,
    node_in_simulation,
    suggestions_for,
    waiting_pod,
)

from kubestow.api.device import CelDeviceSelector, DeviceSelector, ResourceClaim
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.arrays import ALL_ROWS, IntpArray, Rows
from kubestow.explain.cluster import StillCluster
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import devices
from kubestow.explain.suggestions.apply import applied
from kubestow.explain.suggestions.search import find_remedies
from kubestow.explain.suggestions.stuck_pod import PreparedPod, StuckPod

# What is changed: claim, request, and a selector or "count".
Subject = tuple[str, str, str]
MODELS = ("a1", "b2", "c3")


def request(name: str, count: int, *models: str) -> JsonObject:
    return {
        "name": name,
        "exactly": {
            "deviceClassName": "gpu",
            "count": count,
            "selectors": [{"cel": {"expression": expression(model)}} for model in models],
        },
    }


def expression(model: str) -> str:
    return f'device.attributes["gpu.example.com"].model == "{model}"'


def claim(name: str, *requests: JsonObject) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": list(requests)}},
    }


def cluster_with(nodes: Mapping[str, Sequence[str]], *claims: JsonObject) -> list[JsonObject]:
    """Nodes with devices of these models, and a pod with these claims."""
    names = [each["metadata"]["name"] for each in claims]
    uses = [{"name": name} for name in names]
    return [
        *map(node, nodes),
        device_class(),
        *(resource_slice(name, models) for name, models in nodes.items()),
        *claims,
        pod(
            POD,
            containers=[{"name": "main", "image": "web", "resources": {"claims": uses}}],
            resourceClaims=[{"name": name, "resourceClaimName": name} for name in names],
        ),
    ]


def some_claims(dice: Dice) -> list[JsonObject]:
    nodes = {
        f"n{number}": [dice.choice(MODELS) for _ in range(dice.between(1, 4))]
        for number in range(dice.between(1, 3))
    }

    def some(name: str) -> JsonObject:
        models = [dice.choice((*MODELS, "z9")) for _ in range(dice.between(0, 2))]
        return request(name, dice.between(1, 5), *dict.fromkeys(models))

    match dice.between(0, 2):
        case 0:
            claims = [claim("x", some("a"))]
        case 1:
            claims = [claim("x", some("a"), some("b"))]
        case _:
            claims = [claim("x", some("a")), claim("y", some("a"))]
    return cluster_with(nodes, *claims)


# --- All changes ----------------------------------------------------------------------------------


class Wish(NamedTuple):
    """What one request asks for."""

    number: int
    selectors: tuple[str, ...]


Wishes = dict[tuple[str, str], Wish]  # by claim and request


def wishes_of(claims: Iterable[ResourceClaim]) -> Wishes:
    found: Wishes = {}
    for one in claims:
        for each in one.spec.devices.requests:
            assert each.exactly is not None
            selectors = tuple(item.cel.expression for item in each.exactly.selectors if item.cel)
            found[one.metadata.name, each.name] = Wish(each.exactly.count, selectors)
    return found


def changes(wishes: Wishes) -> Iterator[tuple[Subject, Wishes]]:
    """All that change one thing."""
    for key, (count, selectors) in wishes.items():
        for lower in range(1, count):
            yield (*key, "count"), {**wishes, key: Wish(lower, selectors)}
        for index, selector in enumerate(selectors):
            yield (*key, selector), {**wishes, key: Wish(count, without(selectors, index))}


def helps(cluster: StillCluster, wishes: Wishes) -> bool:
    claims: list[ResourceClaim] = []
    for one in cluster.objects.resource_claims:
        requests: list[Any] = []
        for each in one.spec.devices.requests:
            wish = wishes[one.metadata.name, each.name]
            selectors = [
                DeviceSelector(cel=CelDeviceSelector(expression=text)) for text in wish.selectors
            ]
            new = replaced(each, ("exactly", "count"), wish.number)
            requests.append(replaced(new, ("exactly", "selectors"), tuple(selectors)))
        claims.append(replaced(one, ("spec", "devices", "requests"), tuple(requests)))
    with cluster.changed(*claims):
        return cluster.decide(waiting_pod(cluster)).is_scheduled


def helpful_pairs(cluster: StillCluster, wishes: Wishes) -> dict[frozenset[Subject], list[Wishes]]:
    found: dict[frozenset[Subject], list[Wishes]] = {}
    for first, changed in changes(wishes):
        for second, twice in changes(changed):
            if first < second and helps(cluster, twice):
                found.setdefault(frozenset((first, second)), []).append(twice)
    return found


def subjects_of(before: Wishes, after: Wishes) -> frozenset[Subject]:
    found = set[Subject]()
    for key, wish in before.items():
        found |= {(*key, text) for text in wish.selectors if text not in after[key].selectors}
        if after[key].number != wish.number:
            found.add((*key, "count"))
    return frozenset(found)


def is_exceeded(wishes: Wishes, others: Iterable[Wishes]) -> bool:
    """Whether one of the others asks for more."""
    return any(
        other != wishes and all(other[key].number >= wish.number for key, wish in wishes.items())
        for other in others
    )


@pytest.mark.slow
def test_pairs_are_those_that_trying_all_finds() -> None:
    alone: set[str] = set()
    together: set[str] = set()
    for seed in range(100):
        cluster = cluster_of(documents_of(some_claims(Dice(seed))))
        waiting = waiting_pod(cluster)
        if cluster.decide(waiting).is_scheduled:
            continue
        before = wishes_of(cluster.objects.resource_claims)
        found = [each.change for each in find_remedies(cluster, waiting, limit=99, of_kind=99)]
        kinds = {change.kind for change in found}
        if any(helps(cluster, after) for _, after in changes(before)):
            assert kinds <= {"LowerDeviceCount", "DropDeviceSelector"}, seed
            assert kinds, seed
            alone |= kinds
            continue
        together |= kinds
        expected = helpful_pairs(cluster, before)
        pairs: dict[frozenset[Subject], Wishes] = {}
        for change in found:
            after = {**before, **wishes_of(cast("Any", change.objects))}
            pairs[subjects_of(before, after)] = after
        assert len(found) == len(pairs), seed
        assert pairs.keys() <= expected.keys(), seed
        assert len(pairs) == min(len(expected), devices.PAIRS_FOUND), seed
        for key, after in pairs.items():
            assert after in expected[key], (seed, key)
            assert not is_exceeded(after, expected[key]), (seed, key)
    assert alone == {"LowerDeviceCount", "DropDeviceSelector"}
    assert together == {
        "LowerDeviceCount+LowerDeviceCount",
        "DropDeviceSelector+LowerDeviceCount",
        "DropDeviceSelector+DropDeviceSelector",
    }


# --- Cases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        pytest.param(
            [claim("x", request("a", 4, "z9"))],
            "DropDeviceSelector+LowerDeviceCount",
            id="number-and-selector",
        ),
        pytest.param(
            [claim("x", request("a", 1, "z8", "z9"))],
            "DropDeviceSelector+DropDeviceSelector",
            id="selectors-of-one-request",
        ),
        pytest.param(
            [claim("x", request("a", 1, "z9"), request("b", 1, "z9"))],
            "DropDeviceSelector+DropDeviceSelector",
            id="selectors-of-two-requests",
        ),
        pytest.param(
            [claim("x", request("a", 2)), claim("y", request("a", 2))],
            "LowerDeviceCount+LowerDeviceCount",
            id="numbers-of-two-claims",
        ),
    ],
)
def test_with_a_pair_a_simulation_places_the_pod(claims: list[JsonObject], kind: str) -> None:
    documents = documents_of(cluster_with({"n0": ["a1"], "n1": ["a1", "a1"]}, *claims))
    (found,) = suggestions_for(documents)
    assert found.kind == kind
    assert not node_in_simulation(documents)
    assert node_in_simulation(applied(documents, found)) == found.node


def test_no_pair_is_suggested_where_three_changes_are_needed() -> None:
    claims = claim("x", request("a", 4, "z8", "z9"))
    assert suggestions_for(documents_of(cluster_with({"n0": ["a1", "a1"]}, claims))) == ()


def test_claims_of_one_template_are_changed_together() -> None:
    template = claim("gpus", request("a", 4))
    template["kind"], template["spec"] = "ResourceClaimTemplate", {"spec": template["spec"]}
    raw = cluster_with({"n0": ["a1"] * 4}, template)
    spec = raw[-1]["spec"]
    spec["containers"][0]["resources"]["claims"] = [{"name": "one"}, {"name": "two"}]
    spec["resourceClaims"] = [
        {"name": name, "resourceClaimTemplateName": "gpus"} for name in ("one", "two")
    ]
    documents = documents_of(raw)
    (found,) = suggestions_for(documents)
    assert found.kind == "LowerDeviceCount"
    assert "of request a in the claim template gpus from 4 to 2" in found.text
    assert len(found.patches) == 1
    assert node_in_simulation(applied(documents, found)) == "n0"


@pytest.mark.parametrize("count", [0, 40], ids=["alone", "among-nodes-without-devices"])
def test_a_change_of_devices_may_be_one_of_two_kinds(count: int) -> None:
    raw = cluster_with({"n0": ["a1", "a1"]}, claim("x", request("a", 4)))
    raw[0] = node("n0", cordoned=True)
    others = [node(f"other-{number}", cpu="64", cordoned=True) for number in range(count)]
    documents = documents_of([*others, *raw])
    found = {frozenset(each.kind.split("+")): each for each in suggestions_for(documents)}
    both = found[frozenset(("Uncordon", "LowerDeviceCount"))]
    assert node_in_simulation(applied(documents, both)) == "n0"


ZS = [f"z{number}" for number in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("requests", "on_node"),
    [
        pytest.param([request("a", 3, *ZS[:9])], ["a1", "a1"], id="all-needed"),
        # Without the others each selector finds a device: none of them is needed.
        pytest.param([request("a", 1, *ZS), request("b", 1, *ZS[:2])], ZS, id="none-needed"),
    ],
)
def test_the_search_for_pairs_looks_at_a_limited_number_of_nodes(
    monkeypatch: pytest.MonkeyPatch, requests: list[JsonObject], on_node: list[str]
) -> None:
    nodes = {f"n{number}": on_node for number in range(300)}
    cluster = cluster_of(documents_of(cluster_with(nodes, claim("x", *requests))))
    stuck = StuckPod(cluster, waiting_pod(cluster))
    looked_at, feasible = 0, PreparedPod.feasible

    def counted(self: PreparedPod, rows: Rows = ALL_ROWS) -> IntpArray:
        nonlocal looked_at
        looked_at += len(np.arange(len(self.snapshot))[rows])
        return feasible(self, rows)

    monkeypatch.setattr(PreparedPod, "feasible", counted)
    assert list(devices.pairs_of_device_changes(stuck)) == []
    assert 300 < looked_at <= 300 + 32 * 256 + 64 * 32


# --- what does not exist ---


@pytest.mark.parametrize(
    ("named", "kinds"),
    [
        pytest.param("cards", {"CorrectName", "CreateResourceClaim"}, id="close-to-one"),
        pytest.param("other", {"CreateResourceClaim"}, id="close-to-none"),
    ],
)
def test_a_missing_claim_is_created_or_its_name_put_right(named: str, kinds: set[str]) -> None:
    documents = cluster_with({"n1": ["a1"]}, claim("card", request("one", 1)))
    uses: Any = documents[-1]["spec"]
    uses["resourceClaims"] = [{"name": "card", "resourceClaimName": named}]
    sourced = documents_of(documents)
    found = suggestions_for(sourced)
    assert {each.kind for each in found} == kinds
    for suggestion in found:
        assert node_in_simulation(applied(sourced, suggestion)) == "n1"
    cluster = cluster_of(sourced)
    explained = explain_pod(cluster, waiting_pod(cluster))
    assert explained.outcome == "Gated"
    known = "; there is card" if named == "cards" else ""
    assert [fact.text for fact in explained.facts] == [f"there is no ResourceClaim {named}{known}"]


def test_the_name_of_a_device_class_is_put_right() -> None:
    wrong = request("one", 1)
    wrong["exactly"]["deviceClassName"] = "gpus"
    documents = documents_of(cluster_with({"n1": ["a1"]}, claim("card", wrong)))
    documents = [
        Document(json.loads(json.dumps(each.raw).replace('"gpu"}', '"gpux"}')), each.source)
        for each in documents
    ]
    found = suggestions_for(documents)
    assert [each.kind for each in found] == ["CorrectName"]
    assert found[0].text.startswith("use the device class gpux instead of gpus in the claim card")
    assert node_in_simulation(applied(documents, found[0])) == "n1"
