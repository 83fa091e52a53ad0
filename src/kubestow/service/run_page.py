"""The page of `kubestow run --page`, on the scheduler's own port; loaded only with that flag."""

from collections.abc import MutableSequence

from kubestow.clock import Clock
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.observer import DecisionListener
from kubestow.engine.scheduler import Scheduler
from kubestow.explain.history import AttemptHistory
from kubestow.service.leadership import Leadership
from kubestow.service.page_facts import page_facts
from kubestow.service.serving.page_site import PageSite, PageSource
from kubestow.web.feed import Bridge
from kubestow.web.follower import FollowedParts, PageFollower
from kubestow.web.protocol import Leader


class RunPage:
    """Made on the scheduler's loop."""

    def __init__(
        self,
        scheduler: Scheduler,
        listeners: MutableSequence[DecisionListener],
        clock: Clock,
        leadership: Leadership | None,
        gates: FeatureGates,
    ) -> None:
        """`listeners` are the scheduler's own; the page adds itself while one is open."""
        self._scheduler = scheduler
        self._leadership = leadership
        self._follower = PageFollower(
            FollowedParts(scheduler, listeners, clock, real=clock, leader=self._leader, gates=gates)
        )

    def site(
        self, config: SchedulerConfig, gates: FeatureGates, history: AttemptHistory, port: Bridge
    ) -> PageSite:
        facts = page_facts("run", self._scheduler, config, gates)
        return PageSite(PageSource(self._follower, facts, history), port)

    def _leader(self) -> Leader:
        leadership = self._leadership
        if leadership is None:
            return Leader(elects=False, leads=True, identity="")
        return Leader(elects=True, leads=leadership.is_leading, identity=leadership.identity)
