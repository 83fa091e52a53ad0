"""Draws the picture of docs/guides/reports.md: the used share of the example trace over time.

Not compared by a test: the width of its letters depends on the fonts of the machine.
"""

from pathlib import Path
from typing import Final

from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.reports.charts import draw, drawings_of, picture
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.traces.plain import plain_scenario

ROOT: Final = Path(__file__).parents[2]
TRACE: Final = ROOT / "examples" / "traces"


def main() -> None:
    scenario = plain_scenario(TRACE / "pods.csv", nodes=TRACE / "nodes.csv")
    drawings = drawings_of(run_scenario(scenario, SchedulerConfig()), is_interactive=False)
    used = [drawing for drawing in drawings if drawing.name == "used"]
    draw(picture(used, "examples/traces/pods.csv", ""), ROOT / "docs" / "images" / "report.svg")


if __name__ == "__main__":
    main()
