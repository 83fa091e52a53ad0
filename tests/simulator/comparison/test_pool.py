"""Copies of the process: the same results as here, and one that dies names its task."""

import msgspec
import pytest

from kubestow.simulator.comparison.comparison import SchedulerComparison, compare
from kubestow.simulator.comparison.pool import LocalRunner, Runner
from kubestow.simulator.comparison.sweep import Sweep
from kubestow.simulator.comparison.task import Material, SchedulerVariant


def compared(runner: Runner, *variants: SchedulerVariant) -> SchedulerComparison:
    return compare("test", variants, [0], Sweep(runner, variants, [0]).run())


@pytest.mark.usefixtures("plugins")
def test_a_copy_that_dies_names_its_variant_and_the_others_are_kept(
    material: Material, base: SchedulerVariant, packed: SchedulerVariant, in_process: type
) -> None:
    dies = SchedulerVariant(name="dies", plugins=("failing_plugins:Dies",))
    with LocalRunner(material, jobs=1) as runner:
        found = compared(runner, base, dies, packed)
    (failure,) = found.failures
    assert (failure.variant, failure.failure.kind) == ("dies", "worker")
    assert failure.failure.message == "the process that ran it ended with exit code 7"
    first, _, other = found.variants
    alone = compared(in_process(material), base, packed)
    assert msgspec.json.encode([first, other]) == msgspec.json.encode(alone.variants)


def test_results_that_are_not_wanted_end_the_copies(material: Material) -> None:
    with LocalRunner(material, jobs=1) as runner:
        results = runner.run([b"{}"])
        results.close()
        assert list(results) == []
