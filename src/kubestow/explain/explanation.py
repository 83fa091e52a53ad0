"""What is said about one pod: the data of `-o json`, and of every other form of it.

The fields and their meaning are in docs/reference/explanation.md, their types in
`explanation.schema.json`; tests compare both with this file. Programs read this: fields are added,
never renamed. Names are camelCase outside.
"""

from typing import Literal

import msgspec

from kubestow.api.meta import JsonObject

Outcome = Literal["Scheduled", "Unschedulable", "Gated", "Excluded", "Error", "Bound"]
Verdict = Literal["Feasible", "Rejected", "NotLookedAt", "Error"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Fields with their default are left out."""


class PodReference(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str
    uid: str = ""


class Victim(_Part, frozen=True, kw_only=True):
    """A pod that is evicted to make another one fit."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0


class ObjectPatch(_Part, frozen=True, kw_only=True):
    """A change of one object: a JSON Patch (RFC 6902). An object that is new has the patch
    `[{"op": "add", "path": "", "value": …}]`, one to delete `[{"op": "remove", "path": ""}]`."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str
    patch: tuple[JsonObject, ...]


class Suggestion(_Part, frozen=True, kw_only=True):
    """A change after which the pod is scheduled.

    kind       what sort of change, a word that stays the same, such as "LowerRequest"
    text       one sentence for people
    patches    the change for programs, one entry per object
    node       where the pod is placed then
    verified   whether the cycle was run on the changed cluster, with that result
    """

    kind: str
    text: str
    patches: tuple[ObjectPatch, ...]
    node: str = ""
    verified: bool = True
