"""The cluster of kubectl: one file, several as one, or none."""

from pathlib import Path

import pytest

from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.errors import ConfigError
from kubestow.testing import ManualClock

CONTEXTS = """\
apiVersion: v1
kind: Config
clusters: [{name: CLUSTER, cluster: {server: "https://CLUSTER.invalid"}}]
contexts: [{name: CLUSTER, context: {cluster: CLUSTER, namespace: of-CLUSTER}}]
current-context: CLUSTER
"""


def url(path: str, context: str, environ: dict[str, str]) -> str:
    return Kubeconfig(path, context, environ=environ).server(ManualClock()).server


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name in ("one", "two"):
        (tmp_path / name).write_text(CONTEXTS.replace("CLUSTER", name))
    return {"KUBECONFIG": f"{tmp_path}/none:{tmp_path}/one:{tmp_path}/two"}


@pytest.mark.parametrize(
    ("context", "namespace"), [("", "of-one"), ("one", "of-one"), ("two", "of-two")]
)
def test_several_files_count_as_one(files: dict[str, str], context: str, namespace: str) -> None:
    assert Kubeconfig("", context, environ=files).namespace == namespace
    assert url("", context, files) == f"https://{namespace[3:]}.invalid"


def test_a_named_file_counts_alone(files: dict[str, str], tmp_path: Path) -> None:
    assert url(f"{tmp_path}/two", "", files) == "https://two.invalid"
    with pytest.raises(ConfigError, match='has no context "one"; it has "two"'):
        url(f"{tmp_path}/two", "one", files)


def test_without_a_variable_it_is_that_of_the_home(files: dict[str, str], tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"there is no kubeconfig: .* name one with --kubeconfig"):
        url("", "", environ)
    assert Kubeconfig("", "", environ=environ).namespace == "default"
    (tmp_path / ".kube").mkdir()
    (tmp_path / "one").rename(tmp_path / ".kube" / "config")
    assert url("", "", environ) == "https://one.invalid"


def test_a_scheduler_has_the_credentials_of_the_context(files: dict[str, str]) -> None:
    server = Kubeconfig("", "two", environ=files).scheduler(
        "https://127.0.0.1:10259", ManualClock(), skips_verification=True
    )
    assert server.server == "https://127.0.0.1:10259"
    assert server.tls.skips_verification
