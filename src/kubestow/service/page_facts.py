"""What a page shows of a scheduler that does not change: versions, profiles, configuration."""

from kubestow import __version__
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.written import write_config
from kubestow.engine.scheduler import Scheduler
from kubestow.service.versions import UPSTREAM_VERSION
from kubestow.web.picture import PageFacts
from kubestow.web.profiles import profile_states
from kubestow.web.protocol import Mode
from kubestow.web.routes import Actions


def page_facts(
    mode: Mode,
    scheduler: Scheduler,
    config: SchedulerConfig,
    gates: FeatureGates,
    actions: Actions | None = None,
) -> PageFacts:
    return PageFacts(
        mode=mode,
        version=__version__,
        upstream=UPSTREAM_VERSION,
        profiles=profile_states(scheduler.profiles.values()),
        config=write_config(config, gates),
        actions=() if actions is None else actions.names,
    )
