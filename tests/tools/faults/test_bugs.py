"""Bugs a scheduler could have, each put back by replacing one function, are found by seeds."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from kubestow.cache.cache import Cache
from kubestow.cache.trial import SnapshotTrial
from kubestow.cluster.election import LeaderElector
from kubestow.cluster.http import session
from kubestow.cluster.informer import Informer
from kubestow.editions.edition import Version
from kubestow.editions.v1_37.groups.trial import WholeTrial
from kubestow.editions.v1_37.queue.group_queue import GroupQueue
from kubestow.engine.bind import Binder
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.condition import ConditionWriter
from kubestow.engine.groups.submit import Submitter
from kubestow.engine.handlers import EventHandlers
from kubestow.errors import GoneError
from kubestow.framework.events import Hint
from kubestow.framework.waiting import WaitingPods
from kubestow.plugins.default_binder import DefaultBinder
from kubestow.plugins.gang_scheduling import GangScheduling
from kubestow.plugins.volume_binding.binding import VolumeBinder
from kubestow.queue.in_flight import InFlight
from kubestow.queue.queue import SchedulingQueue
from kubestow.service.leadership import Leadership
from tools.faults.plan import make_plan
from tools.faults.simulation import run_plan

# How many seeds a bug may need.
SEEDS_PER_COMPARISON = 12
_FLUSH = "flush_unschedulable_leftover"


class Bug(NamedTuple):
    name: str
    owner: type | ModuleType
    method: str
    replacement: Callable[..., Any]
    # Seeds from here on are tried until one finds it; a short run that does comes first.
    first_seed: int
    edition: Version = Version.V1_36


def _loses_members(self: Any, entry: Any, status: Any) -> None:
    self._pending, self._popped = {}, None


async def _never_bound(self: Any, pod: Any, node_name: str) -> bool:
    return False


def _forgets_nothing(self: Any, pod: Any) -> bool:
    return True


def _nothing(*arguments: Any, **options: Any) -> None:
    return None


async def _keeps_vanished(self: Any, items: Any, undecoded: Any) -> None:
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


_UPDATED = EventHandlers.pod_updated


def _ignores_assignment(self: Any, old: Any, new: Any) -> None:
    """A pod that was bound stays in the queue."""
    is_same = old.metadata.uid == new.metadata.uid
    if is_same and not old.spec.node_name and new.spec.node_name:
        self._cache_add(new)
    else:
        _UPDATED(self, old, new)


def _adds_silently(self: Any, node: Any) -> None:
    self._cache.add_node(node)


def _deletes_silently(self: Any, pod: Any) -> None:
    self._cache.remove_pod(pod)


def _confirms_nothing(self: Any, pod: Any) -> None:
    if pod.uid not in self._pods:
        self._add(pod)


async def _bound_at_once(self: Any, written: Any, pod: Any, node_name: str) -> None:
    return None


def _no_patience(head: Any) -> float | None:
    """Repeats at once."""
    return 0.0 if head.status == 429 else None


async def _resumes_after_410(self: Any) -> None:
    """Goes on from the newest version instead of listing again."""
    await self._list()
    while True:
        with suppress(GoneError):
            await self._follow(self._watch)
        self._watch = await _skips_missed(self)


def _never_waits(self: Any, state: Any, pod: Any, node_name: str) -> Any:
    return None, 0


def _wakes_none(self: Any, pod: Any, old: Any, new: Any) -> Hint:
    return Hint.SKIP


BUGS = (
    Bug("a lost answer counts as a failure", DefaultBinder, "_is_bound", _never_bound, 7),
    Bug("a failed binding keeps its room", Binder, "_forget", _forgets_nothing, 11),
    Bug("vanished objects stay after a new list", Informer, "_replace", _keeps_vanished, 1),
    Bug("a watch that broke misses events", Informer, "_watch_again", _skips_missed, 8),
    Bug("a failed pod does not go back", FailureHandler, "_requeue", _drops_failed, 0),
    Bug("attempts never end", InFlight, "done", _nothing, 11),
    Bug("backoffs never end", SchedulingQueue, "flush_backoff_completed", _nothing, 1),
    Bug("a new node wakes no pod", EventHandlers, "node_added", _adds_silently, 31),
    Bug("a deleted pod wakes no pod", EventHandlers, "_cache_delete", _deletes_silently, 8),
    Bug("unseen deletions are ignored", EventHandlers, "pod_deleted_unseen", _nothing, 1),
    Bug("bound pods stay in the queue", EventHandlers, "pod_updated", _ignores_assignment, 4),
    Bug("a lease is never lost", LeaderElector, "_renew_in_time", _always_renewed, 8),
    Bug("a paused leader goes on binding", Leadership, "wait_valid", _returns, 4),
    Bug("assumed pods are not confirmed", Cache, "add_pod", _confirms_nothing, 8),
    Bug("a 410 is not followed by a list", Informer, "_list_and_follow", _resumes_after_410, 1),
    Bug("Retry-After is ignored", session, "retry_after_s", _no_patience, 27),
    Bug("a late volume counts as bound", VolumeBinder, "_wait_bound", _bound_at_once, 4),
    Bug("pods stay at Permit after their wait", WaitingPods, "remove", _nothing, 0),
    Bug("parked pods are never flushed", SchedulingQueue, _FLUSH, _nothing, 8),
    Bug("events of ended attempts are kept", InFlight, "_drop_unneeded", _nothing, 8),
    Bug("a gang is placed in parts", GangScheduling, "permit", _never_waits, 64),
    Bug("a trial of a gang is not undone", SnapshotTrial, "undo", _nothing, 19),
    Bug("members do not go back", Submitter, "_send_back", _nothing, 19),
    Bug("a new group wakes no member", GangScheduling, "_hint_for_group", _wakes_none, 19),
    Bug("conditions of groups are not written", ConditionWriter, "start_write", _nothing, 19),
    Bug("v1.37: members are lost", GroupQueue, "group_done", _loses_members, 24, Version.V1_37),
    Bug("v1.37: trials are not undone", WholeTrial, "undo", _nothing, 24, Version.V1_37),
)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_that_is_put_back_is_found(
    bug: Bug, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    monkeypatch.setattr(bug.owner, bug.method, bug.replacement)
    seeds = range(bug.first_seed, bug.first_seed + SEEDS_PER_COMPARISON)
    assert any(run_plan(make_plan(seed, bug.edition)).broken for seed in seeds)
