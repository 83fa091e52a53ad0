"""No client without credentials ends a leader, or keeps probes out.

A short form with room for a busy machine; the figures in docs/reliability.md are from
`python -m tools.port_attacks`.
"""

import asyncio
from pathlib import Path

import pytest

from tools.port_attacks.run import EVERYTHING, AttackRun, Measured

SECONDS = 5.0
# The lease is lost after ten seconds without a renewal, of which two pass anyway.
LEASE_DELAY_S = 8.0


@pytest.mark.slow
def test_no_client_without_credentials_ends_a_leader(tmp_path: Path) -> None:
    measured: list[Measured] = []
    asyncio.run(AttackRun(tmp_path, seconds=SECONDS).run([EVERYTHING], measured.append))
    (result,) = measured
    assert result.connections > 100
    assert result.is_leading
    assert result.lease_delay_s <= LEASE_DELAY_S
    assert result.failed_probes == 0
    assert result.tracebacks == 0
