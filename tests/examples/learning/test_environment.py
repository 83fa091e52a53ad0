"""The environment keeps Gymnasium's contract, and its rules are those of the scheduler."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from learning.environment import REWARDS, SchedulingEnv, Step
from learning.train import FILTERS_ONLY
from learning.workload import Amounts, Arrival, Episode, Workload

from kubestow import load_cluster

SMALL = Workload(node_count=4, load=1.3)


@pytest.mark.parametrize("action", ["node", "scores"])
def test_the_contract_of_gymnasium_holds(action: str) -> None:
    env = gymnasium.make("kubestow/Scheduling-v0", workload=SMALL, action=action)
    check_env(env.unwrapped, skip_render_check=True)


def test_a_seed_makes_the_same_episode() -> None:
    env = SchedulingEnv(workload=SMALL)
    env.reset(seed=3)
    first = env.episode
    env.reset()
    assert env.episode != first
    env.reset(seed=3)
    assert env.episode == first


def test_the_mask_is_what_the_filters_say() -> None:
    env = SchedulingEnv(workload=SMALL)
    _, info = env.reset(seed=1)
    cluster = load_cluster(*env.episode.manifests())
    waiting = iter(env.episode.arrivals)
    has_ended = False
    masks = []
    while not has_ended:
        decision = cluster.decide(next(waiting).name)
        if not decision.node:
            continue
        fits = [name in set(decision.feasible) for name in cluster.nodes]
        assert info["action_mask"].astype(bool).tolist() == fits
        assert cluster.nodes[info["choice"]] == decision.node
        masks.append(fits)
        row = int(np.flatnonzero(fits)[-1])
        cluster.assign(decision.pod.key, cluster.nodes[row])
        _, _, has_ended, _, info = env.step(row)
    assert not all(map(all, masks))
    assert env.placements


def test_a_pod_on_a_node_without_space_is_left_out() -> None:
    env = SchedulingEnv(workload=SMALL)
    _, info = env.reset(seed=1)
    while info["action_mask"].all():
        _, _, _, _, info = env.step(0 if info["action_mask"][0] else info["choice"])
    placed = dict(env.placements)
    _, reward, _, _, _ = env.step(int(np.flatnonzero(info["action_mask"] == 0)[0]))
    assert reward == 0
    assert env.placements == placed


def test_scores_choose_the_best_node_that_fits() -> None:
    env = SchedulingEnv(workload=SMALL, action="scores")
    env.reset(seed=1)
    pod = env.episode.arrivals[0].name
    env.step(np.array([0.1, 1.0, 0.0, 0.5]))
    assert env.placements == {pod: "node-01"}


def test_equal_scores_are_chosen_from_as_equal_totals_are() -> None:
    """Without score plugins all totals are equal, and the profile has to choose among them."""
    env = SchedulingEnv(workload=Workload(node_count=7), action="scores", config=FILTERS_ONLY)
    _, info = env.reset(seed=1)
    chosen = set()
    has_ended = False
    while not has_ended:
        arrival, name = env.next_pod, f"node-{info['choice']:02}"
        chosen.add(name)
        _, _, has_ended, _, info = env.step(np.zeros(7))
        assert env.placements[arrival.name] == name
    assert len(chosen) == 7


def test_seeds_run_beside_each_other() -> None:
    seeds = [5, 6, 7]
    envs = SyncVectorEnv(
        [lambda: SchedulingEnv(workload=SMALL) for _ in seeds],
        autoreset_mode=AutoresetMode.NEXT_STEP,
    )
    seen, info = envs.reset(seed=seeds)
    assert seen["nodes"].shape == (3, 4, 5)
    assert info["action_mask"].shape == (3, 4)
    single = SchedulingEnv(workload=SMALL)
    for position, seed in enumerate(seeds):
        alone, _ = single.reset(seed=seed)
        assert seen["pod"][position].tolist() == alone["pod"].tolist()
    _, rewards, _, _, _ = envs.step(info["choice"])
    assert (rewards > 0).all()
    envs.close()


@pytest.mark.parametrize(
    ("reward", "expected"), [("utilisation", 0.5), ("placed", 1.0), ("refused", -1.5)]
)
def test_a_reward_counts(reward: str, expected: float) -> None:
    step = Step(
        placed=Arrival("p", Amounts(500, 50)),
        refused=(Arrival("q", Amounts(2000, 100)),),
        capacity=Amounts(1000, 100),
    )
    assert REWARDS[reward](step) == expected


def test_a_reward_may_be_a_function() -> None:
    env = SchedulingEnv(workload=SMALL, reward=lambda step: 7.0)
    _, info = env.reset(seed=1)
    assert env.step(info["choice"])[1] == 7.0


def test_the_pods_of_an_episode_ask_for_the_load() -> None:
    episode: Episode = SMALL.episode(np.random.default_rng(0))
    asked = sum(arrival.requests.cpu_milli for arrival in episode.arrivals)
    assert asked > sum(node.cpu_milli for node in episode.nodes)
    assert len(episode.nodes) == 4
