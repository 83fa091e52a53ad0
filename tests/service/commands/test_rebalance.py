"""`kubestow rebalance`: what it prints and how it ends."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.simulator.rebalance.rebalance_clusters import Raw, budget, node, owner, pod

from kubestow.service.cli import main

Run = Callable[..., tuple[int, str, str]]

SKEWED = [node("a"), node("b"), owner("web", 2), pod("web-1", "a"), pod("web-2", "a")]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Writes a cluster to a file, and runs the command on it: exit code, output, errors."""

    def run(*arguments: str, cluster: list[Raw] = SKEWED) -> tuple[int, str, str]:
        file = tmp_path / "cluster.yaml"
        file.write_text(yaml.safe_dump_all(cluster))
        monkeypatch.setattr(sys, "argv", ["kubestow", "rebalance", "-f", str(file), *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return run


def test_the_table_has_the_steps(run: Run) -> None:
    code, out, _ = run("--goal", "balance")
    assert code == 0
    assert out.splitlines() == [
        "balance: 12.5 % of deviation before, 0 after 1 move in 30s",
        "",
        "STEP   AT   ACTION   POD             NODE   GOES TO   BEFORE   AFTER",
        "   1   0s   evict    default/web-1   a      b           12.5       0",
    ]


MEASURED = """\
time,namespace,pod,cpu,memory
2026-01-31T12:00:00Z,default,web-1,1,1Gi
2026-01-31T12:01:00Z,default,web-1,3,1Gi
2026-01-31T12:01:00Z,default,web-2,1,1Gi
"""


def test_balance_is_of_what_is_used_where_that_is_measured(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    file.write_text(MEASURED)
    code, out, _ = run("--goal", "balance", "--usage", str(file), "-o", "json")
    assert code == 0
    plan = json.loads(out)
    assert plan["goal"] == "balance=used"
    # Of nodes with 4 cores and 8 GiB, one uses 2 + 1 cores in the mean and 2 GiB, the other none.
    assert plan["figureBefore"] == pytest.approx((3 / 4 + 2 / 8) / 4 * 100)
    _, out, _ = run("--goal", "balance=requested", "--usage", str(file), "-o", "json")
    assert json.loads(out)["figureBefore"] == 12.5


def metrics(name: str, **usage: object) -> Raw:
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": name, "namespace": "default"},
        "containers": [{"name": "c", "usage": usage}],
    }


def test_balance_is_of_what_a_file_says_is_used(run: Run) -> None:
    cluster = [*SKEWED, metrics("web-1", cpu="2", memory="1Gi"), metrics("web-2", cpu="1")]
    code, out, err = run("--goal", "balance=used", "-o", "json", cluster=cluster)
    assert (code, err) == (0, "")
    assert json.loads(out)["figureBefore"] == pytest.approx((3 / 4 + 1 / 8) / 4 * 100)


@pytest.mark.parametrize("amount", ["abc", "", [1], {}, True])
def test_an_amount_of_usage_that_is_none_is_named(run: Run, amount: object) -> None:
    cluster = [*SKEWED, metrics("web-1", cpu=amount)]
    code, _, err = run("--goal", "balance=used", cluster=cluster)
    assert code == 2
    assert "cluster.yaml#6: containers[0].usage.cpu is" in err.replace("\n", " ")


def test_usage_is_refused_where_it_does_not_count(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    file.write_text(MEASURED.splitlines()[0] + "\n2026-01-31T12:00:00Z,other,p,1,1Gi\n")
    code, _, err = run("--goal", "spread", "--usage", str(file))
    assert (code, "--usage is for --goal balance" in err) == (2, True)
    code, _, err = run("--goal", "balance", "--usage", "none.jsonl")
    assert (code, "none.jsonl" in err) == (2, True)


def test_json_and_yaml_are_the_plan(run: Run) -> None:
    _, out, _ = run("--goal", "balance", "-o", "json")
    plan = json.loads(out)
    assert plan["kind"] == "RebalancePlan"
    assert plan["steps"][0]["pod"]["name"] == "web-1"
    _, out, _ = run("--goal", "balance", "-o", "yaml")
    assert yaml.safe_load(out) == plan


def test_the_script_is_one_that_a_shell_reads(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("--goal", "balance", "-o", "script")
    assert out.splitlines()[-1] == "evict default web-1 web-1 a b 330"
    subprocess.run(["sh", "-n"], input=out, text=True, check=True)


def test_a_report_is_a_page_of_its_own(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    code, out, err = run("--goal", "balance", "--report", str(page))
    assert code == 0
    assert out.startswith("balance: ")
    assert f"report written: {page}" in err.replace("\n", "")
    assert "evict default/web-1 from a; its replacement goes to b" in page.read_text()
    code, _, err = run("--goal", "balance", "--report", str(page))
    assert code == 2
    assert "--force" in err


def test_what_limits_it_is_printed(run: Run) -> None:
    code, out, _ = run("--goal", "balance", cluster=[*SKEWED, budget("web", minAvailable=2)])
    assert code == 1
    assert out.splitlines()[0] == "balance: 12.5 % of deviation, and no move helps"
    assert "its disruption budget default/web allows no disruption" in out


def test_nothing_to_do_is_a_success(run: Run) -> None:
    code, out, _ = run("--goal", "violations")
    assert (code, out.splitlines()[0]) == (
        0,
        "violations: 0 pods against their rules, nothing to do",
    )


def test_pods_are_excluded(run: Run) -> None:
    code, out, _ = run("--goal", "balance", "--exclude", "app=web")
    assert code == 1
    assert "it is excluded" in out


def test_what_was_to_stay_and_is_not_there_is_noted(run: Run) -> None:
    """A name that is misspelt protects nothing."""
    _, out, _ = run("--goal", "balance", "--exclude-namespace", "defalt", "--exclude", "app=wbe")
    assert 'note: the namespace "defalt", which is excluded, has no pods on nodes' in out
    assert "note: no pod has the labels of 1 excluded selector" in out
    _, out, _ = run("--goal", "balance", "--nodes", "pool=none")
    assert "note: no node has the labels of those chosen, so every pod stays" in out
    chosen = ("--exclude-namespace", "default", "--exclude", "app=web", "--nodes", "!pool")
    assert "note:" not in run("--goal", "balance", *chosen)[1]


def test_prices_come_from_a_file_and_a_label(run: Run, tmp_path: Path) -> None:
    cluster = [
        node("a", labels={"type": "large"}),
        node("b", labels={"type": "3"}),
        owner("web", 1),
        owner("db", 1),
        pod("web-1", "a"),
        pod("db-1", "b"),
    ]
    prices = tmp_path / "prices.yaml"
    prices.write_text("large: 4.5\n")
    _, out, _ = run(
        *("--goal", "empty-nodes", "--prices", str(prices), "--price-label", "type"),
        cluster=cluster,
    )
    assert out.splitlines()[0].startswith("empty-nodes: 7.5 paid for nodes in use before, 3 ")


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ("", 'there is no node of these names: "large", "small"; if they are values of a label'),
        ("tpye", '--price-label: no node has the label "tpye"; did you mean "type"?'),
    ],
)
def test_prices_that_no_node_has_are_refused(
    run: Run, tmp_path: Path, label: str, problem: str
) -> None:
    """All nodes would cost 1, as without prices."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("large: 4.5\nsmall: 1.5\n")
    more = ["--price-label", label] if label else []
    code, out, err = run(
        *("--goal", "empty-nodes", "--prices", str(prices), *more),
        cluster=[node("a", labels={"type": "large"}), owner("web", 1), pod("web-1", "a")],
    )
    assert (code, out) == (2, "")
    assert problem in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "which figure shall get better? Give --goal with spread, balance"),
        (["--goal", "best"], 'there is no goal "best"; goals are spread, balance'),
        (["--goal", "balance", "--exclude", "a=b=c"], 'label selector "a=b=c"'),
        (["--goal", "balance", "--max-moves", "0"], "--max-moves"),
        (["--goal", "empty-nodes", "--prices", "/nowhere"], "/nowhere"),
        (["--goal", "balance", "--prices", "prices.yaml"], "prices are for the goal empty-nodes"),
        (["--goal", "spread", "--price-label", "type"], "prices are for the goal empty-nodes"),
        (["--goal", "defragment=x.y/z"], 'no node has the resource "x.y/z"'),
        (["--goal", "defragment=x.y/z:4"], 'no node has the resource "x.y/z"'),
        (["--goal", "balance", "--yes", "--pace", "30s"], "--yes, --pace: only with --run"),
        (
            ["--goal", "balance", "--run", "--metrics-file", "/nowhere/m.prom"],
            '--metrics-file: cannot write "/nowhere/m.prom": there is no folder',
        ),
        (["--descheduler", "policy.yaml", "-o", "script"], "leave out -o script"),
        (["--descheduler", "policy.yaml", "--report", "p.html"], "--report is for a plan"),
        (["--descheduler", "policy.yaml", "--surge"], "are for a plan, and a policy has limits"),
        (["--descheduler", "policy.yaml", "--max-moves", "3"], "--max-moves, --min-gain, --time"),
        (["--descheduler", "policy.yaml", "--exclude", "app=db"], "and what stays are for a plan"),
        (["--goal", "balance", "--rounds", "3"], "give one with --descheduler"),
        (["--goal", "balance", "--report", "plan.pdf"], "a name that ends with .html"),
        (["--goal", "balance", "--report", "/nowhere/plan.html"], "there is no folder"),
    ],
)
def test_wrong_input_is_one_line(run: Run, arguments: list[str], problem: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert problem in err
    assert len(err.splitlines()) <= 2


def test_a_price_must_be_a_number(run: Run, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("a: much\n")
    code, _, err = run("--goal", "empty-nodes", "--prices", str(prices))
    assert code == 2
    assert 'the price is "much", expected a number above 0' in err


POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: LowNodeUtilization, args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 40}}}
  plugins: {balance: {enabled: [LowNodeUtilization, OurOwn]}}
"""


def test_prices_and_policies_are_any_yaml(run: Run, tmp_path: Path) -> None:
    prices, policy = tmp_path / "prices.yaml", tmp_path / "policy.yaml"
    prices.write_text("a: &price 4.5\nb: *price\n")
    code, _, err = run("--goal", "empty-nodes", "--prices", str(prices))
    assert code in (0, 1), err
    policy.write_text(POLICY.replace("profiles:", "x-cpu: &cpu {cpu: 1}\nprofiles:"))
    code, _, err = run("--descheduler", str(policy))
    assert "x-cpu" in err  # read, so that the field is named
    for file, option in ((prices, "--prices"), (policy, "--descheduler")):
        file.write_bytes(b"a: b\n\x00")
        code, _, err = run("--goal", "empty-nodes", option, str(file))
        assert code == 2
        assert "control characters are not allowed" in err


def test_a_policy_is_judged(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    code, out, _ = run("--descheduler", str(tmp_path / "policy.yaml"), "--goal", "balance")
    assert code == 0
    assert "1 eviction, 0 return to the same node; 1 round" in out
    assert "note: not judged: the plugin OurOwn" in out
    code, out, _ = run("--descheduler", str(tmp_path / "policy.yaml"), "-o", "json")
    assert json.loads(out)["rounds"][0]["evictions"][0]["toNode"] == "b"


def test_a_policy_in_vain_ends_with_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    bound = {"nodeSelector": {"kubernetes.io/hostname": "a"}}
    pods = [pod(f"web-{number}", "a", **bound) for number in range(2)]
    code, out, _ = run(
        "--descheduler",
        str(tmp_path / "policy.yaml"),
        "--rounds",
        "2",
        cluster=[node("a"), node("b"), owner("web", 2), *pods],
    )
    assert code == 1
    assert "2 evictions, 2 return to the same node; 2 rounds" in out
    assert "the policy does not settle" in out
    assert "pods of ReplicaSet/web are evicted in 2 rounds" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("kind: Pod", 'it is "Pod", expected descheduler/v1alpha2', id="other kind"),
        pytest.param(POLICY.replace("args", "arguments"), "unknown field", id="unknown field"),
        pytest.param(POLICY.replace("{cpu: 20}", "much"), "thresholds", id="wrong type"),
    ],
)
def test_a_policy_that_cannot_be_used(run: Run, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    code, _, errors = run("--descheduler", str(tmp_path / "policy.yaml"))
    assert code == 2
    assert message in " ".join(errors.split())


def test_a_policy_that_is_missing(run: Run, tmp_path: Path) -> None:
    code, _, errors = run("--descheduler", str(tmp_path / "none.yaml"))
    assert code == 2
    assert "No such file" in " ".join(errors.split())
