"""Wrong files end with one line that names the file, the line, the field and what is near."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.simulator.placement_tests.small_tests import cases_of, deployment, document

from kubestow.errors import InputError
from kubestow.simulator.placement_tests.reading import find_tests, parse_test, read_test

HEAD = """\
cluster:
  nodes: [{name: n, count: 3}]
"""
EXPECT = "expect: [{placed: all}]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "t, line 1: found nothing, expected a map of fields", id="empty"),
        pytest.param("- a\n", "t, line 1: found a list, expected a map of fields", id="a-list"),
        pytest.param(
            f"{HEAD}{EXPECT}expct: []\n", 't, line 4: expct: unknown field; did you mean "expect"?',
            id="unknown-field",
        ),
        pytest.param(
            f"apiVersion: v1\n{HEAD}{EXPECT}",
            't, line 1: apiVersion: is "v1", expected kubestow.dev/v1alpha1',
            id="version",
        ),
        pytest.param(
            f"kind: Scenario\n{HEAD}{EXPECT}",
            't, line 1: kind: is "Scenario", expected PlacementTest',
            id="kind",
        ),
        pytest.param(
            EXPECT, "t, line 1: give either cluster, or clusters by name", id="no-cluster"
        ),
        pytest.param(
            HEAD, 't, line 1: the field "expect" is missing: nothing is expected', id="no-expect"
        ),
        pytest.param(
            f"cluster: {{objects: []}}\n{EXPECT}",
            "t, line 1: cluster: has no nodes: give nodes, or files with some",
            id="no-nodes",
        ),
        pytest.param(
            f"cluster:\n  nodes: [{{count: 0}}]\n{EXPECT}",
            't, line 2: cluster.nodes[0].count: is 0, expected ',
            id="count",
        ),
        pytest.param(
            f"cluster:\n  files: [none.yaml]\n{EXPECT}",
            't, line 2: cluster.files[0]: cannot read "',
            id="no-file",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - {{placd: all}}\n",
            't, line 4: expect[0].placd: unknown field; did you mean "placed"?',
            id="unknown-kind",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - {{}}\n",
            "t, line 4: expect[0]: found none of them, expected one of placed, pending, on",
            id="empty-expectation",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - {{placed: all, evicted: none}}\n",
            "t, line 4: expect[0]: found placed and evicted, expected one of",
            id="two-expectations",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - placed: web\n",
            't, line 4: expect[0].placed: is "web", expected what made the pods, such as Deploymen',
            id="owner-without-kind",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - placed: Deploymnt/web\n",
            't, line 4: expect[0].placed: is "Deploymnt/web": there is no kind "Deploymnt"; did yo',
            id="owner-kind",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - placed: {{pods: {{selector: 'a in b'}}}}\n",
            't, line 4: expect[0].placed.pods.selector: is "a in b": ',
            id="selector",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - placed: {{within: soon}}\n",
            't, line 4: expect[0].placed.within: is "soon": ',
            id="duration",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - spread: {{pods: Deployment/web}}\n",
            't, line 4: expect[0].spread: the field "over" is missing',
            id="spread-without-key",
        ),
        pytest.param(
            f"{HEAD}expect:\n  - evicted: some\n", "t, line 4: expect[0].evicted: is ", id="evicted"
        ),
        pytest.param(
            f"{HEAD}expect:\n  - headroom: {{atLeast: 1, of: none.yaml}}\n",
            't, line 4: expect[0].headroom.of: cannot read "',
            id="headroom-file",
        ),
        pytest.param(
            f"{HEAD}given:\n  - {{}}\n{EXPECT}",
            "t, line 4: given[0]: found none of them, expected one of cordon, uncordon, drain",
            id="empty-step",
        ),
        pytest.param(
            f"{HEAD}given:\n  - {{wait: 1m, fail: n-0}}\n{EXPECT}",
            "t, line 4: given[0]: found wait and fail, expected one of",
            id="two-steps",
        ),
        pytest.param(
            f"{HEAD}given:\n  - {{scale: {{kind: Deployment, replicas: 3}}}}\n{EXPECT}",
            't, line 4: given[0].scale: the field "name" is missing',
            id="scale-without-name",
        ),
        pytest.param(
            f"{HEAD}given:\n  - {{apply: [{{kind: Pod, spec: {{nodeSelectr: {{}}}}}}]}}\n{EXPECT}",
            't, line 4: given[0].apply[0].spec.nodeSelectr: unknown field of a Pod; did you mean',
            id="field-of-a-manifest",
        ),
        pytest.param(
            f"{HEAD}given:\n  - kustomize: overlay\n{EXPECT}",
            't, line 4: given[0].kustomize: there is no folder "',
            id="no-kustomization",
        ),
        pytest.param(
            f"{HEAD}given:\n  - chart: {{path: chart, valuez: a}}\n{EXPECT}",
            't, line 4: given[0].chart.valuez: unknown field; did you mean "values"?',
            id="field-of-a-chart",
        ),
        pytest.param(
            f"{HEAD}{EXPECT}forEach: {{fail: node, drain: zone}}\n",
            "t, line 4: forEach: found fail and drain, expected one of fail, drain, upgrade",
            id="two-failures",
        ),
        pytest.param(
            f"{HEAD}{EXPECT}forEach: {{fail: node, atOnce: 9}}\n",
            't, line 4: forEach.atOnce: is 9, expected at most 3',
            id="at-once",
        ),
        pytest.param(
            f"{HEAD}{EXPECT}matrix: {{editions: [v1.200]}}\n",
            't, line 4: matrix.editions[0]: there is no edition "v1.200"; did you mean "v1.20"?',
            id="edition",
        ),
        pytest.param(
            f"{HEAD}{EXPECT}matrix: {{values: [prod.yaml]}}\n",
            "t, line 4: matrix.values: are for charts, and no step of given has one",
            id="values-without-chart",
        ),
        pytest.param(
            "clusters:\n  small:\n    nodes: [{name: n}]\n" + EXPECT
            + "matrix: {clusters: [smal]}\n",
            't, line 5: matrix.clusters[0]: there is no cluster "smal"; did you mean "small"?',
            id="cluster-name",
        ),
        pytest.param(
            f"{HEAD}{EXPECT}config: none.yaml\n",
            't, line 4: config: cannot read "',
            id="no-config",
        ),
        pytest.param(
            f"{HEAD}{EXPECT}featureGates: [NoSuchGate=true]\n",
            "t, line 4: featureGates: ",
            id="gate",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        parse_test(text.encode(), "t", tmp_path)
    assert message in str(raised.value)
    assert str(raised.value).startswith("t, line ")
    assert "\n" not in str(raised.value)


def test_a_field_that_several_structs_have_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        parse_test(f"{HEAD}expect:\n  - headroom: {{pods: 3}}\n".encode(), "t", tmp_path)
    assert str(raised.value).endswith("unknown field; expected one of atLeast, of")


def test_a_wrong_configuration_is_named_with_its_field(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "paralelism: 3\n"
    )
    with pytest.raises(InputError, match=r"t, line 4: config: .*config.yaml.*paralelism"):
        parse_test(f"{HEAD}{EXPECT}config: config.yaml\n".encode(), "t", tmp_path)


def test_every_combination_of_the_matrix_is_a_case(tmp_path: Path) -> None:
    content = document(
        deployment("web", 2),
        expect=[{"placed": "all"}],
        name="web",
        matrix={"editions": ["v1.20", "v1.36"], "sizes": [1, 2]},
    )
    cases = cases_of(content, tmp_path)
    assert [case.name for case in cases] == [
        "web [edition=v1.20, size=1]",
        "web [edition=v1.20, size=2]",
        "web [edition=v1.36, size=1]",
        "web [edition=v1.36, size=2]",
    ]
    assert [len(case.documents) for case in cases] == [3, 6, 3, 6]


def test_clusters_by_name_are_cases_of_their_own() -> None:
    content = document(deployment("web", 2), expect=[{"placed": "all"}])
    shapes = content.pop("cluster")
    content["clusters"] = {"small": shapes, "other": {"nodes": [{"name": "m", "count": 5}]}}
    small, other = cases_of(content)
    assert (len(small.documents), len(other.documents)) == (3, 5)
    assert (small.matrix, other.matrix) == ({"cluster": "small"}, {"cluster": "other"})


def test_files_are_found_by_their_suffix(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/x.placement.yaml", "y.placement.yaml", "z.yaml"):
        (tmp_path / name).write_text(HEAD + EXPECT)
    found = find_tests([tmp_path, tmp_path / "z.yaml", tmp_path / "y.placement.yaml"])
    names = [str(path.relative_to(tmp_path)) for path in found]
    assert names == ["a/x.placement.yaml", "y.placement.yaml", "z.yaml"]
    (case,) = read_test(found[0])
    assert case.name == "x"
    with pytest.raises(InputError, match="there is no file or folder"):
        find_tests([tmp_path / "none"])


def test_a_folder_below_that_cannot_be_read_is_named(
    tmp_path: Path, closed: Callable[[Path], None]
) -> None:
    (tmp_path / "web.placement.yaml").touch()
    (tmp_path / "more").mkdir()
    assert find_tests([tmp_path]) == [tmp_path / "web.placement.yaml"]
    closed(tmp_path / "more")
    with pytest.raises(InputError, match=r'^cannot read ".*/more": Permission denied$'):
        find_tests([tmp_path])


def test_a_name_that_is_too_long_is_no_test() -> None:
    with pytest.raises(InputError, match="there is no file or folder"):
        find_tests([Path("a" * 300)])
