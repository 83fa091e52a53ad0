"""No client without credentials ends a leader, or keeps probes out.

A short form with room for a busy machine; the figures in docs/reliability.md are from
`python -m tools.port_attacks`.
"""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kubestow.testing.clock import ManualClock
from tools.port_attacks.probes import Probes, SeenProbes
from tools.port_attacks.run import (
    EVERYTHING,
    LEASE_S_MAX,
    PROBE_S_MAX,
    AttackRun,
    Measured,
)

SECONDS = 5.0
# The lease is lost after ten seconds without a renewal, of which two pass anyway.
LEASE_DELAY_S = 8.0


def test_a_run_without_answers_is_not_harmless() -> None:
    good = Measured(
        name="a",
        connections=1,
        renewals=1,
        lease_delay_s=LEASE_S_MAX,
        probes=1,
        failed_probes=0,
        probe_s=PROBE_S_MAX,
        log_lines=0,
        tracebacks=0,
        rss_mib=1.0,
        is_leading=True,
    )
    assert good.is_harmless
    for change in (
        {"probes": 0},
        {"failed_probes": 1},
        {"tracebacks": 1},
        {"is_leading": False},
        {"lease_delay_s": LEASE_S_MAX + 0.1},
        {"probe_s": PROBE_S_MAX + 0.1},
    ):
        assert not msgspec.structs.replace(good, **change).is_harmless


def test_a_probe_that_waits_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async def wait_for_ever(_probes: Probes, _path: str) -> bool:
            asked.set()
            return await asyncio.Event().wait()

        monkeypatch.setattr(Probes, "_is_good", wait_for_ever)
        asked, clock = asyncio.Event(), ManualClock()
        probes = Probes(0, clock)
        asking = asyncio.create_task(probes.run())
        await asked.wait()
        clock.advance_s(7)
        assert probes.read() == SeenProbes(count=0, failed=0, longest_s=7.0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.slow
def test_no_client_without_credentials_ends_a_leader(tmp_path: Path) -> None:
    measured: list[Measured] = []
    asyncio.run(AttackRun(tmp_path, seconds=SECONDS).run([EVERYTHING], measured.append))
    (result,) = measured
    assert result.connections > 100
    assert result.is_leading
    assert result.lease_delay_s <= LEASE_DELAY_S
    assert result.probes > 0
    assert result.failed_probes == 0
    assert result.tracebacks == 0
