"""Settings every test shares: how hard Hypothesis tries.

`fast` is for the minute-to-minute run and draws new examples each time. `ci` always draws the same
ones, so that a build does not fail for something its change did not touch. `thorough` is for
hunting. Choose with HYPOTHESIS_PROFILE; where CI is set and nothing is chosen, it is `ci`.
"""

import os

from hypothesis import HealthCheck, settings

# Neither deadlines nor complaints about slow drawing: on a busy machine they would fail tests that
# are unlucky, not wrong.
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _CALM, max_examples=50)
settings.register_profile("ci", _CALM, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("thorough", _CALM, max_examples=2_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "fast")
)
