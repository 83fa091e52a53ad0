"""`kubestow print-default-config`: the output is a configuration that loads again."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubestow.config.defaults import complete_config
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.service.cli import app
from kubestow.service.options import SchedulerOptions, parse_options

EXAMPLES = Path(__file__).parents[3] / "examples"
OWN = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 3
profiles:
- schedulerName: mine
  plugins:
    score: {disabled: [{name: ImageLocality}]}
    multiPoint: {enabled: [{name: "acme.plugins:RackSpread", weight: 7}]}
"""


def output_of(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(autouse=True)
def _without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", "/nowhere")


def test_run_reads_the_defaults_as_its_own(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(output_of("print-default-config"))
    options = parse_options([f"--config={path}"])
    assert isinstance(options, SchedulerOptions)
    assert options.config == complete_config(SchedulerConfig(), DEFAULT_GATES)


def test_simulate_reads_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(output_of("print-default-config"))
    simulate = ("simulate", "-f", str(EXAMPLES), "-o", "json")
    assert output_of(*simulate, "--config", str(path)) == output_of(*simulate)


def test_a_configuration_is_completed_and_stays_as_it_is(tmp_path: Path) -> None:
    own, completed = tmp_path / "own.yaml", tmp_path / "completed.yaml"
    own.write_text(OWN)
    completed.write_text(output_of("print-default-config", "--config", str(own)))
    text = completed.read_text()
    assert "parallelism: 3\n" in text
    assert "schedulerName: mine\n" in text
    # Named as it was written, so that it is found again.
    assert "name: acme.plugins:RackSpread\n" in text
    assert "leaseDuration: 15s\n" in text
    assert output_of("print-default-config", "--config", str(completed)) == text
    before, after = (parse_options([f"--config={path}"]) for path in (own, completed))
    assert isinstance(before, SchedulerOptions)
    assert isinstance(after, SchedulerOptions)
    assert before.config == after.config


def test_secrets_are_printed_only_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(f"{OWN}extenders: [{{urlPrefix: 'https://me:hunter2@host'}}]\n")
    arguments = ("print-default-config", "--config", str(path))
    assert "urlPrefix: https://REDACTED@host\n" in output_of(*arguments)
    assert "urlPrefix: https://me:hunter2@host\n" in output_of(*arguments, "--raw")
