"""Every command once as the README shows it, and once with wrong input."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kubestow.errors import KubestowError
from kubestow.service.cli import app
from kubestow.service.commands.conformance.replay import repository_folder

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RECORDINGS = ROOT / "conformance"


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def simulate(*args: str) -> tuple[int, str]:
    return run("simulate", "-f", str(EXAMPLES / "cluster.yaml"), *args)


WORKLOAD = str(EXAMPLES / "workload.yaml")


class TestSimulate:
    def test_the_example_of_the_readme_places_six_of_seven_pods(self) -> None:
        code, output = simulate("-f", WORKLOAD)
        assert code == 0
        assert "6 of 7 pods scheduled on 3 of 4 nodes, 1 pending" in output
        assert "0/4 nodes are available: " in output
        assert "1 node(s) had untolerated taint(s)" in output

    def test_a_directory_is_read_whole(self) -> None:
        code, output = run("simulate", "-f", str(EXAMPLES))
        assert code == 0
        assert "6 of 7 pods scheduled" in output

    def test_json_says_the_same(self) -> None:
        _, output = simulate("-f", WORKLOAD, "-o", "json")
        result: dict[str, Any] = json.loads(output)
        outcomes = {pod["name"]: pod["outcome"] for pod in result["pods"]}
        assert outcomes["reports-0"] == "Pending"
        assert sum(outcome == "Scheduled" for outcome in outcomes.values()) == 6
        assert result["hasSettled"] is True

    def test_yaml_says_the_same(self) -> None:
        _, output = simulate("-f", WORKLOAD, "-o", "yaml")
        assert len(yaml.safe_load(output)["pods"]) == 7

    def test_wide_shows_the_nodes(self) -> None:
        _, output = simulate("-f", WORKLOAD, "-o", "wide")
        assert "node-b-1" in output
        assert "MEMORY" in output

    def test_pending_pods_can_fail_a_script(self) -> None:
        code, _ = simulate("-f", WORKLOAD, "--fail-on-pending")
        assert code == 1

    def test_a_missing_option_is_reported(self) -> None:
        with pytest.raises(KubestowError, match="nothing to simulate"):
            run("simulate")

    def test_a_missing_file_is_named(self) -> None:
        with pytest.raises(KubestowError, match=r"nowhere\.yaml"):
            simulate("-f", "nowhere.yaml")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("kind: Pod\nmetadata: {name: p\n", "broken.yaml", id="truncated"),
            pytest.param(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
                "spec: {containers: [{name: c, resources: {requests: {cpu: 1x}}}]}\n",
                "cpu",
                id="malformed-quantity",
            ),
            pytest.param(
                "apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {}\n", "name", id="nameless"
            ),
            pytest.param(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {affinity: {nodeAffinity: "
                "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                "[{matchExpressions: [{key: a, operator: Like}]}]}}}}\n",
                "Like",
                id="unknown-operator",
            ),
        ],
    )
    def test_wrong_input_is_reported_with_file_and_place(
        self, tmp_path: Path, text: str, expected: str
    ) -> None:
        path = tmp_path / "broken.yaml"
        path.write_text(text)
        with pytest.raises(KubestowError) as caught:
            simulate("-f", str(path), "--strict")
        assert expected in str(caught.value)
        assert "broken.yaml" in str(caught.value)


def cut_recording(source: Path, target: Path) -> None:
    """The first scenario of a recording, written to a file of its own."""
    recording = json.loads(gzip.decompress(source.read_bytes()))
    recording["scenarios"] = recording["scenarios"][:1]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(recording))


class TestConformance:
    @pytest.fixture
    def sample(self, tmp_path: Path) -> Path:
        path = tmp_path / "taints.json"
        cut_recording(RECORDINGS / "taints.json.gz", path)
        return path

    def test_a_sample_replays_without_difference(self, sample: Path) -> None:
        code, output = run("conformance", str(sample))
        assert code == 0
        assert "taints" in output
        assert ", 0 differ" in output

    def test_a_directory_means_all_recordings_below(
        self, sample: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = sample.parent / "conformance"
        cut_recording(RECORDINGS / "v1.9" / "ports.json.gz", folder / "v1.9" / "ports.json")
        (folder / "taints.json.gz").write_bytes(gzip.compress(sample.read_bytes()))
        monkeypatch.chdir(sample.parent)
        for arguments in [("conformance", "conformance"), ("conformance",)]:
            code, output = run(*arguments, "-o", "json")
            assert code == 0
            assert list(json.loads(output)["families"]) == ["taints", "v1.9 ports"]

    def test_those_of_the_repository_are_found_from_anywhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert repository_folder() == RECORDINGS

    def test_an_installed_package_says_where_they_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        folders = (Path("conformance"), tmp_path / "site-packages" / "conformance")
        monkeypatch.setattr("kubestow.service.commands.conformance.replay.FOLDERS", folders)
        with pytest.raises(KubestowError, match="in the folder conformance of kubestow's source"):
            run("conformance")

    def test_a_directory_without_recordings_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(KubestowError, match="there are no recordings in"):
            run("conformance", str(tmp_path))

    def test_one_part_can_be_selected(self, sample: Path) -> None:
        code, output = run(
            "conformance", str(sample), "--only", "verdicts/TaintToleration", "-o", "json"
        )
        parts = json.loads(output)["families"]["taints"]
        assert code == 0
        assert set(parts) == {"pods", "verdicts"}
        assert parts["verdicts"]["compared"] > 0

    def test_a_difference_is_shown_and_ends_with_code_1(self, sample: Path) -> None:
        recording = json.loads(sample.read_bytes())
        recording["scenarios"][0]["expected"][0]["requests"]["milliCPU"] += 1
        sample.write_text(json.dumps(recording))
        code, output = run("conformance", str(sample), "--show", "1")
        assert code == 1
        assert "requests" in output
        assert "recorded" in output
        assert ", 1 differ" in output

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            pytest.param(b"{}", "not a recording", id="something-else"),
            pytest.param(gzip.compress(b'{"upstream": "v1"}')[:20], "cut off", id="truncated"),
        ],
    )
    def test_a_file_that_is_no_recording_is_named(
        self, tmp_path: Path, content: bytes, expected: str
    ) -> None:
        path = tmp_path / "other.json.gz"
        path.write_bytes(content)
        with pytest.raises(KubestowError, match=expected):
            run("conformance", str(path))

    def test_an_unknown_part_lists_the_parts(self, sample: Path) -> None:
        with pytest.raises(KubestowError, match="verdicts, scores"):
            run("conformance", str(sample), "--only", "verdict")

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            ("verdicts/TaintTolerations", 'did you mean "verdicts/TaintToleration"'),
            ("devices", 'nothing of "devices"'),
        ],
    )
    def test_a_part_of_which_nothing_is_compared_is_refused(
        self, sample: Path, part: str, expected: str
    ) -> None:
        with pytest.raises(KubestowError, match=expected):
            run("conformance", str(sample), "--only", part)


class TestDemo:
    def test_it_ends_by_itself_and_lists_waiting_pods(self) -> None:
        code, output = run("demo")
        assert code == 0
        assert "database-0" in output
        assert "Insufficient memory" in output
        assert "43 pods run on 11 nodes, 1 wait" in output

    def test_a_negative_speed_is_refused(self) -> None:
        code, output = run("demo", "--speed", "-1")
        assert code == 2
        assert "--speed" in output


def test_the_version_is_printed() -> None:
    code, output = run("--version")
    assert code == 0
    assert output.startswith("kubestow ")
