"""The page of a cluster in this process, on a port and in a thread of its own.

main thread     PacedLoop or a usual one   scheduler, controllers, kubelets
page thread     a usual loop               the port, batches, readers
"""

import atexit
import shutil
import tempfile
import webbrowser
from collections.abc import AsyncGenerator, Callable, MutableSequence
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kubestow.clock import Clock, SystemClock
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.observer import DecisionListener
from kubestow.engine.scheduler import Scheduler
from kubestow.explain.history import AttemptHistory
from kubestow.files import keeping
from kubestow.service.loops import LoopThread
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.recorders import SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.service.page_facts import page_facts
from kubestow.web.assets import Assets
from kubestow.web.feed import Feed
from kubestow.web.follower import FollowedParts, PageFollower
from kubestow.web.local import LocalPage
from kubestow.web.past import ROWS_MAX
from kubestow.web.protocol import ClockState, Mode
from kubestow.web.routes import Actions, PageRoutes, Suggest

# A demo may take more time for explanations than a scheduler that has work to do.
COPIES_SHARE: Final = 0.9


class PageParts(NamedTuple):
    """What is shown, and what can be done.

    listeners   the scheduler's own list
    clock       the cluster's time; `time` is how it passes
    history     attempts of waiting pods, also those made before the page is served
    """

    mode: Mode
    scheduler: Scheduler
    listeners: MutableSequence[DecisionListener]
    config: SchedulerConfig
    gates: FeatureGates
    clock: Clock
    history: AttemptHistory
    suggest: Suggest
    time: Callable[[], ClockState] | None = None
    actions: Actions | None = None
    past_rows: int = ROWS_MAX


class OpenPage(NamedTuple):
    address: str
    follower: PageFollower


@asynccontextmanager
async def local_page(
    parts: PageParts, thread: LoopThread, *, port: int = 0
) -> AsyncGenerator[OpenPage, None]:
    """Serve the page while inside; InputError if the port cannot be used."""
    follower = PageFollower(
        FollowedParts(
            scheduler=parts.scheduler,
            listeners=parts.listeners,
            clock=parts.clock,
            real=SystemClock(),
            share=COPIES_SHARE,
            time=parts.time,
            past_rows=parts.past_rows,
            is_stepwise=True,
            gates=parts.gates,
        )
    )
    facts = page_facts(parts.mode, parts.scheduler, parts.config, parts.gates, parts.actions)

    async def begin() -> tuple[Feed, LocalPage]:
        feed = Feed(follower, thread, is_always_on=True)
        routes = PageRoutes(
            feed,
            facts,
            Assets(),
            history=parts.history,
            suggest=parts.suggest,
            actions=parts.actions,
        )
        page = LocalPage(routes, port=port)
        page.start()
        await feed.start()
        return feed, page

    feed, page = await thread.run(begin())

    async def end() -> None:
        await feed.close()
        await page.close()

    try:
        yield OpenPage(page.address, follower)
    finally:
        await thread.run(end())


def page_metrics(gates: FeatureGates) -> SchedulerRecorder:
    """A recorder that times every plugin call, in real time, for a scheduler without `/metrics`."""
    catalogue = SchedulerCatalogue(MetricsRegistry(), gates)
    return SchedulerRecorder(catalogue, SystemClock(), np.random.default_rng(0), sampled_share=1.0)


_OPENING: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>kubestow</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">Open the page</a></p></body>
</html>
"""


def open_browser(address: str) -> bool:
    """Open the address in the user's browser; False if there is none.

    All users of a machine see the arguments of a browser that is started, and the address has a
    token. So the browser is given a file that only this user can read, which leads to the address.
    It is deleted at the end of the process.
    """
    folder = Path(tempfile.mkdtemp(prefix="kubestow-page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "open.html"
    keeping.write(file, _OPENING.format(address=escape(address)))
    try:
        return webbrowser.open(file.as_uri())
    except webbrowser.Error:
        return False
