"""The policy is learned, and is the same in the environment and as a plugin of the scheduler."""

import sys
from pathlib import Path

import numpy as np
import pytest
from learning import evaluate
from learning.environment import SchedulingEnv
from learning.plugin import LearnedScore, LearnedScoreArgs
from learning.policy import FEATURES, load_weights, ranked, save_weights, scores_of
from learning.train import FILTERS_ONLY, Plan, play, train

from kubestow import simulate
from kubestow.plugin import PluginError
from kubestow.testing import make_handle, make_node, make_snapshot

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from pages import blocks  # noqa: E402  (found through the line above)

WEIGHTS = ROOT / "examples/learning/weights.txt"
HELD_OUT = range(evaluate.HELD_OUT, evaluate.HELD_OUT + 6)


@pytest.mark.slow  # whole episodes
def test_training_is_the_same_for_the_same_seed() -> None:
    plan = Plan(generations=2, candidates=3, best=2, episodes=1)
    first, again = ([each.mean.tolist() for each in train(5, plan)] for _ in range(2))
    assert first == again
    assert first[0] != first[1]


@pytest.mark.slow  # whole episodes
def test_the_learned_policy_is_better_than_chance() -> None:
    """On episodes that training did not have, by more than two standard errors."""
    ways = evaluate.ways(WEIGHTS, np.random.default_rng(0))
    learned, random = (
        np.array([evaluate.play(SchedulingEnv(config=way.config), way.choose, s) for s in HELD_OUT])
        for way in (ways["learned"], ways["at random"])
    )
    used = evaluate.Outcome._fields.index("used")
    mean, error = evaluate.advantage(learned[:, used], random[:, used])
    assert mean > 2 * error


@pytest.mark.slow  # whole episodes
def test_the_plugin_places_pods_as_the_policy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole scheduler with the plugin against the environment, pod by pod."""
    monkeypatch.chdir(ROOT)
    env = SchedulingEnv(config=FILTERS_ONLY, action="scores")
    weights = load_weights(WEIGHTS)
    seen, _ = env.reset(seed=HELD_OUT[0])
    has_ended = False
    while not has_ended:
        scores = ranked(scores_of(weights, seen["nodes"], seen["pod"]))
        seen, _, has_ended, _, _ = env.step(scores / 100)
    result = simulate(*env.episode.manifests(), config=ROOT / "examples/learning/learned.conf")
    assert {pod.name: pod.node for pod in result.scheduled} == env.placements
    assert 0 < len(env.placements) < len(env.episode.arrivals)


def test_play_returns_the_share_that_is_used() -> None:
    env = SchedulingEnv(config=FILTERS_ONLY)
    collected = play(env, load_weights(WEIGHTS), seed=1)
    assert collected == pytest.approx(evaluate.outcome(env, env.observation).used)


def test_weights_are_read_as_written(tmp_path: Path) -> None:
    weights = np.arange(len(FEATURES)) / 7
    save_weights(tmp_path / "weights.txt", weights)
    assert load_weights(tmp_path / "weights.txt").tolist() == weights.tolist()


@pytest.mark.parametrize("text", [None, "1.0\n", "one\n"])
def test_a_plugin_without_weights_says_so(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "weights.txt"
    if text is not None:
        path.write_text(text)
    handle = make_handle(make_snapshot([make_node("a")]))
    with pytest.raises(PluginError, match="cannot load the weights"):
        LearnedScore(LearnedScoreArgs(weights=str(path)), handle)


def test_ranks_are_scores() -> None:
    assert ranked(np.array([5, -3, 5, 7])).tolist() == [99, 98, 99, 100]
    assert ranked(np.arange(300)).min() == 0


def test_the_table_replaces_the_one_before() -> None:
    page = f"# A\n\n{evaluate.MARK}\n| old |\n|---|\n\nText\n"
    made = evaluate.with_table(page, "| new |\n")
    assert made == f"# A\n\n{evaluate.MARK}\n| new |\n\nText\n"
    assert evaluate.with_table(made, "| new |\n") == made


def test_the_python_of_the_page_runs() -> None:
    names: dict[str, object] = {}
    code = [block.code for block in blocks(evaluate.README.read_text(encoding="utf-8"), "python")]
    assert len(code) == 2
    exec("".join(code), names)
    assert names["seen"]["nodes"].shape == (4, 12, 5)
