"""A pod that is being put together, and the objects that come and go with it."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from kubestow.api.meta import JsonObject

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


class PodDraft:
    """`word` is in no object that was made before."""

    def __init__(
        self, number: int, namespace: str, rng: np.random.Generator, nodes: Sequence[str]
    ) -> None:
        self.number = number
        self.name = f"pod-{number}"
        self.word = f"x{number}"
        self.namespace = namespace
        self.rng = rng
        # Some node: the one that all parts of this pod name.
        self.node = nodes[int(rng.integers(len(nodes)))]
        self.labels: dict[str, str] = {}
        self.requests: dict[str, str] = {}
        self.container: JsonObject = {"name": "main", "image": "app"}
        self.spec: JsonObject = {}
        self.owners: list[JsonObject] = []
        # Created before the pod, in this order, and deleted after it.
        self.companions: list[JsonObject] = []
        # It can never be placed, and is deleted while it waits.
        self.is_hopeless = False

    @property
    def selector(self) -> JsonObject:
        """Matches this pod and no other."""
        return {"matchLabels": {"word": self.word}}

    def add_volume(self, **source: Any) -> None:
        volumes: list[JsonObject] = self.spec.setdefault("volumes", [])
        volumes.append({"name": f"volume-{len(volumes)}", **source})

    def add_affinity(self, kind: str, rule: str, *terms: JsonObject) -> None:
        """`rule` is required or preferred."""
        affinity: JsonObject = self.spec.setdefault("affinity", {}).setdefault(kind, {})
        affinity.setdefault(f"{rule}DuringSchedulingIgnoredDuringExecution", []).extend(terms)

    def add_claim(self, **source: Any) -> None:
        claims: list[JsonObject] = self.spec.setdefault("resourceClaims", [])
        claims.append({"name": f"claim-{self.word}-{len(claims)}", **source})

    def add_companion(
        self,
        api_version: str,
        kind: str,
        *,
        name: str = "",
        is_namespaced: bool = True,
        **parts: Any,
    ) -> str:
        """Add an object, by default with a new name; returns the name."""
        name = name or f"{self.word}-{len(self.companions)}"
        metadata: JsonObject = {"name": name}
        if is_namespaced:
            metadata["namespace"] = self.namespace
        self.companions.append(
            {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}
        )
        return name

    def document(self) -> JsonObject:
        metadata: JsonObject = {"name": self.name, "namespace": self.namespace}
        metadata |= {"labels": self.labels, "ownerReferences": self.owners}
        # Of extended resources a container gets what it requests.
        limits = {name: amount for name, amount in self.requests.items() if "/" in name}
        resources = {"requests": self.requests, "limits": limits}
        container = {**self.container, "resources": resources}
        return {"metadata": metadata, "spec": {"containers": [container], **self.spec}}
