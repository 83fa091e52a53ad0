"""The worked examples of spec 06 §6.2.12, and normalising at its edges."""

from collections.abc import Sequence

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.inter_pod_affinity.scoring import normalised
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.plugin_runs import run_score
from kubestow.testing.snapshots import make_snapshot
from kubestow.testing.topology import make_affinity, make_pod_term

ZONE = "zone"
HOST = "kubernetes.io/hostname"
WEB = {"app": "web"}

CACHE_NEAR = make_pod(affinity=make_affinity(prefers=[(10, make_pod_term(ZONE, "app=cache"))]))
DRAWN = make_pod(node="n1", affinity=make_affinity(near=[make_pod_term(ZONE, "app=web")]))
SHY = make_pod(node="n3", affinity=make_affinity(avoids=[(40, make_pod_term(ZONE, "app=web"))]))


def nodes(*zones: str | None) -> list[Node]:
    return [
        make_node(f"n{i}", labels={HOST: f"n{i}"} | ({ZONE: zone} if zone else {}))
        for i, zone in enumerate(zones or ("z1", "z1", "z2", None), 1)
    ]


def on(node: str, app: str) -> Pod:
    return make_pod(node=node, labels={"app": app})


def plugin(
    hard_pod_affinity_weight: int = 1, *, ignores_existing: bool = False
) -> InterPodAffinity:
    args = InterPodAffinityArgs(
        hard_pod_affinity_weight=hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=ignores_existing,
    )
    return InterPodAffinity(args, make_handle())


@pytest.mark.parametrize(
    ("pod", "running", "raw", "final"),
    [
        pytest.param(
            CACHE_NEAR,
            [on("n1", "cache"), on("n2", "cache"), on("n3", "cache")],
            [20, 20, 10, 0],
            [100, 100, 50, 0],
            id="S1-preferred-affinity",
        ),
        pytest.param(
            make_pod(labels=WEB),
            [DRAWN, SHY],
            [1, 1, -40, 0],
            [100, 100, 0, 97],
            id="S4-terms-of-existing-pods",
        ),
        pytest.param(
            make_pod(
                affinity=make_affinity(
                    prefers=[(10, make_pod_term(ZONE, "app=cache"))],
                    avoids=[(10, make_pod_term(ZONE, "app=cache"))],
                )
            ),
            [on("n1", "cache")],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            id="S7-cancelling-weights-do-not-skip",
        ),
        pytest.param(
            make_pod(
                labels=WEB,
                affinity=make_affinity(
                    prefers=[(5, make_pod_term(ZONE, "app=cache"))],
                    avoids=[(30, make_pod_term(HOST, "app=web"))],
                ),
            ),
            [on("n1", "cache"), on("n2", "cache"), on("n1", "web"), on("n3", "web")],
            [-20, 10, -30, 0],
            [25, 100, 0, 75],
            id="S8-two-keys",
        ),
    ],
)
def test_scores(pod: Pod, running: Sequence[Pod], raw: Sequence[int], final: Sequence[int]) -> None:
    snapshot = make_snapshot(nodes(), running)
    assert run_score(plugin(), pod, snapshot, normalize=False) == raw
    assert run_score(plugin(), pod, snapshot) == final


def test_S2_divides_before_it_multiplies() -> None:
    snapshot = make_snapshot(nodes("z1", "z2", "z3"), [on("n1", "a"), on("n2", "b")])
    pod = make_pod(
        affinity=make_affinity(
            prefers=[(100, make_pod_term(ZONE, "app=a")), (29, make_pod_term(ZONE, "app=b"))]
        )
    )
    assert run_score(plugin(), pod, snapshot, normalize=False) == [100, 29, 0]
    assert run_score(plugin(), pod, snapshot) == [100, 28, 0]


def test_S3_only_feasible_nodes_are_compared() -> None:
    snapshot = make_snapshot(nodes(), [on("n1", "cache")])
    feasible = nodes_of(snapshot, np.array([0, 1]))
    assert run_score(plugin(), CACHE_NEAR, feasible, normalize=False) == [10, 10]
    assert run_score(plugin(), CACHE_NEAR, feasible) == [0, 0]


@pytest.mark.parametrize(
    ("subject", "running"),
    [
        pytest.param(plugin(0), [DRAWN], id="S5-hard-terms-weigh-nothing"),
        pytest.param(plugin(ignores_existing=True), [DRAWN, SHY], id="S6-existing-terms-ignored"),
        pytest.param(plugin(), [], id="no-terms"),
    ],
)
def test_pods_that_nothing_draws_skip_scoring(
    subject: InterPodAffinity, running: Sequence[Pod]
) -> None:
    snapshot = make_snapshot(nodes(), running)
    assert run_score(subject, make_pod(labels=WEB), snapshot) is None


def test_own_preferences_bring_existing_terms_back_in() -> None:
    subject = plugin(ignores_existing=True)
    pod = make_pod(
        labels=WEB, affinity=make_affinity(prefers=[(3, make_pod_term(HOST, "app=none"))])
    )
    snapshot = make_snapshot(nodes(), [DRAWN, SHY])
    assert run_score(subject, pod, snapshot, normalize=False) == [1, 1, -40, 0]


def test_matches_on_nodes_without_the_key_are_no_matches() -> None:
    assert run_score(plugin(), CACHE_NEAR, make_snapshot(nodes(), [on("n4", "cache")])) is None


def test_existing_terms_that_cancel_out_do_not_skip() -> None:
    likes = make_pod(
        node="n1", affinity=make_affinity(prefers=[(7, make_pod_term(ZONE, "app=web"))])
    )
    avoids = make_pod(
        node="n2", affinity=make_affinity(avoids=[(7, make_pod_term(ZONE, "app=web"))])
    )
    snapshot = make_snapshot(nodes(), [likes, avoids])
    assert run_score(plugin(), make_pod(labels=WEB), snapshot) == [0, 0, 0, 0]


def test_required_anti_affinity_of_others_never_scores() -> None:
    hostile = make_pod(node="n1", affinity=make_affinity(apart=[make_pod_term(ZONE, "app=web")]))
    assert run_score(plugin(), make_pod(labels=WEB), make_snapshot(nodes(), [hostile])) is None


def test_terms_that_do_not_parse_fail_scoring() -> None:
    pod = make_pod(affinity=make_affinity(near=[make_pod_term(ZONE, "app Bogus x")]))
    with pytest.raises(PluginError, match=r"^failed to parse pod: requiredAffinityTerms: "):
        run_score(plugin(), pod, make_snapshot(nodes()))


def test_score_without_pre_score_fails() -> None:
    text = 'error reading "PreScoreInterPodAffinity" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        plugin().score(CycleState(), PodInfo(CACHE_NEAR), nodes_of(make_snapshot(nodes())))


@pytest.mark.parametrize(
    ("raw", "final"),
    [
        pytest.param([5, 10], [0, 100], id="lowest-becomes-0"),
        pytest.param([7, 7], [0, 0], id="equal"),
        pytest.param([-7, -7], [0, 0], id="equal-negative"),
        pytest.param([-5, -10, 0], [50, 0, 100], id="negative"),
        pytest.param([29, 0, 100], [28, 0, 100], id="29-of-100-is-28"),
        pytest.param([], [], id="no-nodes"),
    ],
)
def test_normalised(raw: list[int], final: list[int]) -> None:
    assert normalised(np.array(raw, np.int64)).tolist() == final
