"""A busy machine is noticed, by each of three signs."""

import os
from pathlib import Path

import pytest

from kubestow.simulator.bench.machine import Calibration, ForeignLoad, disturbances
from kubestow.testing import ManualClock

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Machine:
    """Counters as the kernel keeps them, in seconds."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.stat = folder / "stat"
        self.own_s = 0.0
        self.show(user=100, nice=10, system=5, idle=1000, steal=1)

    def show(self, **seconds: float) -> None:
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest")
        ticks = (str(round(seconds.get(name, 0) * TICKS_PER_S)) for name in names)
        self.stat.write_text(f"cpu  {' '.join(ticks)} 0\ncpu0 1 2 3 4\n")

    def watched(self) -> ForeignLoad:
        return ForeignLoad(self.clock, own_cpu_s=lambda: self.own_s, stat=self.stat)


def test_own_time_is_not_foreign_but_time_of_other_guests_is(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    load = machine.watched()
    machine.clock.advance_s(10)
    machine.own_s = 9.5
    # 12 seconds in user mode, 4 niced, 1 in the kernel, 0.5 taken by the host; 2.5 idle.
    machine.show(user=112, nice=14, system=6, idle=1002.5, steal=1.5)
    assert load.cores() == pytest.approx(0.8)


def test_idle_and_waiting_for_a_disk_are_no_load(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    load = machine.watched()
    machine.clock.advance_s(10)
    machine.show(user=100, nice=10, system=5, idle=1010, iowait=10, steal=1)
    assert load.cores() == 0


@pytest.mark.parametrize("text", [None, "", "cpu  1 2\n", "cpu  a b c d e f g h\n"])
def test_without_counters_the_load_is_not_known(text: str | None, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    if text is None:
        machine.stat.unlink()
    else:
        machine.stat.write_text(text)
    load = machine.watched()
    machine.clock.advance_s(1)
    assert load.cores() is None


@pytest.mark.parametrize(
    ("cores", "foreign_cores", "wall_over_cpu", "spread", "expected"),
    [
        pytest.param(2, 0.3, 1.1, 1.2, [], id="calm"),
        pytest.param(2, None, 1.0, 1.0, [], id="load-not-known"),
        pytest.param(2, 0.4, 1.0, 1.0, ["other processes used 0.4 of 2 cores"], id="load"),
        pytest.param(64, 5.0, 1.0, 1.0, [], id="load-of-many-cores"),
        pytest.param(2, 0, 1.3, 1.0, ["pods took 1.3 times their CPU time"], id="waits"),
        pytest.param(2, 0, 1.0, 1.5, ["the calibration varied by a factor of 1.5"], id="speed"),
        pytest.param(
            2,
            1.8,
            2.0,
            1.0,
            ["other processes used 1.8 of 2 cores", "pods took 2.0 times their CPU time"],
            id="two-signs",
        ),
    ],
)
def test_disturbances(
    cores: int,
    foreign_cores: float | None,
    wall_over_cpu: float,
    spread: float,
    expected: list[str],
) -> None:
    found = disturbances(
        cores=cores,
        foreign_cores=foreign_cores,
        wall_over_cpu=wall_over_cpu,
        calibration_spread=spread,
    )
    assert found == expected


def test_a_calibration_without_samples_takes_some() -> None:
    result = Calibration().result()
    assert result.seconds > 0
    assert result.spread >= 1
