"""Trains the policy by evolution strategies: `python -m learning.train --out weights.txt`.

In each generation weights are drawn around a mean, each is tried on the same episodes, and the mean
moves to the best of them (the cross-entropy method). One seed fixes everything.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from learning.environment import REWARDS, SchedulingEnv
from learning.observation import Floats
from learning.policy import FEATURES, save_weights, scores_of

FILTERS_ONLY = Path(__file__).with_name("filters.conf")


class Plan(NamedTuple):
    """How long to train.

    spread_min   a spread around the mean that is always kept, so that the search does not end early
    """

    generations: int = 8
    candidates: int = 12
    best: int = 4
    episodes: int = 2
    spread_min: float = 0.05


class Generation(NamedTuple):
    number: int
    mean: Floats
    returns: Floats  # float64[candidate], mean over the episodes


def train(
    seed: int, plan: Plan | None = None, *, reward: str = "utilisation"
) -> Iterator[Generation]:
    """The generations one after the other; the mean of the last one is the policy."""
    plan = plan or Plan()
    random = np.random.default_rng(seed)
    env = SchedulingEnv(config=FILTERS_ONLY, reward=reward)
    mean, spread = np.zeros(len(FEATURES)), np.ones(len(FEATURES))
    for number in range(1, plan.generations + 1):
        seeds = random.integers(1 << 31, size=plan.episodes).tolist()
        drawn = random.normal(size=(plan.candidates, len(FEATURES))) * spread + mean
        returns = np.array([mean_return(env, weights, seeds) for weights in drawn])
        best = drawn[np.argsort(-returns, kind="stable")[: plan.best]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + plan.spread_min
        yield Generation(number, mean, returns)


def mean_return(env: SchedulingEnv, weights: Floats, seeds: Iterable[int]) -> float:
    """The sum of the rewards of an episode, as a mean over the seeds."""
    return float(np.mean([play(env, weights, seed) for seed in seeds]))


def play(env: SchedulingEnv, weights: Floats, seed: int) -> float:
    seen, info = env.reset(seed=seed)
    collected, has_ended = 0.0, not info["action_mask"].any()
    while not has_ended:
        scores = scores_of(weights, seen["nodes"], seen["pod"])
        scores[info["action_mask"] == 0] = np.iinfo(np.int64).min
        seen, reward, has_ended, _, info = env.step(int(scores.argmax()))
        collected += reward
    return collected


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the policy and write its weights.")
    parser.add_argument("--seed", type=int, default=1, help="fixes episodes and weights tried")
    parser.add_argument("--generations", type=int, default=Plan().generations)
    parser.add_argument("--reward", choices=list(REWARDS), default="utilisation")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("weights.txt"))
    arguments = parser.parse_args()
    plan = Plan(generations=arguments.generations)
    for generation in train(arguments.seed, plan, reward=arguments.reward):
        best, mean = generation.returns.max(), generation.returns.mean()
        print(f"generation {generation.number:2}: best {best:.4f}, mean {mean:.4f}", flush=True)
        save_weights(arguments.out, generation.mean)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
