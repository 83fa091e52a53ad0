"""Bugs a scheduler could have, each put back by replacing one function, are found by seeds."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kubestow.cache.cache import Cache
from kubestow.cluster.election import LeaderElector
from kubestow.cluster.informer import Informer
from kubestow.engine.bind import Binder
from kubestow.engine.failure import FailureHandler
from kubestow.engine.handlers import EventHandlers
from kubestow.plugins.default_binder import DefaultBinder
from kubestow.queue.in_flight import InFlight
from kubestow.queue.queue import SchedulingQueue
from kubestow.service.leadership import Leadership
from kubestow.testing.faults.plan import make_plan
from kubestow.testing.faults.simulation import run_plan

# How many seeds a bug may need.
SEEDS_MAX = 12


class Bug(NamedTuple):
    name: str
    owner: type
    method: str
    replacement: Callable[..., Any]
    # Seeds from here on are tried until one finds it.
    first_seed: int


async def _never_bound(self: Any, pod: Any, node_name: str) -> bool:
    return False


def _forgets_nothing(self: Any, pod: Any) -> bool:
    return True


def _nothing(*arguments: Any, **options: Any) -> None:
    return None


def _keeps_vanished(self: Any, items: Any) -> None:
    for item in items:
        self._put(item)


async def _skips_missed(self: Any) -> Any:
    """Watches from the newest version instead of the last one seen."""
    while True:
        try:
            listing = await self._fetch("0")
        except Exception:
            await asyncio.sleep(1)
            continue
        return listing.watch


def _drops_failed(self: Any, queued_pod: Any) -> bool:
    self._queue.done(queued_pod.uid)
    return True


async def _returns(self: Any) -> None:
    return None


async def _always_renewed(self: Any) -> bool:
    return True


def _ignores_assignment(self: Any, old: Any, new: Any) -> None:
    """A pod that was bound stays in the queue."""
    if not old.spec.node_name and new.spec.node_name:
        self._cache_add(new)
    elif old.spec.node_name:
        self._cache_update(old, new)
    elif self._is_responsible(old):
        self._queue_update(old, new)


def _adds_silently(self: Any, node: Any) -> None:
    self._cache.add_node(node)


def _deletes_silently(self: Any, pod: Any) -> None:
    self._cache.remove_pod(pod)


def _confirms_nothing(self: Any, pod: Any) -> None:
    if pod.uid not in self._pods:
        self._add(pod)


BUGS = (
    Bug("a lost answer counts as a failure", DefaultBinder, "_is_bound", _never_bound, 103),
    Bug("a failed binding keeps its room", Binder, "_forget", _forgets_nothing, 4),
    Bug("vanished objects stay after a new list", Informer, "_replace", _keeps_vanished, 0),
    Bug("a watch that broke misses events", Informer, "_watch_again", _skips_missed, 4),
    Bug("a failed pod does not go back", FailureHandler, "_requeue", _drops_failed, 0),
    Bug("attempts never end", InFlight, "done", _nothing, 0),
    Bug("backoffs never end", SchedulingQueue, "flush_backoff_completed", _nothing, 4),
    Bug("a new node wakes no pod", EventHandlers, "node_added", _adds_silently, 40),
    Bug("a deleted pod wakes no pod", EventHandlers, "_cache_delete", _deletes_silently, 0),
    Bug("unseen deletions are ignored", EventHandlers, "pod_deleted_unseen", _nothing, 0),
    Bug("bound pods stay in the queue", EventHandlers, "pod_updated", _ignores_assignment, 45),
    Bug("a lease is never lost", LeaderElector, "_renew_in_time", _always_renewed, 0),
    Bug("a paused leader goes on binding", Leadership, "wait_valid", _returns, 134),
    Bug("assumed pods are not confirmed", Cache, "add_pod", _confirms_nothing, 0),
)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_that_is_put_back_is_found(
    bug: Bug, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    monkeypatch.setattr(bug.owner, bug.method, bug.replacement)
    seeds = range(bug.first_seed, bug.first_seed + SEEDS_MAX)
    assert any(run_plan(make_plan(seed)).broken for seed in seeds)
