"""Compares ways to choose a node on episodes that training never saw.

`python -m learning.evaluate` writes the table of README.md. Every way gets the same episodes, so
differences are taken episode by episode.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from learning.environment import Observation, SchedulingEnv
from learning.observation import Floats
from learning.policy import load_weights, scores_of
from learning.train import FILTERS_ONLY
from learning.workload import Amounts, share, total

HERE = Path(__file__).parent
README = HERE / "README.md"
# Training draws seeds below this.
HELD_OUT = 1 << 32
MARK = "<!-- the table below is written by learning.evaluate -->\n"

# The row of the node for the next pod.
Chooser = Callable[[Observation, dict[str, Any]], int]


class Outcome(NamedTuple):
    """How one episode ended.

    pods        the share of pods that were placed
    large       the same of those that request more than a third of what the smallest node has of
                cpu or memory
    used        the share of cpu and memory that is requested, their mean
    stranded    what is free of one resource without as much of the other, as a share of the node,
                in the mean over nodes
    """

    pods: float
    large: float
    used: float
    stranded: float


class Way(NamedTuple):
    """A way to choose: a configuration whose choices are taken, or a function."""

    config: Path | None
    choose: Chooser


def ways(weights: Path, random: np.random.Generator) -> dict[str, Way]:
    learned = load_weights(weights)

    def at_random(seen: Observation, info: dict[str, Any]) -> int:
        return int(random.choice(np.flatnonzero(info["action_mask"])))

    def by_profile(seen: Observation, info: dict[str, Any]) -> int:
        return info["choice"]

    def by_policy(seen: Observation, info: dict[str, Any]) -> int:
        scores = scores_of(learned, seen["nodes"], seen["pod"])
        scores[info["action_mask"] == 0] = np.iinfo(np.int64).min
        return int(scores.argmax())

    return {
        "at random": Way(FILTERS_ONLY, at_random),
        "default profile": Way(None, by_profile),
        "NodeResourcesFit with MostAllocated": Way(HERE / "most_allocated.conf", by_profile),
        "learned": Way(FILTERS_ONLY, by_policy),
    }


def play(env: SchedulingEnv, choose: Chooser, seed: int) -> Outcome:
    seen, info = env.reset(seed=seed)
    has_ended = not info["action_mask"].any()
    while not has_ended:
        seen, _, has_ended, _, info = env.step(choose(seen, info))
    return outcome(env, seen)


def outcome(env: SchedulingEnv, seen: Observation) -> Outcome:
    arrivals, placements = env.episode.arrivals, env.placements
    smallest = Amounts(*np.min(env.episode.nodes, axis=0).tolist())
    large = [each for each in arrivals if _is_large(each.requests, smallest)]
    placed = [each.requests for each in arrivals if each.name in placements]
    free_shares = seen["nodes"][:, 2:4] / seen["nodes"][:, :2]
    return Outcome(
        pods=len(placed) / len(arrivals),
        large=sum(each.name in placements for each in large) / max(len(large), 1),
        used=share(total(placed), total(env.episode.nodes)),
        stranded=float(np.abs(free_shares[:, 0] - free_shares[:, 1]).mean()),
    )


def _is_large(requests: Amounts, smallest: Amounts) -> bool:
    return any(3 * part > whole for part, whole in zip(requests, smallest, strict=True))


def compare(seeds: Sequence[int], weights: Path) -> dict[str, Floats]:
    """float64[episode, column of Outcome] of every way."""
    found: dict[str, Floats] = {}
    for name, way in ways(weights, np.random.default_rng(0)).items():
        env = SchedulingEnv(config=way.config)
        found[name] = np.array([play(env, way.choose, seed) for seed in seeds])
    return found


def advantage(ours: Floats, others: Floats) -> tuple[float, float]:
    """The mean difference, episode by episode, and its standard error."""
    differences = ours - others
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean()), float(error)


def table(found: Mapping[str, Floats]) -> str:
    lines = [
        "| node chosen | pods placed | large pods placed | cluster used | stranded "
        "| the learned policy uses |",
        "|---|---|---|---|---|---|",
    ]
    used = Outcome._fields.index("used")
    for name, outcomes in found.items():
        cells = [f"{100 * mean:.1f} %" for mean in outcomes.mean(axis=0)]
        mean, error = advantage(found["learned"][:, used], outcomes[:, used])
        more = "" if name == "learned" else f"{100 * mean:+.1f} ± {200 * error:.1f} points"
        lines.append(f"| {name} | {' | '.join(cells)} | {more} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, made: str) -> str:
    """The page with another table after the mark, up to the next empty line."""
    before, mark, after = page.partition(MARK)
    assert mark, f"{README} has no line {MARK!r}"
    _, _, rest = after.lstrip("\n").partition("\n\n")
    return f"{before}{mark}\n{made}\n{rest}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the policy and write the table.")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--weights", type=Path, default=HERE / "weights.txt")
    parser.add_argument("--dry-run", action="store_true", help="print the table only")
    arguments = parser.parse_args()
    seeds = range(HELD_OUT, HELD_OUT + arguments.episodes)
    try:
        made = table(compare(seeds, arguments.weights))
    except OSError as error:
        parser.error(f"--weights: {error}")
    print(made, end="")
    if not arguments.dry_run:
        page = README.read_text(encoding="utf-8")
        README.write_text(with_table(page, made), encoding="utf-8")


if __name__ == "__main__":
    main()
