"""What is said about many waiting pods: the data of `kubestow explain --all -o json`.

Fields are added, never renamed; docs/reference/explanation.md describes them.
"""

from typing import Final

import msgspec

from kubestow.explain.explanation import ObjectPatch

# Pods, and owners of pods, that are named of those with one cause.
PODS_NAMED: Final = 5


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every field is written."""


class OwnerCount(_Part, frozen=True, kw_only=True):
    """An owner, as "Deployment shop/web", and how many of the pods are its own."""

    owner: str
    count: int


class Cause(_Part, frozen=True, kw_only=True):
    """Pods that wait for the same reasons.

    reasons       kube-scheduler's texts, that of most nodes first; `reason_codes` are their codes
    evidence      what is behind them; where that differs from pod to pod, of the first pods
    pods          the first of `count`
    """

    text: str
    reasons: tuple[str, ...]
    reason_codes: tuple[str, ...]
    evidence: tuple[str, ...]
    count: int
    pods: tuple[str, ...]
    owners: tuple[OwnerCount, ...]


class SharedRemedy(_Part, frozen=True, kw_only=True):
    """A change, and how many of the pods it places when all of them are placed together."""

    kind: str
    text: str
    places: int
    of: int
    pods: tuple[str, ...]
    patches: tuple[ObjectPatch, ...]
    commands: tuple[str, ...]
    effect: str


class ManyExplanation(_Part, frozen=True, kw_only=True):
    """Why pods wait, and what helps most of them.

    waiting    how many pods wait of those asked for
    fitting    how many of them fit now, all of them placed together
    causes     of the others, that of most pods first
    remedies   the change that places most pods first
    """

    waiting: int
    fitting: int
    causes: tuple[Cause, ...]
    remedies: tuple[SharedRemedy, ...] = ()
    summary: str = ""
