"""All tasks: a fixed order, failures beside results, and what is done when it is interrupted."""

from typing import Any

import msgspec
import pytest

from kubestow.simulator.comparison.comparison import SchedulerComparison, compare
from kubestow.simulator.comparison.sweep import Sweep
from kubestow.simulator.comparison.task import Material, SchedulerVariant

SEEDS = (4, 5)


def compared(runner: Any, variants: list[SchedulerVariant]) -> SchedulerComparison:
    return compare("test", variants, SEEDS, Sweep(runner, variants, SEEDS).run())


def test_results_are_in_the_order_of_variants_and_seeds(
    material: Material, in_process: Any, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    found = compared(in_process(material), [base, packed])
    assert [variant.name for variant in found.variants] == ["base", "packed"]
    assert [run.seed for variant in found.variants for run in variant.runs] == [4, 5, 4, 5]
    assert found.failures == []


def test_moved_pods_have_the_plugin_that_made_the_difference(
    material: Material, in_process: Any, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    runner = in_process(material)
    first, other = compared(runner, [base, packed]).variants
    assert first.moved is None
    assert other.moved is not None
    # One pod of two on the second node moves, and the others follow from it.
    assert other.moved.count.mean == 2
    assert {(each.reason, each.plugin) for each in other.moved.reasons} == {
        ("Score", "NodeResourcesFit")
    }
    assert {pod.seed for pod in other.moved.pods} == set(SEEDS)
    # Both variants, with both seeds, ran twice.
    assert runner.runs == 8


def test_nothing_runs_twice_if_no_pod_moved(
    material: Material, in_process: Any, base: SchedulerVariant
) -> None:
    runner = in_process(material)
    same = msgspec.structs.replace(base, name="same")
    moved = compared(runner, [base, same]).variants[1].moved
    assert moved is not None
    assert (moved.count.mean, moved.pods, runner.runs) == (0, [], 4)


def test_figures_have_intervals_and_differences(
    material: Material, in_process: Any, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    first, other = compared(in_process(material), [base, packed]).variants
    used = {each.name: each for each in other.figures}["nodesUsed"]
    assert (used.value.mean, used.value.plus_minus, used.value.count) == (1, 0, 2)
    assert used.difference is not None
    assert used.difference.mean == -1
    assert all(each.difference is None for each in first.figures)


@pytest.mark.usefixtures("plugins")
def test_a_variant_that_fails_leaves_the_others(
    material: Material, in_process: Any, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    broken = SchedulerVariant(name="broken", plugins=("failing_plugins:Missing",))
    found = compared(in_process(material), [base, broken, packed])
    assert [len(variant.runs) for variant in found.variants] == [2, 0, 2]
    (failure,) = found.failures
    assert (failure.variant, failure.seeds) == ("broken", [4, 5])
    assert 'has no "Missing"' in failure.failure.message


def test_an_interrupted_sweep_has_what_is_done(
    material: Material, in_process: Any, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    found = compared(in_process(material, interrupted_after=3), [base, packed])
    assert found.is_partial
    assert [run.seed for variant in found.variants for run in variant.runs] == [5, 4, 5]
    (stopped,) = found.failures
    assert (stopped.variant, stopped.seeds, stopped.failure.kind) == ("base", [4], "stopped")


def test_an_interrupt_while_reasons_are_looked_for_keeps_all_figures(
    material: Material, in_process: Any, base: SchedulerVariant, packed: SchedulerVariant
) -> None:
    found = compared(in_process(material, interrupted_after=5), [base, packed])
    assert found.is_partial
    assert [len(variant.runs) for variant in found.variants] == [2, 2]
    moved = found.variants[1].moved
    assert moved is not None
    assert moved.count.mean == 2
