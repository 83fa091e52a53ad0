"""PodLifeTime, RemovePodsHavingTooManyRestarts, RemoveFailedPods: pods by what became of them."""

from collections.abc import Callable

from kubestow.api.labels import parse_label_selector
from kubestow.api.meta import JsonObject
from kubestow.api.pod_info import PodInfo
from kubestow.cluster.documents import as_object, namespace_of, objects_in, seconds_of, value_at
from kubestow.simulator.rebalance.descheduler.policy import (
    FailedPodsArgs,
    LifeTimeArgs,
    RestartsArgs,
)
from kubestow.simulator.rebalance.descheduler.view import (
    Evict,
    View,
    chooser,
    restart_count,
    states_of,
)

Passes = Callable[[PodInfo], bool]


def life_time(view: View, args: LifeTimeArgs, passes: Passes, evict: Evict) -> None:
    """Evict pods that are older than they may get, the oldest first."""
    is_chosen = chooser(args.namespaces, args.label_selector)
    found: list[tuple[float, str, PodInfo]] = []
    for pod in view.pods():
        document = view.document(pod)
        if document is None or not (is_chosen(pod) and passes(pod)):
            continue
        created_s = seconds_of(value_at(document, "metadata", "creationTimestamp"))
        if created_s is None:
            continue
        most_s = args.max_pod_life_time_seconds
        is_old = most_s is None or view.now_s - created_s > most_s
        states = states_of(document, with_init=args.including_init_containers)
        if is_old and (not args.states or not states.isdisjoint(args.states)):
            found.append((created_s, pod.key, pod))
    for _, _, pod in sorted(found, key=lambda entry: entry[:2]):
        evict(pod)


def restarts(view: View, args: RestartsArgs, passes: Passes, evict: Evict) -> None:
    """Evict pods whose containers were restarted at least as often as the threshold."""
    is_chosen = chooser(args.namespaces, args.label_selector)
    with_init = args.including_init_containers
    for seen in view.nodes:
        for pod in view.pods_on(seen.name):
            document = view.document(pod)
            if document is None or not (is_chosen(pod) and passes(pod)):
                continue
            count = restart_count(document, with_init=with_init)
            states = states_of(document, with_init=with_init)
            if count >= args.pod_restart_threshold and (
                not args.states or not states.isdisjoint(args.states)
            ):
                evict(pod)


def failed_count(view: View, args: FailedPodsArgs, *, with_bare: bool) -> int:
    """How many pods that have failed are deleted. Nothing is placed in their stead."""
    return sum(
        value_at(document, "status", "phase") == "Failed" and _is_chosen(view, document, args)
        for document in view.documents.values()
        if with_bare or value_at(document, "metadata", "ownerReferences")
    )


def _is_chosen(view: View, document: JsonObject, args: FailedPodsArgs) -> bool:
    owners = objects_in(value_at(document, "metadata", "ownerReferences"))
    if any(owner.get("kind") in args.exclude_owner_kinds for owner in owners):
        return False
    if not args.namespaces.has(namespace_of(document)):
        return False
    labels = as_object(value_at(document, "metadata", "labels"))
    if args.label_selector and not parse_label_selector(args.label_selector).matches(labels):
        return False
    states = states_of(document, with_init=args.including_init_containers)
    if args.reasons and states.isdisjoint(args.reasons):
        return False
    created_s = seconds_of(value_at(document, "metadata", "creationTimestamp"))
    least_s = args.min_pod_lifetime_seconds
    return least_s is None or created_s is None or view.now_s - created_s >= least_s
