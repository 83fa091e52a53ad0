"""Settings every test shares: how hard Hypothesis tries.

`fast` is for the minute-to-minute run and draws new examples each time. `ci` always draws the same
ones, so that a build does not fail for something its change did not touch. `thorough` is for
hunting. Choose with HYPOTHESIS_PROFILE; where CI is set and nothing is chosen, it is `ci`.
"""

import os

from hypothesis import settings

# No deadline anywhere: on a busy machine it would fail tests that are unlucky, not wrong.
settings.register_profile("fast", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("thorough", max_examples=2_000, deadline=None)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "fast")
)
