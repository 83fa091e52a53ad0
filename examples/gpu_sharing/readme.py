"""Writes the figures of an experiment into README.md, and draws the chart beside it.

python -m gpu_sharing.experiment --trace FOLDER -o json > results.json
python -m gpu_sharing.readme results.json
"""

import re
import sys
from pathlib import Path
from typing import Final

import msgspec

from gpu_sharing.results import Experiment, as_markdown, save_chart

README: Final = Path(__file__).with_name("README.md")
CHART: Final = Path(__file__).with_name("allocation.svg")
BEGIN: Final = "<!-- figures -->\n"
END: Final = "<!-- end of figures -->\n"


def with_figures(text: str, experiment: Experiment) -> str:
    seeds = experiment.seeds
    heading = (
        f"{experiment.gpus} GPUs, pod list `{experiment.pods}`, seeds {seeds[0]} to {seeds[-1]}, "
        f"ties by {experiment.ties}; mean and standard deviation over the seeds:\n\n"
    )
    chart = f"\n![Allocated and fragmented GPUs over the requested ones]({CHART.name})\n"
    pattern = re.compile(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", re.DOTALL)
    return pattern.sub(lambda _: heading + as_markdown(experiment) + chart, text)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpu_sharing.readme results.json")
    experiment = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Experiment)
    README.write_text(
        with_figures(README.read_text(encoding="utf-8"), experiment), encoding="utf-8"
    )
    save_chart(experiment, CHART)


if __name__ == "__main__":
    main()
