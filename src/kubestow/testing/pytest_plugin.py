"""A plugin of pytest: the fixture `placement_cluster`, for tests of where pods are placed.

pytest loads it by its entry point. It has the fixture only if all that the extra `pytest` of this
package needs is installed, so that others who use pytest get no fixture they did not ask for.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kubestow.testing.placement import PlacementCluster

HAS_EXTRA = find_spec("hypothesis") is not None


def _placement_cluster(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., "PlacementCluster"]]:
    """Makes clusters with the arguments of `PlacementCluster`; they end with the test.

    Files are named relative to the folder of the test.
    """
    # Not above: without such a test nothing of it is loaded.
    from kubestow.testing.placement import PlacementCluster

    with ExitStack() as stack:

        def make(**fields: Any) -> PlacementCluster:
            fields.setdefault("folder", Path(str(request.path)).parent)
            return stack.enter_context(PlacementCluster(**fields))

        yield make


if HAS_EXTRA:
    placement_cluster = pytest.fixture(name="placement_cluster")(_placement_cluster)
