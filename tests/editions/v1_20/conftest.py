"""The scheduler and the recorder with which the parts of the core are tested."""

from tests.engine.conftest import make_world, run
from tests.queue.conftest import metrics

__all__ = ["make_world", "metrics", "run"]
