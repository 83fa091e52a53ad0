"""Objects that lose their API version, or that the other API server completes in another way."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, first_condition, is_assigned, key_of
from kubestow.cluster.documents import value_at
from kubestow.editions.noticed import NoticedChanges
from kubestow.engine.failure import POD_SCHEDULED, REASON_SCHEDULER_ERROR
from kubestow.simulator.upgrade.pair import EditionPair
from kubestow.simulator.upgrade.report import Effect, UpgradeFinding

_POD_LEVEL: Final = 17
_BINDING: Final = 7
_BIND_FAILED: Final = 'running Bind plugin "DefaultBinder": '
# What clients make of the answers 500 and 503, and of a connection that is refused.
_PASSING: Final = (
    "Internal error occurred",
    "an error on the server",
    "the server is currently unable to handle the request",
    "connection refused",
)


class LostObjects(NamedTuple):
    """What is found, and the documents that both versions have."""

    findings: tuple[UpgradeFinding, ...]
    others: list[Document]


def lost_objects(
    documents: Sequence[Document], noticed: NoticedChanges, *, is_back: bool
) -> LostObjects:
    """The objects whose API version is gone afterwards."""
    lost: dict[str, str] = {}
    for api in noticed.apis:
        gone, kept = ((api.before,), api.after) if not is_back else (api.after, (api.before,))
        lost |= dict.fromkeys(gone, f"is not served any more, but {kept[0]} is; {api.advice}")
    findings: list[UpgradeFinding] = []
    others: list[Document] = []
    for document in documents:
        version = str(document.raw.get("apiVersion", ""))
        if version not in lost:
            others.append(document)
            continue
        where = f"{described(document.raw)} ({document.source})"
        text = f"{version} {lost[version]}"
        findings.append(UpgradeFinding(effect=Effect.REFUSED, where=where, text=text))
    return LostObjects(tuple(findings), others)


def described(raw: JsonObject) -> str:
    """Kind and name of an object."""
    namespace = value_at(raw, "metadata", "namespace")
    name = value_at(raw, "metadata", "name")
    return f"{raw.get('kind')} {namespace}/{name}" if namespace else f"{raw.get('kind')} {name}"


def failed_binding(pod: Pod) -> UpgradeFinding | None:
    """What the last attempt of a waiting pod shows, if its binding failed for a moment only."""
    condition = first_condition(pod.status.conditions, POD_SCHEDULED)
    if is_assigned(pod) or condition is None or condition.reason != REASON_SCHEDULER_ERROR:
        return None
    _, _, answer = condition.message.partition(_BIND_FAILED)
    if not any(text in answer for text in _PASSING):
        return None
    return UpgradeFinding(
        effect=Effect.RETRIED,
        where=f"Pod {key_of(pod)}",
        text=f"its binding failed: {answer}",
        change=_BINDING,
    )


def failed_bindings(pods: Iterable[Pod]) -> tuple[UpgradeFinding, ...]:
    return tuple(found for found in map(failed_binding, pods) if found is not None)


def completed_pods(pair: EditionPair) -> tuple[UpgradeFinding, ...]:
    """Pods whose requests and limits as a whole are others when they are created."""
    found: list[UpgradeFinding] = []
    for pod in pair.older.objects.pods:
        other = pair.newer.objects.pods.get(pod.metadata.namespace, pod.metadata.name)
        if other is None or pod.spec.resources == other.spec.resources:
            continue
        found.append(
            UpgradeFinding(
                effect=Effect.COMPLETED,
                where=f"Pod {key_of(pod)}",
                text="its pod-level requests and limits are completed in another way when it is "
                "created",
                change=_POD_LEVEL,
            )
        )
    return tuple(found)
