"""What a page knows: a state, changed by batches. It follows docs/reference/page.md alone."""

from typing import Any

import msgspec

NODE_COLUMNS = (
    "id",
    "name",
    "groups",
    "unschedulable",
    "ready",
    "taints",
    "allocatable",
    "requested",
    "created",
)
POD_COLUMNS = (
    "key",
    "node",
    "place",
    "priority",
    "owner",
    "requests",
    "reason",
    "rejectors",
    "terminating",
    "created",
)


class PageModel:
    def __init__(self, state: dict[str, Any]) -> None:
        self.seq: int = state["seq"]
        self.words: dict[str, list[Any]] = {key: [*each] for key, each in state["words"].items()}
        self.nodes = {row["id"]: row for row in _rows(state["nodes"], NODE_COLUMNS)}
        self.pods = {row["key"]: row for row in _rows(state["pods"], POD_COLUMNS)}
        self.queue: dict[str, Any] = state["queue"]
        self.attempts: list[list[Any]] = list(state["attempts"])
        self.series = {point[0]: point for point in state["series"]}
        self.clock: dict[str, Any] = state["clock"]

    def apply(self, batch: dict[str, Any]) -> None:
        if batch["seq"] <= self.seq:
            return
        assert batch["seq"] == self.seq + 1, (batch["seq"], self.seq)
        self.seq = batch["seq"]
        self.clock = batch["clock"]
        for key, new in batch.get("words", {}).items():
            self.words[key] += new
        nodes, pods = batch.get("nodes", {}), batch.get("pods", {})
        for row in nodes.get("set", ()):
            self.nodes[row[0]] = dict(zip(NODE_COLUMNS, row, strict=True))
        for gone in nodes.get("gone", ()):
            del self.nodes[gone]
        for row in pods.get("set", ()):
            self.pods[row[0]] = dict(zip(POD_COLUMNS, row, strict=True))
        for gone in pods.get("gone", ()):
            self.pods.pop(gone, None)
        self.queue = batch.get("queue", self.queue)
        self.attempts += batch.get("attempts", ())
        self.series |= {point[0]: point for point in batch.get("series", ())}

    def shown(self) -> dict[str, Any]:
        """What is on the page, with words instead of numbers."""
        names = {node["id"]: node["name"] for node in self.nodes.values()}
        resources = [each["name"] for each in self.words["resources"]]
        return {
            "nodes": {
                node["name"]: {
                    **{key: node[key] for key in ("unschedulable", "ready", "taints")},
                    "groups": _named(self.words["groupings"], node["groups"]),
                    "allocatable": _named(resources, node["allocatable"]),
                    "requested": _named(resources, node["requested"]),
                }
                for node in self.nodes.values()
            },
            "pods": {
                key: {
                    **{each: pod[each] for each in ("place", "priority", "terminating", "created")},
                    "node": names.get(pod["node"], ""),
                    "owner": self.words["owners"][pod["owner"]],
                    "reason": self.words["reasons"][pod["reason"]],
                    "rejectors": self.words["rejectors"][pod["rejectors"]],
                    "requests": _named(resources, self.words["requests"][pod["requests"]]),
                }
                for key, pod in self.pods.items()
            },
            "places": self.queue["places"],
            "rejectors": {
                self.words["rejectors"][index]: count for index, count in self.queue["rejectors"]
            },
        }


def as_json(sent: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(sent))


def _rows(columns: dict[str, list[Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    assert tuple(columns) == names
    values = zip(*(columns[name] for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in values]


def _named(names: list[str], values: list[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(names, values, strict=False) if value}
